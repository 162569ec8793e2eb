package engine

import (
	"fmt"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/route"
)

// batch is what one Decide gathers: the rows it touches, once each, and the plan they become.
type batch struct {
	plan      *models.Plan
	facts     *models.Facts
	cmd       *Command
	replies   []Reply
	rows      map[models.ID]*change
	order     []*change
	idem      map[models.IdemRef]*change
	dedupes   map[models.IdemRef]*models.Deduped // got in this batch
	children  map[models.ChildRef]*change        // spawned in this batch
	once      map[models.OnceRef]models.Once
	fill      []func()    // answers that show rows as they stand at the end of the batch
	dear      []models.ID // parked for a budget, and may get another model
	bornFreed []models.Task
	flows     []*flow            // touched
	gone      map[models.ID]bool // workflows that were asked for and are not there
	ended     map[models.ID]int
	notes     notes
	schedules []*schedule           // touched
	places    int64                 // that ordered tasks got in this batch
	passed    map[board.KeyID]int64 // starts under rates; 0: it changed
	runs      []*scheduleRun
	untaken   map[models.Feed][]models.Message // what runs of this batch left of the facts
	keys      map[models.KeyRef]models.Message // of messages of this batch
	options   map[optionsFor][]route.Option
}

// change is a task's row in this batch: as it was before, and as it will be.
type change struct {
	row    models.Task
	before models.Task
	fresh  bool         // it is made by this batch
	spec   *models.Spec // of a fresh one that comes with nothing else
}

func (e *Engine) begin(number, epoch int64, facts *models.Facts) {
	e.now = max(e.now, facts.Now)
	e.board.Now = e.now
	e.slab.n = 0
	clear(e.rows)
	e.b = &batch{
		plan:  &models.Plan{Epoch: epoch, Batch: number, At: e.now, Events: make([]models.Event, 0, e.usual)},
		facts: facts, rows: e.rows, order: e.order[:0], idem: map[models.IdemRef]*change{}, dedupes: map[models.IdemRef]*models.Deduped{}, children: map[models.ChildRef]*change{}, once: map[models.OnceRef]models.Once{}, ended: map[models.ID]int{},
	}
}

// finish merges the rows into the plan.
func (e *Engine) finish() (*models.Plan, []Reply) {
	p := e.b.plan
	made := 0
	for _, c := range e.b.order {
		if c.fresh {
			made++
		}
	}
	p.Tasks, p.Changes = make([]models.Task, 0, made), make([]models.Change, 0, len(e.b.order)-made)
	for _, c := range e.b.order {
		if c.fresh {
			p.Tasks = append(p.Tasks, c.row)
			c.spec = nil // whoever started it has it
			if c.row.State == models.Pending && (c.row.Killed > 0 || c.row.Remaining == 0) {
				e.b.bornFreed = append(e.b.bornFreed, c.row)
			}
			continue
		}
		if c.row != c.before {
			p.Changes = append(p.Changes, models.Change{
				From: c.before.State, Token: c.before.Token, Brief: models.SameButMoves(&c.before, &c.row), After: c.row,
			})
		}
	}
	for _, f := range e.b.fill {
		f()
	}
	e.finishFlows()
	e.finishRates()
	e.finishSchedules()
	p.Probe = e.ease.probing && !e.ease.alone
	e.usual = (e.usual + len(p.Events)) / 2
	e.order = e.b.order
	return p, e.b.replies
}

// open finds a task's row: as this batch left it, as the board holds it, or as the facts have it; nil when there is none.
func (e *Engine) open(ref models.TaskRef) *change {
	if c := e.b.rows[ref.ID]; c != nil {
		if c.row.Env != ref.Env {
			return nil
		}
		return c
	}
	if held := e.board.Held(ref.ID); held != nil && held.Row.Env == ref.Env {
		return e.enlist(&held.Row)
	}
	if row, ok := e.b.facts.Tasks[ref]; ok {
		return e.enlist(&row)
	}
	return nil
}

// peek is open for those that only look: nothing is enlisted for the plan.
func (e *Engine) peek(ref models.TaskRef) *models.Task {
	if c := e.b.rows[ref.ID]; c != nil && c.row.Env == ref.Env {
		return &c.row
	}
	if held := e.board.Held(ref.ID); held != nil && held.Row.Env == ref.Env {
		return &held.Row
	}
	if row, ok := e.b.facts.Tasks[ref]; ok {
		return &row
	}
	return nil
}

