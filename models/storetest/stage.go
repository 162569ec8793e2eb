package storetest

import (
	"slices"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// staging is a body on its way: the tasks it is to become and the numbers the engine gave their classes and lanes.
type staging struct {
	env      int32
	tasks    []engine.NewTask
	interned []engine.Interned
}

// stage writes a body of at least five tasks as a replica does: numbers first, then the rows in two parts on both
// stores, then the flip; now and then the flip never comes.
func (r *run) stage() {
	g := &staging{env: r.env()}
	r.known.staging = g
	for i := range 5 + r.rng.IntN(8) {
		t := r.member(g.env, i, g.tasks)
		if t.RunAt != 0 {
			t.DependsOn = nil
		}
		g.tasks = append(g.tasks, t)
	}
	intern := &engine.Intern{Env: g.env}
	for _, t := range g.tasks {
		intern.Items = append(intern.Items, engine.InternItem{Class: t.Class, Lane: t.Lane})
	}
	r.do(r.command(&engine.Command{Intern: intern}))
	if g.interned == nil { // refused
		return
	}
	body := r.body(g)
	var workflow *engine.NewWorkflow
	if r.chance(70) {
		workflow = r.newWorkflow()
		for i := range body.Tasks {
			body.Tasks[i].Workflow = workflow.ID
		}
	}
	half := len(body.Tasks) / 2
	for _, s := range r.sides {
		first, second := *body, *body
		first.Tasks, first.Specs = body.Tasks[:half], body.Specs[:half]
		first.Edges, first.Labels = nil, nil
		second.Tasks, second.Specs = body.Tasks[half:], body.Specs[half:]
		r.must(s.store.Stage(r.ctx(), &first))
		r.must(s.store.Stage(r.ctx(), &second))
	}
	r.counts.Staged += int64(len(body.Tasks))
	if r.chance(10) {
		return
	}
	r.do(r.command(&engine.Command{Flip: &engine.Flip{Env: g.env, Staging: body.Staging.ID, Tasks: int32(len(g.tasks)), Workflow: workflow}}))
}

// body are the rows a replica stages.
func (r *run) body(g *staging) *models.StagedBody {
	body := &models.StagedBody{Staging: models.Staging{ID: r.id(), Env: g.env, Tasks: int64(len(g.tasks)), At: r.now}}
	sources := map[models.ID]bool{}
	for _, t := range g.tasks {
		for _, d := range t.DependsOn {
			sources[d.Task] = true
			body.Edges = append(body.Edges, models.Edge{Env: g.env, From: d.Task, To: t.ID, On: d.On})
		}
		body.Labels = append(body.Labels, t.Labels...)
		body.Specs = append(body.Specs, models.Spec{Env: g.env, ID: t.ID, Input: t.Input, Payload: t.Payload})
	}
	for i, t := range g.tasks {
		row := models.Task{
			Env: g.env, ID: t.ID, State: models.Staged, Lane: g.interned[i].Lane, Class: g.interned[i].Class, Priority: t.Priority,
			WakeAt: t.RunAt, ExpiresAt: models.Instant(t.ExpiresInSeconds) * 1_000_000, CreatedAt: r.now, UpdatedAt: r.now,
			MaxAttempts: t.MaxAttempts, Remaining: int32(len(t.DependsOn)), Key: t.Key, LimitKey: t.LimitKey, KeyLimit: t.KeyLimit,
			HardSeconds: t.HardSeconds, SoftSeconds: t.SoftSeconds, DelaySeconds: t.DelaySeconds, EstimateMS: t.EstimateMS,
		}
		if row.HardSeconds == 0 {
			row.HardSeconds = g.interned[i].Kind.DefaultHardSeconds()
		}
		for flag, set := range map[models.Flags]bool{models.HasDependants: sources[t.ID], models.HasPolicy: t.HasPolicy, models.FailWhenSpent: t.FailWhenSpent} {
			if set {
				row.Flags |= flag
			}
		}
		body.Tasks = append(body.Tasks, row)
	}
	slices.SortFunc(body.Edges, func(a, b models.Edge) int { return a.To.Compare(b.To) })
	return body
}
