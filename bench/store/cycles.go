package store

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"nightshift/models"
	"nightshift/models/postgres"
)

const (
	env, lane, class = int32(1), int32(4), int32(1)
	result           = `{"rows":128,"ok":true}`
)

// input is a submit as answered back, without its payload.
var input = json.RawMessage(`{"type":"text.embed","name":"embed chapter 7","lane":"batch","priority":50,"labels":{"team":"search"},` +
	`"requirements":{"cpu_milli":500,"memory_mb":256},"retry_policy":{"max_attempts":3}}`)

// cycles drives the store as the engine does.
type cycles struct {
	store  *postgres.Writer
	epoch  int64
	batch  int64
	now    models.Instant
	worker models.ID
}

var (
	random  = rand.New(rand.NewPCG(1, 2))
	counter uint64
)

// newID is a UUIDv7 of the moment, in rising order as ids made at the edge are.
func newID(at models.Instant) models.ID {
	if at == 1 {
		at = models.InstantOf(time.Now())
	}
	var entropy [10]byte
	counter++
	for i, v := range [2]uint64{counter<<16 | random.Uint64()&0xffff, random.Uint64()} {
		for j := range 5 {
			entropy[i*5+j] = byte(v >> (8 * j))
		}
	}
	return models.NewID(at, entropy)
}

func newCycles(ctx context.Context, db *postgres.DB) (*cycles, error) {
	c := &cycles{store: db.Writer()}
	seen, err := c.store.Brain(ctx)
	if err != nil {
		return nil, err
	}
	if c.epoch, err = c.store.TakeOver(ctx, seen, "bench"); err != nil {
		return nil, err
	}
	facts, err := c.store.Facts(ctx, &models.Need{})
	if err != nil {
		return nil, err
	}
	c.batch, c.now = seen.Batch, facts.Now
	c.worker = newID(c.now)
	return c, nil
}

// commit reads the facts of a batch, as the loop does before each, and applies its plan.
func (c *cycles) commit(ctx context.Context, need *models.Need, plan *models.Plan) error {
	facts, err := c.store.Facts(ctx, need)
	if err != nil {
		return err
	}
	c.batch++
	c.now = facts.Now
	plan.Epoch, plan.Batch, plan.At = c.epoch, c.batch, c.now
	_, err = c.store.Apply(ctx, plan)
	return err
}

// lifeCycles does n tasks in batches. With together a task is submitted and started in one commit.
func (c *cycles) lifeCycles(ctx context.Context, n, batch int, payload json.RawMessage, together bool) error {
	for range n / batch {
		tasks := make([]models.Task, batch)
		specs := make([]models.Spec, batch)
		plan := &models.Plan{Tasks: tasks, Specs: specs}
		for i := range tasks {
			tasks[i] = c.task()
			specs[i] = models.Spec{Env: env, ID: tasks[i].ID, Input: input, Payload: payload}
			plan.Events = append(plan.Events, c.event(&tasks[i], "task.submitted"))
			if together {
				c.start(&tasks[i])
				plan.Events = append(plan.Events, c.event(&tasks[i], "task.started"))
			}
		}
		if err := c.commit(ctx, &models.Need{}, plan); err != nil {
			return err
		}
		if !together {
			if err := c.startAll(ctx, tasks); err != nil {
				return err
			}
		}
		if err := c.finishAll(ctx, tasks); err != nil {
			return err
		}
	}
	return nil
}

func (c *cycles) task() models.Task {
	id := newID(c.now)
	return models.Task{
		Env: env, ID: id, State: models.Ready, Lane: lane, Class: class, Priority: 50, AgeKey: models.AgeKeyOf(c.now, 50),
		ReadyAt: c.now, CreatedAt: c.now, UpdatedAt: c.now, MaxAttempts: 3, HardSeconds: 600,
	}
}

func (c *cycles) start(t *models.Task) {
	t.State, t.Attempt, t.AttemptsUsed, t.StartedAt, t.UpdatedAt = models.Running, 1, 1, c.now, c.now
	t.Worker, t.AttemptID, t.Token, t.LeaseUntil = c.worker, newID(c.now), newID(c.now), c.now+30_000_000
}

func (c *cycles) event(t *models.Task, name string) models.Event {
	e := models.Event{Env: env, Name: name, At: c.now, Task: t.ID, State: t.State.String(), Attempt: t.Attempt, Lane: "batch"}
	if t.State.Live() {
		e.Worker = t.Worker
	}
	return e
}

func (c *cycles) startAll(ctx context.Context, tasks []models.Task) error {
	plan := &models.Plan{}
	for i := range tasks {
		c.start(&tasks[i])
		plan.Changes = append(plan.Changes, models.Change{From: models.Ready, Brief: true, After: tasks[i]})
		plan.Events = append(plan.Events, c.event(&tasks[i], "task.started"))
	}
	return c.commit(ctx, &models.Need{}, plan)
}

func (c *cycles) finishAll(ctx context.Context, tasks []models.Task) error {
	plan := &models.Plan{}
	for i := range tasks {
		t := tasks[i]
		plan.Attempts = append(plan.Attempts, models.Attempt{
			Env: env, Task: t.ID, N: 1, ID: t.AttemptID, Token: t.Token, Worker: t.Worker,
			Outcome: models.AttemptSucceeded, Pool: "cpu", StartedAt: t.StartedAt, FinishedAt: c.now, ChargedMS: 7, Result: json.RawMessage(result),
		})
		token := t.Token
		t.State, t.FinishedAt, t.UpdatedAt = models.Succeeded, c.now, c.now
		t.AttemptID, t.Token, t.LeaseUntil = models.ID{}, models.ID{}, 0
		plan.Changes = append(plan.Changes, models.Change{From: models.Running, Token: token, Brief: true, After: t})
		plan.Events = append(plan.Events, c.event(&t, "task.succeeded"))
	}
	return c.commit(ctx, &models.Need{}, plan)
}