// enlist takes an existing row into the batch.
func (e *Engine) enlist(row *models.Task) *change {
	if c := e.b.rows[row.ID]; c != nil {
		return c
	}
	c := e.slab.next()
	c.row, c.before, c.fresh, c.spec = *row, *row, false, nil
	e.b.rows[row.ID] = c
	e.b.order = append(e.b.order, c)
	return c
}

// born takes a new row into the batch.
func (e *Engine) born(row models.Task) *change {
	c := e.slab.next()
	c.row, c.before, c.fresh, c.spec = row, models.Task{}, true, nil
	e.b.rows[row.ID] = c
	e.b.order = append(e.b.order, c)
	return c
}

// move changes a task's state by the Law. It leaves the place it had on the board; place gives it the new one.
// The lease of a live task must have been ended before, unless it stays live.
func (e *Engine) move(c *change, cause models.Cause, to models.State) {
	from := c.row.State
	if _, ok := models.Step(cause, from, to); !ok {
		panic(fmt.Sprintf("the Law has no way for %s to move a task from %s to %s", cause, from, to))
	}
	switch from {
	case models.Ready:
		e.stepOut(c)
	case models.Pending:
		delete(e.freed.rows, c.row.ID)
	}
	idle := c.row.HoldsIdle()
	c.row.State, c.row.UpdatedAt = to, e.now
	if now := c.row.HoldsIdle(); now != idle {
		e.idles(c, now)
	}
	e.countFlow(c, from, to)
	e.countQueued(&c.row, from, to)
}

// stepOut takes a ready task out of its line or from behind its gate.
func (e *Engine) stepOut(c *change) {
	e.board.Unkeep(c.row.ID)
	e.board.Unreturn(c.row.ID)
	if c.row.Gate != "" {
		e.board.Unpark(&c.row)
		c.row.Gate = ""
		return
	}
	e.board.StepOut(&c.row)
	e.board.Retract(&c.row)
}

// place gives a task its place on the board: in its line, behind a gate, or among the timers.
func (e *Engine) place(c *change) {
	if c.row.State == models.Ready {
		e.stand(c)
	}
	e.sync(c)
}

// sync keeps what the board holds of the task as this batch left it, its timer too.
func (e *Engine) sync(c *change) {
	e.board.Watch(&c.row)
	if held := e.board.Held(c.row.ID); held != nil {
		held.Row = c.row
	}
}

func (e *Engine) stand(c *change) {
	if lane := e.laneOf(&c.row); lane != nil {
		c.row.Lane = lane.Number // its own may have been deleted while it waited
	}
	if unapproved(&c.row) {
		e.parkAt(c, approvalGate)
		return
	}
	if e.unchosen(&c.row) {
		if e.parkAt(c, models.ModelGate); !c.fresh { // what there is may be another now
			e.board.LookAgain(board.LineOf(&c.row))
		}
		return
	}
	if !e.board.Admits(&c.row) {
		e.park(c)
		return
	}
	e.board.Admit(&c.row)
	e.board.Stand(&c.row)
	e.dirty = true
}

func (e *Engine) park(c *change) { e.parkAt(c, e.board.GateOf(&c.row)) }

func (e *Engine) parkAt(c *change, gate string) {
	c.row.Gate = gate
	e.board.Park(&c.row)
	e.board.Counted.Parkings++
	e.event(c, "task.parked").Reason = c.row.Gate
	e.parkedDear(&c.row)
}

// becomeReady makes a task ready now. The first time fixes its rank for good.
func (e *Engine) becomeReady(c *change, cause models.Cause) {
	e.move(c, cause, models.Ready)
	if c.row.ReadyAt == 0 {
		e.rank(c)
	}
	c.row.WakeAt = 0
	e.place(c)
}

