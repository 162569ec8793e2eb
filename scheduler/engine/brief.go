package engine

import (
	"cmp"
	"slices"

	"nightshift/scheduler/board"
	"nightshift/scheduler/elastic"
)

const (
	// briefLooks bounds how many tasks of a hold are asked how long they run in one look, briefOfLine those of one line.
	briefLooks  = 1_024
	briefOfLine = 64
	// briefShare is which share of its like ends within the time by which a task is called brief.
	briefShare = 0.9
)

// brief is a task that is held for the sake of what is foreseen, where it stands in its line, and for how many like it there is room.
type brief struct {
	entry *board.Entry
	n     int
	room  int32
}

// letBrief adds to what is let go the tasks that are held for what is foreseen alone, and are expected to end before it comes.
// A hold is judged by how long most of its work runs; these are judged by themselves.
func (e *Engine) letBrief(let []board.Loose) []board.Loose {
	for _, r := range e.board.Rules() {
		for _, h := range r.Holds() {
			if !h.Shut() || h.Seen.Peak <= h.Demand {
				continue
			}
			given := int32(0)
			for _, b := range e.briefs(h, looseAtOnce-len(let)) {
				if h.Running+given < b.room {
					let = append(let, board.Loose{Entry: b.entry, Pool: h.Pool})
					e.loose[b.entry.Row.ID] = true
					given++
				}
			}
		}
	}
	return let
}

// besides is how many tasks a hold has room for beside what is needed now and in so many seconds.
func (e *Engine) besides(h *board.Hold, seconds float64) int32 {
	return elastic.Room(h.Seen.Capacity, min(max(h.Demand, e.peak(h, seconds)), h.Seen.Capacity), h.Trim)
}

// briefs are tasks that a hold holds back and that may be brief, at most most: the first of each line, then the second.
func (e *Engine) briefs(h *board.Hold, most int) (out []brief) {
	if h.Running >= e.besides(h, 0) {
		return nil
	}
	looks, rooms := briefLooks, map[float64]int32{} // by run time, which the tasks of a line mostly share
	e.board.Yielding(h, func(l *board.Line, w *board.Worker) bool {
		for n := range briefOfLine {
			entry := l.At(n)
			if entry == nil || looks == 0 {
				break
			}
			looks--
			if e.loose[entry.Row.ID] || !e.heldBy(h, entry, w) {
				continue
			}
			seconds := e.expected(&entry.Row, briefShare)
			if seconds <= 0 {
				continue
			}
			room, known := rooms[seconds]
			if !known {
				room = e.besides(h, elastic.Ahead*seconds)
				rooms[seconds] = room
			}
			if h.Running < room {
				out = append(out, brief{entry, n, room})
			}
		}
		return looks > 0
	})
	slices.SortStableFunc(out, func(a, b brief) int { return cmp.Compare(a.n, b.n) })
	return out[:min(len(out), max(0, most))]
}

// heldBy says that a hold is the only one that holds a task back on a worker.
func (e *Engine) heldBy(h *board.Hold, entry *board.Entry, w *board.Worker) bool {
	lane := e.laneOf(&entry.Row)
	if lane == nil {
		return false
	}
	ofKind, ofLane := e.board.HoldsOn(w, lane.Kind, lane)
	for _, other := range []*board.Hold{ofKind, ofLane} {
		if other != h && other.Shut() {
			return false
		}
	}
	return ofKind == h || ofLane == h
}
