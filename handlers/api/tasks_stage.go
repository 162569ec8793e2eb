package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// Bodies above stageAbove tasks or stageBytes of payloads are written in parts, in transactions of their own, and become part
// of the world by one command: the brain's own transactions are short, and everybody waits for them. What can't be written so is
// at most handlers.CommandMost.
const (
	stageAbove = 1_000
	stageBytes = 2 << 20
)

func weight(tasks []engine.NewTask) (bytes int) {
	for i := range tasks {
		bytes += len(tasks[i].Payload) + len(tasks[i].Input)
	}
	return bytes
}

// heavy says that tasks are too many, or their payloads too large, for one command.
func heavy(tasks []engine.NewTask) bool { return len(tasks) > stageAbove || weight(tasks) > stageBytes }

// fits refuses tasks that go into one command, whatever they weigh, and weigh too much for it.
func fits(tasks []engine.NewTask) error {
	if n := weight(tasks); n > handlers.CommandMost {
		return models.Invalid("body.tasks", "the payloads have %d bytes together, at most %d are taken at once of such tasks: send them in several calls", n, handlers.CommandMost)
	}
	return nil
}

// stager writes a large body part by part.
type stager struct {
	w       *Work
	d       *handlers.Deps
	c       *fiber.Ctx
	env     int32
	staging models.Staging
	flow    models.ID // the workflow the tasks belong to, or zero
	known   map[string]engine.Interned
	dearest map[string]models.Amount // of each, the most that a task was asked for
	ids     []models.ID
	// inside says whether a task is of the body; nil: all that are named are. What lies outside is judged when a row enters.
	inside  func(models.ID) bool
	vouched map[models.ID]bool // tasks outside that are known to be there
	wide    int32              // the most of them that one task waits for
}

func (w *Work) newStager(d *handlers.Deps, c *fiber.Ctx, flow models.ID) *stager {
	env := handlers.CallerOf(c).Env
	id := flow // by which an answer that got lost is found again
	if id.IsZero() {
		id = d.Mint()
	}
	return &stager{
		w: w, d: d, c: c, env: env, flow: flow, known: map[string]engine.Interned{}, dearest: map[string]models.Amount{}, vouched: map[models.ID]bool{},
		staging: models.Staging{ID: id, Env: env, At: d.Now()},
	}
}

// write writes the next tasks of the body, in parts; first is the place of the first of them.
func (s *stager) write(tasks []engine.NewTask, first int) error {
	for len(tasks) > 0 {
		n := min(len(tasks), stageAbove)
		for n > 1 && weight(tasks[:n]) > stageBytes {
			n /= 2
		}
		if err := s.part(tasks[:n], first); err != nil {
			return err
		}
		tasks, first = tasks[n:], first+n
	}
	return nil
}

// part writes some of the next tasks; first is the place of the first of them. It keeps none of them.
func (s *stager) part(tasks []engine.NewTask, first int) error {
	if err := s.intern(tasks, first); err != nil {
		return err
	}
	if err := s.vouch(tasks, first); err != nil {
		return err
	}
	part := &models.StagedBody{Tasks: make([]models.Task, len(tasks)), Specs: make([]models.Spec, len(tasks))}
	for i := range tasks {
		t, in := &tasks[i], s.known[internKey(&tasks[i])]
		if err := engine.SoftInTime(in.Defaults, in.Kind, t, body.At("body.tasks", first+i)); err != nil {
			return err
		}
		engine.Fill(in.Defaults, t)
		part.Tasks[i] = s.row(t)
		part.Specs[i] = models.Spec{Env: s.env, ID: t.ID, Input: t.Input, Payload: t.Payload, Trace: t.Trace, Parent: t.RedriveOf}
		part.Labels = append(part.Labels, t.Labels...)
		if !t.Schedule.IsZero() {
			part.Made = append(part.Made, models.ScheduleTask{Env: s.env, Schedule: t.Schedule, Task: t.ID})
		}
		if t.Items != nil {
			part.Items = append(part.Items, models.Items{Env: s.env, Task: t.ID, Workflow: s.flow, First: t.Items.First, Total: t.Items.Total})
		}
		wide := int32(0)
		for _, dep := range t.DependsOn {
			edge := models.Edge{Env: s.env, From: dep.Task, To: t.ID, On: dep.On}
			if s.inside != nil && !s.inside(dep.Task) {
				edge.State = models.EdgeStaged
				wide++
			}
			part.Edges = append(part.Edges, edge)
		}
		part.Tasks[i].Remaining -= wide
		s.wide = max(s.wide, wide)
		if choice := s.known[internKey(t)].Choice; choice != nil {
			kept := *choice
			kept.Env, kept.Task = s.env, t.ID
			part.Choices = append(part.Choices, kept)
		}
		s.ids = append(s.ids, t.ID)
	}
	s.staging.Tasks += int64(len(tasks))
	part.Staging = s.staging
	ctx, cancel := context.WithTimeout(s.c.UserContext(), brainPatience)
	defer cancel()
	return s.w.db.Stage(ctx, part)
}

