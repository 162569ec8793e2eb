package storetest

import (
	"fmt"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// staging is a body on its way: the tasks it is to become and the numbers the engine gave their classes and lanes.
type staging struct {
	env      int32
	into     models.ID // the workflow that it is added to, or zero
	tasks    []engine.NewTask
	interned []engine.Interned
}

// stage writes a body of at least five tasks as a replica does: numbers first, then the rows in two parts on both
// stores, then the flip; now and then the flip never comes. Half the bodies wait for tasks outside, and a third of them
// are added to a workflow that is there.
func (r *run) stage() {
	g := &staging{env: r.env()}
	if flow := pick(r, r.known.workflows); !flow.ID.IsZero() && r.chance(35) {
		g.env, g.into = flow.Env, flow.ID
	}
	r.known.staging = g
	reaches := r.chance(50)
	for i := range 5 + r.rng.IntN(8) {
		t := r.member(g.env, i, g.tasks)
		if !g.into.IsZero() {
			t.Key += fmt.Sprintf("-%x", t.ID[12:])
		}
		if t.RunAt != 0 {
			t.DependsOn = nil
		} else if reaches {
			r.reach(&t)
		}
		g.tasks = append(g.tasks, t)
	}
	intern := &engine.Intern{Env: g.env}
	for _, t := range g.tasks {
		intern.Items = append(intern.Items, engine.InternItem{Class: t.Class, Lane: t.Lane, Model: t.Model, Needed: t.Tokens})
	}
	r.do(r.command(&engine.Command{Intern: intern}))
	if g.interned == nil { // refused
		return
	}
	body := r.body(g)
	var workflow *engine.NewWorkflow
	member := g.into
	if member.IsZero() && r.chance(70) {
		workflow = r.newWorkflow()
		member = workflow.ID
	}
	for i := range body.Tasks {
		body.Tasks[i].Workflow = member
	}
	for i := range body.Items {
		body.Items[i].Workflow = member
	}
	half := len(body.Tasks) / 2
	for _, s := range r.sides {
		first, second := *body, *body
		first.Tasks, first.Specs = body.Tasks[:half], body.Specs[:half]
		first.Edges, first.Labels, first.Items, first.Choices = nil, nil, nil, nil
		second.Tasks, second.Specs = body.Tasks[half:], body.Specs[half:]
		r.must(s.store.Stage(r.ctx(), &first))
		r.must(s.store.Stage(r.ctx(), &second))
	}
	r.counts.Staged += int64(len(body.Tasks))
	if r.chance(10) {
		return
	}
	flip := &engine.Flip{Env: g.env, Staging: body.Staging.ID, Tasks: int32(len(g.tasks)), Workflow: workflow, Into: g.into, Wide: wide(body)}
	if !g.into.IsZero() {
		flip.Grown = r.grown(g)
		r.counts.Grown++
	}
	r.do(r.command(&engine.Command{Flip: flip}))
}

// reach lets a task wait for one or two outside its body.
func (r *run) reach(t *engine.NewTask) {
	for range 1 + r.rng.IntN(2) {
		source := pick(r, r.known.all)
		if source.ID.IsZero() || source.Env != r.known.staging.env || slices.ContainsFunc(t.DependsOn, func(d engine.Dependency) bool { return d.Task == source.ID }) {
			continue
		}
		t.DependsOn = append(t.DependsOn, engine.Dependency{Task: source.ID, On: r.on()})
	}
}

// grown is how often a workflow has grown, now and then a wrong number.
func (r *run) grown(g *staging) int32 {
	if r.chance(10) {
		return r.rng.Int32N(3)
	}
	ref := models.TaskRef{Env: g.env, ID: g.into}
	facts, err := r.sides[0].store.Facts(r.ctx(), &models.Need{Workflows: []models.TaskRef{ref}})
	r.must(err)
	return facts.Workflows[ref].Grown
}

// wide is the most edges to tasks outside a body that one of its rows has.
func wide(body *models.StagedBody) (most int32) {
	n := map[models.ID]int32{}
	for _, e := range body.Edges {
		if e.State == models.EdgeStaged {
			n[e.To]++
			most = max(most, n[e.To])
		}
	}
	return most
}

// body are the rows a replica stages.
func (r *run) body(g *staging) *models.StagedBody {
	body := &models.StagedBody{Staging: models.Staging{ID: r.id(), Env: g.env, Tasks: int64(len(g.tasks)), At: r.now}}
	sources, inside, outside := map[models.ID]bool{}, map[models.ID]bool{}, map[models.ID]int32{}
	for i := range g.tasks {
		inside[g.tasks[i].ID] = true
	}
	for i := range g.tasks {
		engine.Fill(g.interned[i].Defaults, &g.tasks[i])
	}
	for _, t := range g.tasks {
		for _, d := range t.DependsOn {
			edge := models.Edge{Env: g.env, From: d.Task, To: t.ID, On: d.On}
			if sources[d.Task] = true; !inside[d.Task] {
				edge.State = models.EdgeStaged
				outside[t.ID]++
			}
			body.Edges = append(body.Edges, edge)
		}
		body.Labels = append(body.Labels, t.Labels...)
		if t.Items != nil {
			body.Items = append(body.Items, models.Items{Env: g.env, Task: t.ID, First: t.Items.First, Total: t.Items.Total})
		}
		body.Specs = append(body.Specs, models.Spec{Env: g.env, ID: t.ID, Input: t.Input, Payload: t.Payload})
	}
	for i, t := range g.tasks {
		if choice := g.interned[i].Choice; choice != nil {
			kept := *choice
			kept.Env, kept.Task = g.env, t.ID
			body.Choices = append(body.Choices, kept)
		}
		row := models.Task{
			Env: g.env, ID: t.ID, State: models.Staged, Lane: g.interned[i].Lane, Class: g.interned[i].Class, Priority: t.Priority,
			WakeAt: t.RunAt, ExpiresAt: models.Instant(t.ExpiresInSeconds) * 1_000_000, CreatedAt: r.now, UpdatedAt: r.now,
			MaxAttempts: t.MaxAttempts, Remaining: int32(len(t.DependsOn)) - outside[t.ID], Key: t.Key, LimitKey: t.LimitKey, KeyLimit: t.KeyLimit, MoreKeys: t.MoreKeys,
			HardSeconds: t.HardSeconds, SoftSeconds: t.SoftSeconds, DelaySeconds: t.DelaySeconds, EstimateMS: t.EstimateMS, Tokens: t.Tokens,
		}
		if row.HardSeconds == 0 {
			row.HardSeconds = g.interned[i].Kind.DefaultHardSeconds()
		}
		for flag, set := range map[models.Flags]bool{models.HasDependants: sources[t.ID] || !g.into.IsZero(), models.HasPolicy: t.HasPolicy, models.FailWhenSpent: t.FailWhenSpent, models.Itemized: t.Items != nil, models.Ordered: t.Ordered, models.ChoosesModel: t.Model != nil} {
			if set {
				row.Flags |= flag
			}
		}
		body.Tasks = append(body.Tasks, row)
	}
	slices.SortFunc(body.Edges, func(a, b models.Edge) int { return a.To.Compare(b.To) })
	return body
}
