package storetest

import (
	"slices"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// known is what a client knows of the world, from answers alone.
type known struct {
	tenants   []models.Tenant
	envs      []models.Environment
	passing   int32 // the environment that nobody uses, while it is there
	lanes     []models.Lane
	workers   []*worker
	budgets   []models.Budget
	all       []models.TaskRef  // every task
	tokens    []models.TokenRef // of every attempt that ended
	workflows []models.TaskRef
	dead      []models.TaskRef
	prints    []models.TaskRef // environment and fingerprint
	stale     []lease
	staging   *staging
	itemized  map[models.ID]bool // tasks that carry items
	modelled  map[models.ID]bool // tasks whose model is chosen for them
	outage    bool               // nothing answers them
}

// worker is what a worker process knows.
type worker struct {
	row    models.Worker
	gone   bool
	leases []lease
}

type lease struct {
	worker *worker
	ref    models.TaskRef
	token  models.ID
}

func (w *worker) drop(token models.ID) (dropped lease, ok bool) {
	for i, l := range w.leases {
		if l.token == token {
			w.leases = append(w.leases[:i:i], w.leases[i+1:]...)
			return l, true
		}
	}
	return lease{}, false
}

func (k *known) worker(id models.ID) *worker {
	for _, w := range k.workers {
		if w.row.ID == id {
			return w
		}
	}
	return nil
}

// follow learns from a step that stands.
func (r *run) follow(s step) {
	if !s.Plan.Empty() {
		r.counts.Plans++
	}
	r.watch(s.Plan)
	r.must(r.keys.See(s.Plan))
	for _, reply := range s.Replies {
		cmd := r.asked[reply.To]
		switch {
		case cmd != nil:
		case r.dropped[reply.To] && (reply.Err != nil || len(reply.Answer.Claimed.Leases) == 0):
			continue
		case !r.ticks[reply.To]:
			r.fatal("a command was answered twice, the second time with %+v, %v", reply.Answer, reply.Err)
		case reply.Err != nil:
			r.fatal("a tick answered %v", reply.Err)
		default:
			delete(r.ticks, reply.To)
			continue
		}
		delete(r.asked, reply.To)
		r.unpark(cmd)
		if reply.Err != nil {
			r.counts.Refusals++
			if code := models.CodeOf(reply.Err); code == models.Internal {
				r.fatal("%v", reply.Err)
			}
			continue
		}
		r.learn(cmd, reply.Answer)
	}
}

// park keeps the claims of a batch that were not answered.
func (r *run) park(commands []*engine.Command) {
	for _, c := range commands {
		if r.asked[c.ID] == nil {
			continue
		}
		if c.Claim == nil || c.Claim.Until == 0 {
			r.fatal("a command was never answered: %+v", c)
		}
		r.unpark(c)
		r.parked = append(r.parked, c)
	}
}

func (r *run) unpark(cmd *engine.Command) {
	for i, c := range r.parked {
		if c.ID == cmd.ID {
			r.parked = append(r.parked[:i:i], r.parked[i+1:]...)
			return
		}
	}
}

// watch learns what a plan wrote of the world and counts what it did to tasks.
func (r *run) watch(p *models.Plan) {
	for _, t := range p.Tenants {
		r.known.tenants = keep(r.known.tenants, t, func(t models.Tenant) int32 { return t.Number })
	}
	for _, e := range p.Environments {
		if e.Name == passing {
			if r.known.passing = e.Env; e.ClosedAt > 0 {
				r.known.passing = 0
			}
			continue
		}
		r.known.envs = keep(r.known.envs, e, func(e models.Environment) int32 { return e.Env })
	}
	for _, l := range p.Lanes {
		if l.Env == r.known.passing {
			continue
		}
		r.known.lanes = keep(r.known.lanes, l, func(l models.Lane) int32 { return l.Number })
	}
	for _, n := range p.LanesGone {
		r.known.lanes = slices.DeleteFunc(r.known.lanes, func(l models.Lane) bool { return l.Number == n })
	}
	for _, g := range p.Money.Budgets {
		r.known.budgets = keep(r.known.budgets, g, func(g models.Budget) models.ID { return g.ID })
	}
	for _, id := range p.Money.Gone {
		r.known.budgets = slices.DeleteFunc(r.known.budgets, func(g models.Budget) bool { return g.ID == id })
	}
	r.counts.Spends += int64(len(p.Money.Spends))
	r.counts.Presumed += int64(len(p.Money.Presumed))
	for i := range p.Tasks {
		r.row(&p.Tasks[i])
	}
	for i := range p.Changes {
		r.row(&p.Changes[i].After)
	}
	for i := range p.Attempts {
		a := &p.Attempts[i]
		r.known.tokens = append(r.known.tokens, models.TokenRef{Env: a.Env, Task: a.Task, Token: a.Token})
		if a.Outcome == models.AttemptLost {
			r.counts.LeasesLost++
		}
	}
	r.chose(&p.Models)
	r.counts.Flips += int64(len(p.Flips))
	r.counts.Slices += int64(len(p.Cursors))
	r.counts.LanesHeld += int64(len(p.Held))
	r.counts.LanesFreed += int64(len(p.HeldGone))
}

func (r *run) row(t *models.Task) {
	ref := models.TaskRef{Env: t.Env, ID: t.ID}
	switch gate := r.gates[ref]; {
	case gate == "" && t.Gate != "":
		r.counts.Parkings++
		if models.IsBudgetGate(t.Gate) {
			r.counts.Held++
		}
	case gate != "" && t.Gate == "":
		r.counts.Unparkings++
	}
	before, seen := r.states[ref]
	if !seen {
		r.known.all = append(r.known.all, ref)
	}
	r.gates[ref], r.states[ref] = t.Gate, t.State
	if seen && before == t.State {
		return
	}
	switch t.State {
	case models.Running:
		r.counts.Starts++
	case models.DeadLetter:
		r.counts.DeadLetters++
		r.known.dead = append(r.known.dead, ref)
		r.known.prints = append(r.known.prints, models.TaskRef{Env: t.Env, ID: t.Fingerprint})
	case models.Succeeded:
		r.counts.Succeeded++
	case models.Skipped:
		r.counts.Skipped++
	case models.Expired:
		r.counts.Expired++
	case models.Cancelled:
		r.counts.Cancelled++
	}
}

// learn takes what an answer says into what the client knows.
func (r *run) learn(cmd *engine.Command, a *engine.Answer) {
	switch {
	case a.Claimed != nil && cmd.Claim != nil:
		w := r.known.worker(cmd.Claim.Worker)
		if r.chance(8) { // the answer never arrives: two beats without these leases give them back
			return
		}
		for _, l := range a.Claimed.Leases {
			w.leases = append(w.leases, lease{w, models.TaskRef{Env: l.Row.Env, ID: l.Row.ID}, l.Row.Token})
		}
	case a.Beaten != nil:
		for _, b := range a.Beaten.Leases {
			if !b.OK {
				r.lost(b.Token)
			}
		}
	case cmd.Settle != nil:
		for _, s := range a.Settled {
			r.lost(s.Token)
		}
	case cmd.Register != nil:
		r.registered(a.Worker)
	case a.Workflow != nil && cmd.Cancel == nil:
		r.known.workflows = append(r.known.workflows, models.TaskRef{Env: a.Workflow.Env, ID: a.Workflow.ID})
	case a.Submitted != nil && a.Submitted.Workflow != nil:
		w := a.Submitted.Workflow
		r.known.workflows = append(r.known.workflows, models.TaskRef{Env: w.Env, ID: w.ID})
	case a.Interned != nil:
		r.known.staging.interned = a.Interned
	case cmd.Retire != nil && cmd.Retire.Gone:
		r.known.worker(cmd.Retire.Worker).gone = true
	}
}

// keep replaces the row of the same number, or adds it.
func keep[T any, K comparable](rows []T, row T, number func(T) K) []T {
	for i := range rows {
		if number(rows[i]) == number(row) {
			rows[i] = row
			return rows
		}
	}
	return append(rows, row)
}

// lost forgets a lease, but for the stale token.
func (r *run) lost(token models.ID) {
	for _, w := range r.known.workers {
		if l, ok := w.drop(token); ok {
			r.known.stale = append(r.known.stale, l)
		}
	}
}

func (r *run) registered(row *models.Worker) {
	if w := r.known.worker(row.ID); w != nil {
		w.row, w.gone = *row, false
		return
	}
	r.known.workers = append(r.known.workers, &worker{row: *row})
}
