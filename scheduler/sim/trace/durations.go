package trace

import (
	"encoding/csv"
	"fmt"
	"time"
)

// readDurations reads what the calls of a function take in the mean.
func (out *Trace) readDurations(path string) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.Close() // read only
	t := &table{rows: csv.NewReader(f), column: map[string]int{}}
	if more, err := t.next(); !more || err != nil {
		return fmt.Errorf("%s has no header: %w", path, err)
	}
	for i, c := range t.row {
		t.column[c] = i
	}
	for _, c := range []string{"HashFunction", "Average"} {
		if _, has := t.column[c]; !has {
			return fmt.Errorf("%s has no column %s", path, c)
		}
	}
	mean := map[string]time.Duration{}
	for {
		more, err := t.next()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if !more {
			break
		}
		ms, err := t.number("Average")
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		mean[callType(t.text("HashFunction"))] = seconds(ms / 1000)
	}
	for i := range out.Tasks {
		if run, known := mean[out.Tasks[i].Class.Type]; known {
			out.Tasks[i].Run = max(run, time.Millisecond)
		}
	}
	return nil
}

// callType is the task type of a function.
func callType(function string) string { return "timer." + function[:min(len(function), 12)] }
