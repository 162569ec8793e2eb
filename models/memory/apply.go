package memory

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"nightshift/models"
)

// Apply commits the plan whole or not at all and tells what that set free.
func (s *Store) Apply(_ context.Context, p *models.Plan) (*models.Effects, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fault := s.fault
	s.fault = nil
	if fault != nil && !fault.happened {
		return nil, models.Errorf(fault.code, "batch %d failed, as was asked", p.Batch)
	}
	if err := s.check(p); err != nil {
		return nil, err
	}
	s.batches[p.Batch], s.decidedAt = p.Epoch, p.At
	s.brain.Batch = max(s.brain.Batch, p.Batch)
	s.configure(p)
	s.insert(p)
	s.unusual(p)
	s.flows(p)
	s.schedule(&p.Schedules)
	s.limit(&p.Quota)
	s.choose(&p.Models)
	s.rates(p)
	s.money(p)
	s.feed(&p.Feeds)
	for i := range p.Changes {
		after := p.Changes[i].After
		old := s.tasks[refOf(&after)]
		after.Remaining, after.Killed = old.Remaining, old.Killed
		s.put(after)
		if old.State == models.Staged && after.State != models.Staged {
			delete(s.stagingOf, refOf(&after))
		}
	}
	touched, unfired := s.fire(p.Ends, p.MostEdges)
	s.note(p)
	if fault != nil {
		return nil, models.Errorf(fault.code, "the answer to batch %d was lost, as was asked", p.Batch)
	}
	effects := s.effects(touched)
	effects.Unfired = unfired
	return effects, nil
}

// configure writes what decisions read.
func (s *Store) configure(p *models.Plan) {
	for _, t := range p.Tenants {
		s.tenants[t.Number] = t
	}
	for _, e := range p.Environments {
		s.environments[e.Env] = e
	}
	for _, k := range p.Kinds {
		k.YieldsTo = slices.Clone(k.YieldsTo)
		s.kinds[k.Name] = k
	}
	for _, l := range p.Lanes {
		l.TaskTypes, l.YieldsTo = slices.Clone(l.TaskTypes), slices.Clone(l.YieldsTo)
		s.lanes[l.Number] = l
		s.mostLane = max(s.mostLane, l.Number)
	}
	for _, n := range p.LanesGone {
		delete(s.lanes, n)
	}
	for _, ref := range p.HeldGone {
		delete(s.held, ref)
	}
	for _, h := range p.Held {
		s.held[h.HeldRef] = h
	}
	for _, c := range p.Classes {
		c.Selector, c.Permissions = maps.Clone(c.Selector), slices.Clone(c.Permissions)
		s.classes[c.Number] = c
	}
	for _, w := range p.Workers {
		s.workers[w.ID] = cloneWorker(w)
	}
	for _, seen := range p.Seen {
		if w, ok := s.workers[seen.Worker]; ok {
			w.LastSeen = seen.At
			s.workers[seen.Worker] = w
		}
	}
	for _, v := range p.Virtual {
		v.At = p.At
		s.virtual[virtualKey{v.Pool, v.Kind, v.Tenant}] = v
	}
	for _, c := range p.Corrections {
		s.corrections[correctionKey{c.Pool, c.Kind}] = c
	}
	for _, e := range p.Estimates {
		s.estimates[estimateKey{e.Tenant, e.Class}] = e
	}
}

func cloneWorker(w models.Worker) models.Worker {
	w.TaskTypes, w.Lanes, w.Kinds = slices.Clone(w.TaskTypes), slices.Clone(w.Lanes), slices.Clone(w.Kinds)
	w.GPUs, w.KindSlots, w.Models = slices.Clone(w.GPUs), maps.Clone(w.KindSlots), slices.Clone(w.Models)
	w.Permissions, w.Labels, w.Replaced = slices.Clone(w.Permissions), maps.Clone(w.Labels), slices.Clone(w.Replaced)
	return w
}

// insert writes new workflows, tasks and what stands beside them.
func (s *Store) insert(p *models.Plan) {
	for _, w := range p.Workflows {
		s.workflows[models.TaskRef{Env: w.Env, ID: w.ID}] = w
	}
	for _, w := range p.WorkflowChanges {
		ref := models.TaskRef{Env: w.Env, ID: w.ID}
		row := s.workflows[ref]
		w.Gate, w.Name, w.CreatedAt, w.RerunOf, w.Stops, w.Items = row.Gate, row.Name, row.CreatedAt, row.RerunOf, row.Stops, row.Items
		row = w
		s.workflows[ref] = row
	}
	for _, t := range p.Tasks {
		s.put(t)
	}
	s.unlabel(p.LabelsGone)
	s.beside(p.Specs, p.Labels, p.Edges)
	for _, a := range p.Attempts {
		ref := models.TaskRef{Env: a.Env, ID: a.Task}
		s.attempts[ref] = append(s.attempts[ref], a)
	}
}

