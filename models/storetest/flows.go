package storetest

import (
	"encoding/json"
	"fmt"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// conditions are judged now and then; the last two cannot be.
var conditions = []string{
	`deps.all(d, d.state == "succeeded")`, `deps.exists(d, d.state != "succeeded")`, `deps.exists(d, d.result != null && d.result.n > 300)`,
	`payload == null || payload.size() > 0`, `true`, `deps[9].state == "failed"`, `payload.n`,
}

func (r *run) newWorkflow() *engine.NewWorkflow {
	w := &engine.NewWorkflow{ID: r.id(), Name: "night", Priority: int16(r.rng.IntN(3) * 40), Input: json.RawMessage(`{"name":"night"}`), Stops: r.chance(25)}
	switch r.rng.IntN(8) {
	case 0:
		w.Budget.CostMicro = 30_000 + int64(r.rng.IntN(60_000))
	case 1:
		w.Budget.Tokens = 10 + int64(r.rng.IntN(60))
	case 2:
		w.Budget.RuntimeSeconds = 20 + r.rng.Int32N(300)
	case 3:
		w.Budget.Tasks = 3 + r.rng.Int32N(9)
	case 4, 5:
		w.Budget.Retries = 1 + int64(r.rng.IntN(4))
	}
	return w
}

// conditioned gives a task a condition.
func (r *run) conditioned(t *engine.NewTask) {
	input := map[string]any{}
	_ = json.Unmarshal(t.Input, &input)
	input["run_if"] = pick(r, conditions)
	t.Input, _ = json.Marshal(input)
	t.HasCondition = true
}

// steer asks something of a workflow, adds to it, or skips a task.
func (r *run) steer() *engine.Command {
	flow := pick(r, r.known.workflows)
	if flow.ID.IsZero() || r.chance(3) {
		flow = models.TaskRef{Env: r.env(), ID: r.id()}
	}
	s := &engine.Steer{Env: flow.Env, Workflow: flow.ID, Reason: "asked for"}
	switch r.rng.IntN(9) {
	case 0, 1:
		s.Pause = true
	case 2, 3:
		s.Resume = true
	case 4:
		s.Retry = true
	case 5:
		priority := int16(r.rng.IntN(100))
		label := fmt.Sprint(r.rng.IntN(9))
		s.Edit = &engine.FlowEdit{Priority: &priority, Labels: map[string]*string{"edited": &label}}
	case 6:
		s.Edit = &engine.FlowEdit{Budget: &models.FlowBudget{CostMicro: int64(r.rng.IntN(200_000)), Tokens: int64(r.rng.IntN(200)), RuntimeSeconds: r.rng.Int32N(900)}}
	case 7:
		grow := &engine.Submit{Env: flow.Env, Into: flow.ID, Grown: r.rng.Int32N(2)}
		for i := range 1 + r.rng.IntN(3) {
			t := r.member(flow.Env, i, grow.Tasks)
			t.Key += fmt.Sprintf("-%x", t.ID[12:])
			grow.Tasks = append(grow.Tasks, t)
		}
		return r.command(&engine.Command{Submit: grow})
	default:
		ref := pick(r, r.known.all)
		return r.command(&engine.Command{Skip: &engine.Skip{Env: ref.Env, Task: ref.ID, Reason: "not tonight"}})
	}
	return r.command(&engine.Command{Steer: s})
}
