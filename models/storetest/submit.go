package storetest

import (
	"encoding/json"
	"fmt"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// submits are single tasks and batches, some of them with an Idempotency-Key, which now and then comes twice.
func (r *run) submits(n int) (out []*engine.Command) {
	for range n {
		submit := &engine.Submit{Env: r.env(), InBatch: r.chance(80), Dry: r.chance(4)}
		for range 1 + r.rng.IntN(4) {
			submit.Tasks = append(submit.Tasks, r.task(submit.Env))
		}
		submit.Single = len(submit.Tasks) == 1
		if len(submit.Tasks) > 1 && r.chance(40) {
			submit.Tasks[1].DependsOn = append(submit.Tasks[1].DependsOn, engine.Dependency{Task: submit.Tasks[0].ID, On: r.on()})
		}
		if r.chance(25) {
			submit.Once = &engine.Once{Scope: fmt.Sprintf("%d /v1/tasks", submit.Env), Key: fmt.Sprintf("once-%d", r.rng.IntN(6)), Request: models.ID{1: byte(r.rng.IntN(3))}}
		}
		cmd := r.command(&engine.Command{Submit: submit, Resent: r.chance(5)})
		out = append(out, cmd)
		if r.chance(4) { // the same call again in the same batch
			out = append(out, r.command(&engine.Command{Submit: submit, Resent: true}))
		}
	}
	return out
}

func (r *run) on() models.On { return models.On(r.rng.IntN(3)) }

func (r *run) task(env int32) engine.NewTask {
	t := engine.NewTask{ID: r.id(), Class: r.class(), Priority: int16(r.rng.IntN(5) * 25), MaxAttempts: 1 + r.rng.Int32N(3)}
	input := map[string]any{"type": t.Class.Type, "priority": t.Priority}
	r.keyed(&t)
	if r.chance(10) {
		t.IdemKey = fmt.Sprintf("business-%d", r.rng.IntN(8))
	}
	switch r.rng.IntN(12) {
	case 0:
		t.RunAt = r.now.Add(models.Seconds(1 + r.rng.IntN(90)))
	case 1:
		t.DelaySeconds = 1 + r.rng.Int32N(60)
	case 2:
		t.ExpiresInSeconds = 1 + r.rng.Int32N(60)
	case 3:
		t.HardSeconds, t.SoftSeconds = 5+r.rng.Int32N(60), 3
	case 4:
		t.EstimateMS = 100 + int64(r.rng.IntN(20_000))
	case 5:
		t.Lane = pick(r, []string{"sync", "batch", "realtime", "nowhere"})
	}
	if r.chance(15) {
		t.HasPolicy = true
		input["retry_policy"] = models.RetryPolicy{
			MaxAttempts: t.MaxAttempts, Backoff: pick(r, []string{"fixed", "linear", "exponential"}),
			InitialDelay: 2, MaxDelay: 30, Jitter: r.chance(50), Classes: map[string]models.ClassPolicy{"timeout": {MaxAttempts: 1}},
		}
	}
	if t.Class.Tokens {
		t.Tokens = 1 + r.rng.Int64N(400)
	}
	if r.chance(25) {
		t.CostMicro = pick(r, []int64{models.Free, 5_000, 20_000, 60_000})
	}
	if r.chance(30) {
		r.asks(&t)
	}
	t.FailWhenSpent = r.chance(15)
	t.NeedsApproval = r.chance(4)
	if r.chance(6) {
		t.TotalSeconds = 10 + r.rng.Int32N(60)
	}
	if r.chance(6) {
		t.Dedupe = &models.Dedupe{Key: fmt.Sprintf("like-%d", r.rng.IntN(4)), While: models.While(r.rng.IntN(3)), TTLSeconds: 30}
	}
	if others := r.known.all; r.chance(12) && len(others) > 0 {
		if other := pick(r, others); other.Env == env || r.chance(10) {
			t.DependsOn = append(t.DependsOn, engine.Dependency{Task: other.ID, On: r.on()})
		}
	}
	if r.chance(20) {
		t.Labels = []models.Label{{Env: env, Task: t.ID, Key: "team", Value: pick(r, []string{"red", "blue"})}}
	}
	t.Input, _ = json.Marshal(input)
	if r.chance(60) {
		t.Payload = json.RawMessage(fmt.Sprintf(`{"n": %d}`, r.rng.IntN(1000)))
	}
	return t
}

func (r *run) class() models.Class {
	c := models.Class{Type: pick(r, []string{"a.one", "a.two", "b.one", "b.two", "c.one"})}
	switch r.rng.IntN(10) {
	case 0:
		c.CPUMilli, c.MemoryMB = 1_500, 512
	case 1:
		c.GPU, c.VRAMMB = 1, pick(r, []int64{0, 10_000})
	case 2:
		c.Model = pick(r, []string{"small", "small", "middle"})
	case 3:
		c.Selector = map[string]string{"zone": "north"}
	case 4:
		c.Permissions = []string{"net"}
	case 5:
		c.Tokens = true
	}
	return c
}

// workflow is a body whose tasks wait for earlier ones of it under every condition.
func (r *run) workflow() *engine.Submit {
	submit := &engine.Submit{Env: r.env(), Workflow: r.newWorkflow()}
	for i := range 3 + r.rng.IntN(6) {
		submit.Tasks = append(submit.Tasks, r.member(submit.Env, i, submit.Tasks))
	}
	return submit
}

func (r *run) member(env int32, i int, before []engine.NewTask) engine.NewTask {
	t := r.task(env)
	t.Key, t.IdemKey, t.DependsOn, t.Dedupe = fmt.Sprintf("step-%d", i), "", nil, nil
	if t.Lane == "nowhere" {
		t.Lane = ""
	}
	for j := range before {
		if r.chance(30) {
			t.DependsOn = append(t.DependsOn, engine.Dependency{Task: before[j].ID, On: r.on()})
		}
	}
	if r.chance(20) {
		r.conditioned(&t)
	}
	if r.chance(15) {
		t.Items = &models.Items{First: int32(i), Total: 1 + r.rng.Int32N(4)}
		r.known.itemized[t.ID] = true
	}
	return t
}
