package memory

import (
	"cmp"
	"maps"

	"nightshift/models"
)

// check says why a plan cannot be applied. What passes is written without a further question, so a plan happens whole
// or not at all.
func (s *Store) check(p *models.Plan) error {
	if p.Epoch != s.brain.Epoch {
		return models.Errorf(models.FenceLost, "the brain has epoch %d, the plan %d", s.brain.Epoch, p.Epoch)
	}
	if _, taken := s.batches[p.Batch]; taken || p.Batch <= 0 {
		return models.Errorf(models.BadData, "batch %d exists", p.Batch)
	}
	for _, look := range []func(*models.Plan) error{s.checkNames, s.checkWorkflows, s.checkTasks, s.checkBeside, s.checkLate, s.checkChanges, s.checkSchedules} {
		if err := look(p); err != nil {
			return err
		}
	}
	return nil
}

// checkNames looks at the names that must be one thing's alone once the plan is applied.
func (s *Store) checkNames(p *models.Plan) error {
	return cmp.Or(
		clash(s.tenants, p.Tenants, nil, func(t models.Tenant) (int32, []any) { return t.Number, []any{t.ID, t.Slug} }),
		clash(s.environments, p.Environments, nil, func(e models.Environment) (int32, []any) {
			if e.ClosedAt > 0 {
				return e.Env, []any{e.ID}
			}
			return e.Env, []any{e.ID, [2]any{e.Tenant, e.Name}}
		}),
		clash(s.lanes, p.Lanes, p.LanesGone, func(l models.Lane) (int32, []any) { return l.Number, []any{[2]any{l.Env, l.Name}} }),
		clash(s.budgets, p.Money.Budgets, p.Money.Gone, func(b models.Budget) (models.ID, []any) {
			return b.ID, []any{[5]any{b.Tenant, b.Scope, b.Env, b.Name, b.Period}}
		}),
		clash(s.classes, p.Classes, nil, func(c models.Class) (int32, []any) { return c.Number, []any{c.Digest()} }),
		clash(s.workers, p.Workers, nil, func(w models.Worker) (models.ID, []any) {
			if w.State == models.WorkerGone {
				return w.ID, nil
			}
			return w.ID, []any{[2]any{w.Tenant, w.Instance}}
		}),
	)
}

// clash says which name two rows of a table would share once rows are put in and others taken out.
func clash[K comparable, V any](table map[K]V, in []V, gone []K, names func(V) (K, []any)) error {
	if len(in) == 0 {
		return nil
	}
	after := maps.Clone(table)
	for _, v := range in {
		k, _ := names(v)
		after[k] = v
	}
	for _, k := range gone {
		delete(after, k)
	}
	owners := map[any]K{}
	for k, v := range after { // any order: a name must be there once
		_, all := names(v)
		for _, name := range all {
			if other, taken := owners[name]; taken && other != k {
				return models.Errorf(models.BadData, "%T %v and %v share the name %v", v, other, k, name)
			}
			owners[name] = k
		}
	}
	return nil
}

func (s *Store) checkWorkflows(p *models.Plan) error {
	made := map[models.TaskRef]bool{}
	for _, w := range p.Workflows {
		ref := models.TaskRef{Env: w.Env, ID: w.ID}
		if _, exists := s.workflows[ref]; exists || made[ref] {
			return models.Errorf(models.BadData, "workflow %s exists", w.ID.Text(models.WorkflowPrefix))
		}
		made[ref] = true
	}
	for _, w := range p.WorkflowChanges {
		ref := models.TaskRef{Env: w.Env, ID: w.ID}
		if _, exists := s.workflows[ref]; !exists && !made[ref] {
			return models.Errorf(models.RowCount, "there is no workflow %s to change", w.ID.Text(models.WorkflowPrefix))
		}
	}
	return nil
}

// checkTasks looks at new rows: their ids and business keys must be free.
func (s *Store) checkTasks(p *models.Plan) error {
	made, keys := make(map[models.TaskRef]bool, len(p.Tasks)), map[models.IdemRef]bool{}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.State == models.Staged {
			return models.Errorf(models.BadData, "task %s: a plan stages nothing", t.ID.Text(models.TaskPrefix))
		}
		if err := s.checkNew(t, made, keys); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) checkNew(t *models.Task, made map[models.TaskRef]bool, keys map[models.IdemRef]bool) error {
	ref := refOf(t)
	if _, exists := s.tasks[ref]; exists || made[ref] {
		return models.Errorf(models.BadData, "task %s exists", t.ID.Text(models.TaskPrefix))
	}
	made[ref] = true
	if holdsKey(t) {
		key := models.IdemRef{Env: t.Env, Key: t.IdemKey}
		if _, held := s.holders[key]; held || keys[key] {
			return models.Errorf(models.BadData, "task %s: the idempotency key %q is held", t.ID.Text(models.TaskPrefix), t.IdemKey)
		}
		keys[key] = true
	}
	return sound(t)
}

