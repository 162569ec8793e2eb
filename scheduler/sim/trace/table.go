package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// table is a file with a header.
type table struct {
	name   string
	speed  Speed
	rows   *csv.Reader
	head   []string
	column map[string]int
	row    []string
}

// next reads a row; false at the end.
func (t *table) next() (bool, error) {
	row, err := t.rows.Read()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	t.row = row
	return err == nil, err
}

func (t *table) text(column string) string { return strings.Clone(t.row[t.column[column]]) }

func (t *table) wrong(column, want string) error {
	line, _ := t.rows.FieldPos(t.column[column])
	return fmt.Errorf("line %d: %s is %q, not %s", line, column, t.row[t.column[column]], want)
}

func (t *table) number(column string) (float64, error) {
	v, err := strconv.ParseFloat(t.row[t.column[column]], 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || math.Abs(v) > 1e15 {
		return 0, t.wrong(column, "a number")
	}
	return v, nil
}

// numbers reads several columns at once.
func (t *table) numbers(columns ...string) ([]float64, error) {
	out := make([]float64, len(columns))
	for i, c := range columns {
		v, err := t.number(c)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (t *table) moment(column, layout string) (time.Duration, error) {
	at, err := time.Parse(layout, t.row[t.column[column]])
	if err != nil {
		return 0, t.wrong(column, "a moment like "+layout)
	}
	return at.Sub(epoch), nil
}

// epoch is what moments are counted from until the trace is settled.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
