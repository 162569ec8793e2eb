package relay

import (
	"strconv"
	"strings"

	"nightshift/models"
)

// Position is the place of an event among those of its filter's environments: the batch that told it and its index
// there. On the wire it is "batch.index".
type Position struct {
	Batch int64
	Index int
}

// Live is the position of a listener that wants only what is still to come.
var Live = Position{Batch: -1}

func (p Position) String() string {
	return strconv.FormatInt(p.Batch, 10) + "." + strconv.Itoa(p.Index)
}

// less says whether p is before o.
func (p Position) less(o Position) bool {
	return p.Batch < o.Batch || p.Batch == o.Batch && p.Index < o.Index
}

// ParsePosition reads a position; anything else is invalid_cursor.
func ParsePosition(text string) (Position, error) {
	batch, index, ok := strings.Cut(text, ".")
	b, err1 := strconv.ParseInt(batch, 10, 64)
	i, err2 := strconv.ParseInt(index, 10, 32)
	if !ok || err1 != nil || err2 != nil || b < 0 || i < 0 || text != (Position{b, int(i)}).String() {
		return Position{}, models.Errorf(models.InvalidCursor, "%q is not the id of an event", text)
	}
	return Position{b, int(i)}, nil
}

// Filter says which events a listener gets. Envs bounds what it may see and is part of what a position means: it must be
// the same when a listener resumes. The rest picks among those.
type Filter struct {
	Envs     []int32 // nil: every environment and the platform's events
	Workflow models.ID
	Task     models.ID
	Names    []string // exact, or ending in *; empty: all
}

func (f *Filter) sees(env int32) bool {
	if f.Envs == nil {
		return true
	}
	for _, e := range f.Envs {
		if e == env {
			return true
		}
	}
	return false
}

func (f *Filter) wants(e *models.Event) bool {
	return (f.Workflow.IsZero() || e.Workflow == f.Workflow) && (f.Task.IsZero() || e.Task == f.Task) &&
		(len(f.Names) == 0 || models.MatchPattern(f.Names, e.Name))
}

// Packed is what one batch told of one environment.
type Packed struct {
	Batch int64
	Env   int32
	Items []models.Event
}

// Event is one event with its place. Reset says instead that what the listener asked for is older than what is kept.
type Event struct {
	Position Position
	Reset    bool
	models.Event
}

// pick gives the wanted events of rows, which are in order of (batch, environment), after a position.
func (f *Filter) pick(rows []Packed, after Position) (events []Event, last Position) {
	last = after
	var at Position
	for i := range rows {
		row := &rows[i]
		if !f.sees(row.Env) {
			continue
		}
		if row.Batch != at.Batch {
			at = Position{Batch: row.Batch}
		}
		for j := range row.Items {
			if after.less(at) {
				last = at
				if f.wants(&row.Items[j]) {
					events = append(events, Event{Position: at, Event: row.Items[j]})
					events[len(events)-1].Env = row.Env
				}
			}
			at.Index++
		}
	}
	return events, last
}