// sound looks at what a row says of itself, as the table's CHECKs do.
func sound(t *models.Task) error {
	switch {
	case t.State < models.Staged || t.State > models.Skipped:
		return models.Errorf(models.BadData, "task %s: there is no state %d", t.ID.Text(models.TaskPrefix), t.State)
	case t.State.Live() == t.Token.IsZero():
		return models.Errorf(models.BadData, "task %s is %s: exactly live tasks have a token", t.ID.Text(models.TaskPrefix), t.State)
	case t.Gate != "" && t.State != models.Ready:
		return models.Errorf(models.BadData, "task %s is %s: only ready tasks are parked", t.ID.Text(models.TaskPrefix), t.State)
	}
	return nil
}

// checkBeside looks at what stands beside tasks: attempts, stagings, edges.
func (s *Store) checkBeside(p *models.Plan) error {
	type try struct {
		ref models.TaskRef
		n   int32
	}
	tried := map[try]bool{}
	for _, a := range p.Attempts {
		key := try{models.TaskRef{Env: a.Env, ID: a.Task}, a.N}
		taken := tried[key]
		for _, b := range s.attempts[key.ref] {
			taken = taken || b.N == a.N
		}
		if taken {
			return models.Errorf(models.BadData, "attempt %d of task %s exists", a.N, a.Task.Text(models.TaskPrefix))
		}
		tried[key] = true
	}
	for _, id := range p.Flips {
		if g, exists := s.stagings[id]; !exists || g.Flipped {
			return models.Errorf(models.RowCount, "there is no staging %x to flip", id)
		}
	}
	for _, e := range p.Linked {
		if was := s.edge(e); was == nil || was.State != models.EdgeStaged {
			return models.Errorf(models.RowCount, "task %s: there is no staged edge from %s", e.To.Text(models.TaskPrefix), e.From.Text(models.TaskPrefix))
		}
	}
	edges := make(map[edgeKey]bool, len(p.Edges))
	for _, e := range p.Edges {
		key := edgeKey{e.Env, e.From, e.To, e.On}
		if edges[key] {
			return models.Errorf(models.BadData, "task %s waits for %s twice", e.To.Text(models.TaskPrefix), e.From.Text(models.TaskPrefix))
		}
		edges[key] = true
	}
	return nil
}

type edgeKey struct {
	env      int32
	from, to models.ID
	on       models.On
}

// checkLate looks that usage is booked once, of an attempt that has ended, be it in this very plan.
func (s *Store) checkLate(p *models.Plan) error {
	booked := map[models.TokenRef]bool{}
	for _, l := range p.Late {
		ref := models.TokenRef{Env: l.Env, Task: l.Task, Token: l.Token}
		a := s.ended(ref)
		for i := range p.Attempts {
			if b := &p.Attempts[i]; a == nil && ref == (models.TokenRef{Env: b.Env, Task: b.Task, Token: b.Token}) {
				a = b
			}
		}
		if a == nil || a.Usage != nil || booked[ref] {
			return models.Errorf(models.RowCount, "task %s has no attempt whose usage is still to be booked", l.Task.Text(models.TaskPrefix))
		}
		booked[ref] = true
	}
	return nil
}

// checkChanges looks at the guards of changed rows and at the Law.
func (s *Store) checkChanges(p *models.Plan) error {
	changed, keys := make(map[models.TaskRef]bool, len(p.Changes)), map[models.IdemRef]bool{}
	for i := range p.Tasks {
		if holdsKey(&p.Tasks[i]) {
			keys[models.IdemRef{Env: p.Tasks[i].Env, Key: p.Tasks[i].IdemKey}] = true
		}
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		ref := refOf(&c.After)
		old, exists := s.tasks[ref]
		if !exists || changed[ref] || old.State != c.From || old.Token != c.Token {
			return models.Errorf(models.RowCount, "task %s: a change from %s found %s", ref.ID.Text(models.TaskPrefix), c.From, old.State)
		}
		changed[ref] = true
		if c.From != c.After.State && !reachable[c.From][c.After.State] {
			return models.Errorf(models.BadData, "task %s: no law leads from %s to %s", ref.ID.Text(models.TaskPrefix), c.From, c.After.State)
		}
		if !holdsKey(&old) && holdsKey(&c.After) { // it was staged
			key := models.IdemRef{Env: ref.Env, Key: c.After.IdemKey}
			if _, held := s.holders[key]; held || keys[key] {
				return models.Errorf(models.BadData, "task %s: the idempotency key %q is held", ref.ID.Text(models.TaskPrefix), key.Key)
			}
			keys[key] = true
		}
		if c.From.Final() {
			return models.Errorf(models.BadData, "task %s is %s: nothing final changes", ref.ID.Text(models.TaskPrefix), c.From)
		}
		if err := sound(&c.After); err != nil {
			return err
		}
	}
	return nil
}

// reachable says which states the Law leads to in one step or several: a plan merges what a batch does to a task.
var reachable = func() (to [models.Skipped + 1][models.Skipped + 1]bool) {
	for _, t := range models.Law {
		for _, from := range t.From {
			to[from][t.To] = true
		}
	}
	for by := range to {
		for from := range to {
			for end := range to {
				to[from][end] = to[from][end] || to[from][by] && to[by][end]
			}
		}
	}
	return to
}()