// beside writes what is written once with new tasks.
func (s *Store) beside(specs []models.Spec, labels []models.Label, edges []models.Edge) {
	for _, spec := range specs {
		s.specs[models.TaskRef{Env: spec.Env, ID: spec.ID}] = spec
	}
	for _, l := range labels {
		ref := models.TaskRef{Env: l.Env, ID: l.Task}
		s.labels[ref] = append(s.labels[ref], l)
	}
	for _, e := range edges {
		ref := models.TaskRef{Env: e.Env, ID: e.From}
		s.edges[ref] = append(s.edges[ref], e)
		if to := (models.TaskRef{Env: e.Env, ID: e.To}); e.On < 3 {
			s.waitsFor[to] = append(s.waitsFor[to], e.From)
		}
	}
}

// fire moves the open edges of tasks that ended or died and answers whom that touched.
func (s *Store) fire(ends []models.End, most int) (touched *order[models.TaskRef], unfired []models.End) {
	if most == 0 {
		most = math.MaxInt
	}
	touched = newOrder(compareRefs)
	for _, end := range ends {
		ref := models.TaskRef{Env: end.Env, ID: end.Task}
		delete(s.unfired, ref)
		edges := s.edges[ref]
		slices.SortFunc(edges, func(a, b models.Edge) int { return cmp.Or(a.To.Compare(b.To), cmp.Compare(a.On, b.On)) })
		for i := range edges {
			e := &edges[i]
			after := e.On.After(end.State)
			if e.State != models.EdgeOpen || after == models.EdgeOpen || e.To.Compare(end.After) < 0 {
				continue
			}
			if most == 0 {
				end.After = e.To
				s.unfired[ref] = end
				unfired = append(unfired, end)
				break
			}
			most--
			e.State = after
			s.count(e, touched)
		}
	}
	slices.SortFunc(unfired, func(a, b models.End) int { return cmp.Or(cmp.Compare(a.Env, b.Env), a.Task.Compare(b.Task)) })
	return touched, unfired
}

// count lowers the counters of the task that an edge leads to.
func (s *Store) count(e *models.Edge, touched *order[models.TaskRef]) {
	ref := models.TaskRef{Env: e.Env, ID: e.To}
	to, exists := s.tasks[ref]
	if !exists {
		return
	}
	to.Remaining--
	if e.State == models.EdgeKilled {
		to.Killed++
	}
	s.put(to)
	touched.add(ref)
}

// note writes what is told and remembered of the batch.
func (s *Store) note(p *models.Plan) {
	for _, l := range p.Late {
		s.ended(models.TokenRef{Env: l.Env, Task: l.Task, Token: l.Token}).Usage = l.Usage
	}
	for _, g := range p.Progress {
		ref := models.TaskRef{Env: g.Env, ID: g.Task}
		row := s.progress[ref]
		row.Env, row.Task = g.Env, g.Task
		if g.Progress != nil {
			row.Progress = g.Progress
		}
		if g.Checkpoint != nil {
			row.Checkpoint = g.Checkpoint
		}
		s.progress[ref] = row
	}
	for _, id := range p.Flips {
		g := s.stagings[id]
		g.Flipped = true
		s.stagings[id] = g
		for ref := range s.staged.of[id].all() { // from now on they are members of their workflow
			if t := s.tasks[ref]; !t.Workflow.IsZero() {
				s.member(&t, true)
			}
		}
	}
	for _, c := range p.Cursors {
		s.cursors[c.ID] = c
	}
	for _, id := range p.Done {
		s.done[id] = p.Batch
	}
	for _, o := range p.Once {
		s.once[models.OnceRef{Scope: o.Scope, Key: o.Key}] = o
	}
	for _, e := range p.Events {
		s.events = append(s.events, Recorded{p.Batch, e})
	}
	s.audit = append(s.audit, p.Audit...)
}

// effects are the touched tasks that wait no longer.
func (s *Store) effects(touched *order[models.TaskRef]) *models.Effects {
	out := &models.Effects{}
	for ref := range touched.all() {
		if t := s.tasks[ref]; t.State == models.Pending && free(&t) {
			out.Freed = append(out.Freed, t)
		}
	}
	return out
}
