package board

import (
	"slices"

	"nightshift/models"
)

// window holds the first tasks of a line in one order: every one of them up to its watermark. Those beyond are only
// counted, and read again when the window runs low.
type window struct {
	by      func(*models.Task) models.Mark
	entries []*Entry
	all     bool        // the watermark is infinite
	mark    models.Mark // else every task up to here is in the window
	passed  models.Mark // up to here tasks are left out for good: they can no longer make their deadline
	want    int         // how many it wants to keep
}

// byRank orders by the age key, byStart by the moment a task must start to make its deadline.
func byRank(row *models.Task) models.Mark { return models.Mark{AgeKey: row.AgeKey, ID: row.ID} }

func byStart(row *models.Task) models.Mark {
	return models.Mark{AgeKey: int64(row.LatestStart), ID: row.ID}
}

func (w *window) first() *Entry {
	if len(w.entries) == 0 {
		return nil
	}
	return w.entries[0]
}

// admits says whether the task belongs into the window: at or below the watermark, and not passed.
func (w *window) admits(row *models.Task) bool {
	m := w.by(row)
	return (w.all || !w.mark.Less(m)) && w.passed.Less(m)
}

// find is where a task stands or would. Nearly always it is the first or comes last: those are looked at before the rest,
// whose rows are far apart in memory.
func (w *window) find(row *models.Task) (int, bool) {
	n := len(w.entries)
	if n == 0 {
		return 0, false
	}
	if w.entries[0].Row.ID == row.ID && w.by(&w.entries[0].Row) == w.by(row) {
		return 0, true
	}
	if w.by(&w.entries[n-1].Row).Less(w.by(row)) {
		return n, false
	}
	return slices.BinarySearchFunc(w.entries, w.by(row), func(e *Entry, m models.Mark) int {
		switch at := w.by(&e.Row); {
		case at.Less(m):
			return -1
		case m.Less(at):
			return 1
		}
		return 0
	})
}

// insert puts an entry in its place; false when it is there already.
func (w *window) insert(e *Entry) bool {
	i, found := w.find(&e.Row)
	if found {
		return false
	}
	w.entries = slices.Insert(w.entries, i, e)
	return true
}

func (w *window) remove(row *models.Task) bool {
	i, found := w.find(row)
	switch {
	case !found:
	case i == 0 && len(w.entries) > 1: // the usual case moves nothing
		w.entries[0] = nil
		w.entries = w.entries[1:]
	default:
		w.entries = slices.Delete(w.entries, i, i+1)
	}
	return found
}

// cut lowers the watermark so that at most keep tasks stay, and answers those that go.
func (w *window) cut(keep int) []*Entry {
	if len(w.entries) <= keep || keep < 1 {
		return nil
	}
	gone := slices.Clone(w.entries[keep:])
	clear(w.entries[keep:])
	w.entries = w.entries[:keep]
	w.all, w.mark = false, w.by(&w.entries[keep-1].Row)
	return gone
}

// low says whether a window that should hold want tasks is to be filled again, of ready tasks that belong to it.
func (w *window) low(ready int64, want int) bool {
	return !w.all && len(w.entries) <= want/4 && ready > int64(len(w.entries))
}

// after is the mark behind which a refill reads.
func (w *window) after() models.Mark {
	if w.mark.Less(w.passed) {
		return w.passed
	}
	return w.mark
}

// filled takes the watermark on after a refill that asked for limit rows, and lets the window grow with use.
func (w *window) filled(rows []models.Task, limit, most int) {
	if len(rows) < limit {
		w.all = true
	} else {
		w.mark = w.by(&rows[len(rows)-1])
	}
	w.want = min(w.want*2, most)
}
