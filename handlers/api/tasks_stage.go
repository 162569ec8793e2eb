package api

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// Bodies above stageAbove tasks are written in parts of as many, in transactions of their own, and become part of the
// world by one command.
const stageAbove = 1_000

// stager writes a large body part by part.
type stager struct {
	w       *Work
	d       *handlers.Deps
	c       *fiber.Ctx
	env     int32
	staging models.Staging
	flow    models.ID // the workflow the tasks belong to, or zero
	known   map[string]engine.Interned
	ids     []models.ID
	// settled are tasks outside the body that have ended, by what they ended as: their edges are fired or killed already.
	settled map[models.ID]models.State
}

func (w *Work) newStager(d *handlers.Deps, c *fiber.Ctx, flow models.ID) *stager {
	env := handlers.CallerOf(c).Env
	return &stager{
		w: w, d: d, c: c, env: env, flow: flow, known: map[string]engine.Interned{},
		staging: models.Staging{ID: d.Mint(), Env: env, At: d.Now()},
	}
}

// part writes the next tasks of the body; first is the place of the first of them. It keeps none of them.
func (s *stager) part(tasks []engine.NewTask, first int) error {
	if err := s.intern(tasks, first); err != nil {
		return err
	}
	part := &models.StagedBody{Tasks: make([]models.Task, len(tasks)), Specs: make([]models.Spec, len(tasks))}
	for i := range tasks {
		t := &tasks[i]
		part.Tasks[i] = s.row(t)
		part.Specs[i] = models.Spec{Env: s.env, ID: t.ID, Input: t.Input, Payload: t.Payload, Trace: t.Trace, Parent: t.RedriveOf}
		part.Labels = append(part.Labels, t.Labels...)
		for _, dep := range t.DependsOn {
			edge := models.Edge{Env: s.env, From: dep.Task, To: t.ID, On: dep.On}
			if state, ended := s.settled[dep.Task]; ended {
				edge.State = dep.On.After(state)
				part.Tasks[i].Remaining--
				if edge.State == models.EdgeKilled {
					part.Tasks[i].Killed++
				}
			}
			part.Edges = append(part.Edges, edge)
		}
		s.ids = append(s.ids, t.ID)
	}
	s.staging.Tasks += int64(len(tasks))
	part.Staging = s.staging
	ctx, cancel := context.WithTimeout(s.c.UserContext(), brainPatience)
	defer cancel()
	return s.w.db.Stage(ctx, part)
}

// row is a task as it waits outside the world: what counts from its entry stands as a span.
func (s *stager) row(t *engine.NewTask) models.Task {
	in := s.known[internKey(t)]
	row := models.Task{
		Env: s.env, ID: t.ID, State: models.Staged, Lane: in.Lane, Class: in.Class, Priority: t.Priority, WakeAt: t.RunAt, Deadline: t.Deadline,
		ExpiresAt: models.Instant(t.ExpiresInSeconds) * 1_000_000, CreatedAt: s.staging.At, UpdatedAt: s.staging.At, MaxAttempts: t.MaxAttempts,
		Remaining: int32(len(t.DependsOn)), Workflow: s.flow, Key: t.Key, LimitKey: t.LimitKey, KeyLimit: t.KeyLimit, HardSeconds: t.HardSeconds,
		SoftSeconds: t.SoftSeconds, DelaySeconds: t.DelaySeconds, EstimateMS: t.EstimateMS,
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

func internKey(t *engine.NewTask) string { return t.Lane + " " + t.Class.Digest() }

// intern learns the numbers of the classes and lanes that the part uses for the first time.
func (s *stager) intern(tasks []engine.NewTask, first int) error {
	want := &engine.Intern{Env: s.env}
	var keys []string
	var places []int
	for i := range tasks {
		key := internKey(&tasks[i])
		if _, known := s.known[key]; known {
			continue
		}
		s.known[key] = engine.Interned{}
		keys, places = append(keys, key), append(places, first+i)
		want.Items = append(want.Items, engine.InternItem{Class: tasks[i].Class, Lane: tasks[i].Lane})
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
		cmd.Flip = &engine.Flip{Env: s.env, Staging: s.staging.ID, Tasks: int32(s.staging.Tasks), Workflow: flow, Once: once}
	})
}

// stageBatch submits a large batch whose tasks stand alone.
func (w *Work) stageBatch(d *handlers.Deps, c *fiber.Ctx, tasks []engine.NewTask, once *engine.Once) (*handlers.Made, error) {
	s := w.newStager(d, c, models.ID{})
	for first := 0; first < len(tasks); first += stageAbove {
		if err := s.part(tasks[first:min(first+stageAbove, len(tasks))], first); err != nil {
			return nil, err
		}
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
