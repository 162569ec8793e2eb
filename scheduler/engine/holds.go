package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/elastic"
)

// tellHolds tells which lanes are held from now on, and which are no longer, a bounded number at once. Each is a row, so
// that another brain knows since when.
func (e *Engine) tellHolds() {
	left := toldAtOnce
	now := map[models.HeldRef]*board.Hold{}
	heads := map[models.HeldRef]*board.Entry{}
	for _, r := range e.board.Rules() {
		for _, h := range r.Holds() {
			if !h.Holds() {
				continue
			}
			e.board.Yielding(h, func(l *board.Line, _ *board.Worker) bool {
				ref, head := heldRef(l.ID.Lane, h.Pool), l.Head()
				for n := 1; head != nil && e.isPast(head.Row.ID); n++ { // no hold holds it
					head = l.At(n)
				}
				if was := now[ref]; was == nil || h.Shut() && !was.Shut() {
					now[ref] = h
				}
				if first := heads[ref]; head != nil && (first == nil || head.Row.AgeKey < first.Row.AgeKey || head.Row.AgeKey == first.Row.AgeKey && head.Row.ID.Compare(first.Row.ID) < 0) {
					heads[ref] = head
				}
				return true
			})
		}
	}
	for _, ref := range sortedHeld(e.held) {
		if row := e.held[ref]; left > 0 && now[ref] == nil && e.now-row.Since >= elastic.Dwell {
			left--
			e.free(row)
		}
	}
	for _, ref := range sortedHeld(now) {
		h, row, known := now[ref], e.held[ref], e.held[ref] != nil
		if left == 0 || !h.Shut() {
			continue
		}
		lane, head := e.board.Lanes[ref.Lane], heads[ref]
		if lane == nil || known && (head == nil || head.Row.ID == row.Task) {
			continue
		}
		left--
		if !known {
			row = &models.Held{HeldRef: ref, Env: lane.Env, Since: e.now}
			e.held[ref] = row
			e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: lane.Env, Name: "lane.held", At: e.now, Lane: lane.Name, Pool: ref.Pool, Reason: h.Says(e.board)})
		}
		if head != nil {
			row.Task = head.Row.ID
			e.holdEvent(&head.Row, "task.held", ref.Pool, h.Says(e.board))
		}
		e.b.plan.Held = append(e.b.plan.Held, *row)
	}
}

// free tells that a lane is held no longer, with its task that was told to be, where that still waits.
func (e *Engine) free(row *models.Held) {
	delete(e.held, row.HeldRef)
	e.b.plan.HeldGone = append(e.b.plan.HeldGone, row.HeldRef)
	lane := e.board.Lanes[row.Lane]
	if lane == nil {
		return
	}
	why := "nothing of it is held back in the pool " + row.Pool + " any more"
	ofKind, ofLane := e.board.HoldsIn(row.Pool, lane)
	if h := cmp.Or(ofLane, ofKind); h != nil {
		why = h.Says(e.board)
	}
	e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: lane.Env, Name: "lane.released", At: e.now, Lane: lane.Name, Pool: row.Pool, Reason: why})
	if entry := e.board.Held(row.Task); entry != nil && entry.Windowed() && entry.Row.State == models.Ready && !e.isPast(row.Task) {
		e.holdEvent(&entry.Row, "task.released", row.Pool, why)
	}
}

// endsHold tells of a task that was told to be held and starts all the same, while its lane is held on: it is brief, or there
// is room for one.
func (e *Engine) endsHold(row *models.Task, pool string) {
	held := e.held[heldRef(row.Lane, pool)]
	if held == nil || held.Task != row.ID || e.isPast(row.ID) || row.StartedAt >= held.Since { // told already
		return
	}
	why := "there is room for it in the pool " + pool
	ofKind, ofLane := e.board.HoldsIn(pool, e.board.Lanes[row.Lane])
	if h := cmp.Or(ofLane, ofKind); h != nil && h.Shut() {
		why = "it is expected to end before what is held for comes: " + h.Says(e.board)
	}
	e.holdEvent(row, "task.released", pool, why)
}

// laneHolds says in which pools a lane is held back, with the numbers.
func (e *Engine) laneHolds(lane *board.Lane) (out []LaneHold) {
	for _, pool := range slices.Sorted(maps.Keys(e.board.Pools)) {
		row := e.held[heldRef(lane.Number, pool)]
		if row == nil {
			continue
		}
		ofKind, ofLane := e.board.HoldsIn(pool, lane)
		h := ofKind
		if ofLane != nil && ofLane.Holds() {
			h = ofLane
		}
		if h == nil || !h.Holds() {
			continue
		}
		held := LaneHold{
			Pool: pool, Since: row.Since, Running: h.Running, Room: h.Room, Capacity: h.Seen.Capacity, Needed: h.Need, Lately: h.Demand,
			Foreseen: h.Seen.Peak, Says: h.Says(e.board),
		}
		if entry := e.board.Held(row.Task); entry != nil && entry.Row.State == models.Ready {
			held.Until = e.leavesAt(&entry.Row)
		}
		out = append(out, held)
	}
	return out
}

func (e *Engine) holdEvent(row *models.Task, name, pool, why string) {
	lane := ""
	if l := e.board.Lanes[row.Lane]; l != nil {
		lane = l.Name
	}
	e.b.plan.Events = append(e.b.plan.Events, models.Event{
		Env: row.Env, Name: name, At: e.now, Task: row.ID, Workflow: row.Workflow, State: row.State.String(), Attempt: row.Attempt, Lane: lane, Pool: pool, Reason: why,
	})
}

func sortedHeld[T any](of map[models.HeldRef]T) []models.HeldRef {
	return slices.SortedFunc(maps.Keys(of), func(a, b models.HeldRef) int {
		return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Pool, b.Pool))
	})
}

// restoreHolds goes on with what is held: within one process as it stood, after a takeover with what runs now as the room
// of each pool of which something is held, until a dwell has shown that there is more.
func (e *Engine) restoreHolds(held []models.Held, old *board.Board) {
	e.held, e.loose = map[models.HeldRef]*models.Held{}, map[models.ID]bool{}
	if e.past == nil || len(old.Tenants) == 0 {
		e.past = map[models.ID]models.Instant{}
	}
	for i := range held {
		row := held[i]
		e.held[row.HeldRef] = &row
	}
	if len(old.Tenants) > 0 {
		e.board.KeepHolds(old)
		return
	}
	for _, ref := range sortedHeld(e.held) {
		lane := e.board.Lanes[ref.Lane]
		if lane == nil {
			continue
		}
		ofKind, ofLane := e.board.HoldsIn(ref.Pool, lane)
		for _, h := range []*board.Hold{ofKind, ofLane} {
			if h != nil && !h.Holds() {
				e.board.SetRoom(h, func(x *elastic.Hold) { *x = elastic.Restored(h.Running) })
			}
		}
	}
}

// checkHeld says where what is told to be held is not what the rows say.
func (e *Engine) checkHeld(rows []models.Held) error {
	if len(rows) != len(e.held) {
		return fmt.Errorf("%d lanes are held, the rows say %d", len(e.held), len(rows))
	}
	for _, row := range rows {
		if got := e.held[row.HeldRef]; got == nil || *got != row {
			return fmt.Errorf("lane %d in the pool %s: held %+v, the row says %+v", row.Lane, row.Pool, got, row)
		}
	}
	return nil
}