// vouch refuses tasks that wait for one outside the body that is not there.
func (s *stager) vouch(tasks []engine.NewTask, first int) error {
	if s.inside == nil {
		return nil
	}
	var ask []models.ID
	for i := range tasks {
		for _, dep := range tasks[i].DependsOn {
			if !s.inside(dep.Task) && !s.vouched[dep.Task] {
				s.vouched[dep.Task] = true
				ask = append(ask, dep.Task)
			}
		}
	}
	missing := map[models.ID]bool{}
	for some := range slices.Chunk(ask, stageAbove) {
		there, err := s.w.Reads.There(s.c.UserContext(), handlers.CallerOf(s.c).Scope(), s.env, some)
		if err != nil {
			return err
		}
		for _, id := range some {
			missing[id] = !there[id]
		}
	}
	for i := range tasks {
		for j, dep := range tasks[i].DependsOn {
			if missing[dep.Task] {
				return models.Invalid(body.At(body.Dot(body.At("body.tasks", first+i), "depends_on"), j), "there is no task %s", dep.Task.Text(models.TaskPrefix))
			}
		}
	}
	return nil
}

// row is a task as it waits outside the world: what counts from its entry stands as a span.
func (s *stager) row(t *engine.NewTask) models.Task {
	in := s.known[internKey(t)]
	row := models.Task{
		Env: s.env, ID: t.ID, State: models.Staged, Lane: in.Lane, Class: in.Class, Priority: t.Priority, WakeAt: t.RunAt, Deadline: t.Deadline,
		ExpiresAt: models.Instant(t.ExpiresInSeconds) * 1_000_000, CreatedAt: s.staging.At, UpdatedAt: s.staging.At, MaxAttempts: t.MaxAttempts,
		Remaining: int32(len(t.DependsOn)), Workflow: s.flow, Key: t.Key, LimitKey: t.LimitKey, KeyLimit: t.KeyLimit, MoreKeys: t.MoreKeys, HardSeconds: t.HardSeconds,
		SoftSeconds: t.SoftSeconds, DelaySeconds: t.DelaySeconds, EstimateMS: t.EstimateMS, Tokens: t.Tokens, CostMicro: t.CostMicro,
	}
	if row.HardSeconds == 0 {
		row.HardSeconds = in.Kind.DefaultHardSeconds()
	}
	if t.HasPolicy {
		row.Flags |= models.HasPolicy
	}
	row.TotalSeconds = t.TotalSeconds
	if t.HasCondition {
		row.Flags |= models.HasCondition
	}
	if t.Items != nil {
		row.Flags |= models.Itemized
	}
	if t.Ordered {
		row.Flags |= models.Ordered
	}
	if t.Model != nil {
		row.Flags |= models.ChoosesModel
	}
	if t.NeedsApproval {
		row.Flags |= models.NeedsApproval
	}
	if t.FailWhenSpent {
		row.Flags |= models.FailWhenSpent
	}
	if !s.flow.IsZero() {
		row.Flags |= models.HasDependants // a later part may wait for it
	}
	return row
}