// conclude ends a task for good, or as a dead letter: whoever waits for it hears of it in the same transaction.
func (e *Engine) conclude(c *change, cause models.Cause, to models.State, name string) *models.Event {
	e.move(c, cause, to)
	c.row.WakeAt = 0
	if to.Final() {
		c.row.FinishedAt = e.now
	}
	if c.row.TotalUntil > 0 {
		c.row.ExpiresAt = 0 // it stood for the time of all attempts
	}
	e.place(c)
	if c.row.Has(models.HasDependants) {
		e.endEdges(c)
	}
	if c.row.Has(models.StopsFlow) && (to == models.DeadLetter || to == models.Failed) {
		e.shut(c.row.Env, c.row.Workflow, models.FlowStopped, true)
	}
	e.note(tallyOf(to), &c.row)
	e.runMoved(c)
	return e.event(c, name)
}

func (e *Engine) endEdges(c *change) {
	end := models.End{Env: c.row.Env, Task: c.row.ID, State: c.row.EndState()}
	if i, ok := e.b.ended[c.row.ID]; ok {
		e.b.plan.Ends[i] = end
		return
	}
	e.b.ended[c.row.ID] = len(e.b.plan.Ends)
	e.b.plan.Ends = append(e.b.plan.Ends, end)
}

// event notes what happened to a task; the caller may add to it.
func (e *Engine) event(c *change, name string) *models.Event {
	lane := ""
	if l := e.board.Lanes[c.row.Lane]; l != nil {
		lane = l.Name
	}
	e.b.plan.Events = append(e.b.plan.Events, models.Event{
		Env: c.row.Env, Name: name, At: e.now, Task: c.row.ID, Workflow: c.row.Workflow, State: c.row.State.String(), Attempt: c.row.Attempt, Lane: lane,
	})
	return &e.b.plan.Events[len(e.b.plan.Events)-1]
}

func (e *Engine) audit(cmd *Command, env int32, action, object, reason string) {
	tenant := e.board.TenantOf(env)
	if env == 0 {
		tenant = cmd.Tenant
	}
	e.b.plan.Audit = append(e.b.plan.Audit, models.Audit{Tenant: tenant, Env: env, At: e.now, Actor: cmd.Actor, Action: action, Object: object, Reason: reason})
}

// freed are the tasks set free, in the order they were, each once and as last read.
type freed struct {
	order []models.ID
	rows  map[models.ID]models.Task
}

func (f *freed) add(rows []models.Task) {
	if f.rows == nil {
		f.rows = map[models.ID]models.Task{}
	}
	for _, row := range rows {
		if _, known := f.rows[row.ID]; !known {
			f.order = append(f.order, row.ID)
		}
		f.rows[row.ID] = row
	}
}

// next takes the first that is still to be decided.
func (f *freed) next() (models.Task, bool) {
	for len(f.order) > 0 {
		id := f.order[0]
		f.order = f.order[1:]
		if row, waits := f.rows[id]; waits {
			delete(f.rows, id)
			return row, true
		}
	}
	return models.Task{}, false
}

// decideFreed moves tasks that wait for nothing any more: to ready, to their delay, or, where an edge was killed, to skipped.
func (e *Engine) decideFreed() {
	var later []models.Task // their conditions are judged by facts that are still to be read
	defer func() { e.freed.add(later) }()
	for range e.portion() {
		row, more := e.freed.next()
		if !more {
			return
		}
		if !e.judgeable(&row) {
			later = append(later, row)
			continue
		}
		remaining, killed := row.Remaining, row.Killed
		if held := e.board.Held(row.ID); held != nil {
			row = held.Row
		}
		c := e.enlist(&row)
		c.row.Remaining, c.row.Killed = remaining, killed
		c.before.Remaining, c.before.Killed = remaining, killed // counters are not the plan's to change
		if c.row.State == models.Pending {
			e.decideFree(c)
		}
	}
}

func (e *Engine) decideFree(c *change) {
	if c.row.Killed > 0 {
		e.conclude(c, models.DependencyDied, models.Skipped, "task.skipped")
		return
	}
	if why := e.saysNo(&c.row); why != "" {
		e.conclude(c, models.RunIfSaysNo, models.Skipped, "task.skipped").Reason = why
		return
	}
	if c.row.DelaySeconds > 0 {
		c.row.WakeAt = e.now.Add(models.Seconds(int(c.row.DelaySeconds)))
	}
	if c.row.WakeAt > e.now {
		e.move(c, models.Freed, models.Scheduled)
		e.place(c)
		return
	}
	e.becomeReady(c, models.Freed)
	e.event(c, "task.ready")
}