// internKey names what tasks must share to get the same numbers: where a model is chosen for them, what they want of it too.
func internKey(t *engine.NewTask) string {
	key := t.Lane + " " + t.Class.Digest()
	if t.Model != nil {
		key += fmt.Sprintf(" %+v %d", *t.Model, t.Tokens)
	}
	return key
}

// intern learns the numbers of the classes and lanes that the part uses for the first time, and whether budgets let in what is
// said to cost more than those before.
func (s *stager) intern(tasks []engine.NewTask, first int) error {
	want := &engine.Intern{Env: s.env, Tasks: s.staging.Tasks + int64(len(tasks))}
	var keys []string
	var places []int
	at := map[string]int{} // in want
	for i := range tasks {
		key, says := internKey(&tasks[i]), models.Amount{Micro: tasks[i].CostMicro, Tokens: tasks[i].Tokens}
		most, known := s.dearest[key]
		if known && says.Micro <= most.Micro && says.Tokens <= most.Tokens {
			continue
		}
		if known {
			says = models.Amount{Micro: max(says.Micro, most.Micro), Tokens: max(says.Tokens, most.Tokens)}
		}
		s.dearest[key] = says
		if j, asked := at[key]; asked {
			want.Items[j].Dearest = says
			continue
		}
		at[key] = len(keys)
		keys, places = append(keys, key), append(places, first+i)
		want.Items = append(want.Items, engine.InternItem{Class: tasks[i].Class, Lane: tasks[i].Lane, Schema: tasks[i].Schema, Dearest: says, Model: tasks[i].Model, Needed: tasks[i].Tokens})
	}
	if len(keys) == 0 {
		return nil
	}
	answer, err := ask(s.d, s.c, func(cmd *engine.Command) { cmd.Intern = want })
	if err != nil {
		return located(err, want, places)
	}
	for i, key := range keys {
		s.known[key] = answer.Interned[i]
	}
	return nil
}

// located names the first task of the body that a refused lane belongs to.
func located(err error, asked *engine.Intern, places []int) error {
	var refusal *models.Error
	if !errors.As(err, &refusal) || len(refusal.Fields) == 0 {
		return err
	}
	for i, item := range asked.Items {
		if item.Lane != "" && strings.Contains(refusal.Detail, strconv.Quote(item.Lane)) {
			refusal.Fields[0].Location = body.Dot(body.At("body.tasks", places[i]), "lane")
			break
		}
	}
	return refusal
}

// flip makes what was staged part of the world.
func (s *stager) flip(flow *engine.NewWorkflow, once *engine.Once) (*engine.Answer, error) {
	return ask(s.d, s.c, func(cmd *engine.Command) {
		cmd.Flip = &engine.Flip{Env: s.env, Staging: s.staging.ID, Tasks: int32(s.staging.Tasks), Workflow: flow, Wide: s.wide, Once: once}
	})
}

// extend makes what was staged part of a workflow that is there, and had grown so often when its keys were looked at.
func (s *stager) extend(grown int32, once *engine.Once) (*engine.Answer, error) {
	return ask(s.d, s.c, func(cmd *engine.Command) {
		cmd.Flip = &engine.Flip{Env: s.env, Staging: s.staging.ID, Tasks: int32(s.staging.Tasks), Into: s.flow, Grown: grown, Wide: s.wide, Once: once}
	})
}

// stageBatch submits a large batch whose tasks stand alone.
func (w *Work) stageBatch(d *handlers.Deps, c *fiber.Ctx, tasks []engine.NewTask, once *engine.Once) (*handlers.Made, error) {
	s := w.newStager(d, c, models.ID{})
	if err := s.write(tasks, 0); err != nil {
		return nil, err
	}
	answer, err := s.flip(nil, once)
	if err != nil {
		return nil, err
	}
	if answer.Replay {
		return &handlers.Made{Replay: true}, nil
	}
	rows := make([]BatchRow, len(s.ids))
	for i, id := range s.ids {
		rows[i] = BatchRow{ID: id.Text(models.TaskPrefix), State: models.Pending.String()}
	}
	return &handlers.Made{Status: fiber.StatusCreated, Body: BatchAnswer{rows}}, nil
}
