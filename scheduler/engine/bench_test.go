package engine_test

import (
	"encoding/json"
	"testing"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// BenchmarkLifeCycle is what the engine alone spends on a task: submitted in batches of 500, claimed and settled, with
// no store under it.
func BenchmarkLifeCycle(b *testing.B) {
	for _, tenants := range []int{1, 100, 1000} {
		b.Run(map[int]string{1: "tenants=1", 100: "tenants=100", 1000: "tenants=1000"}[tenants], func(b *testing.B) {
			cycle(b, tenants)
		})
	}
}

func cycle(b *testing.B, tenants int) {
	e := engine.New(engine.Config{})
	e.Rebuild(&models.Snapshot{Now: 1_800_000_000_000_000, Kinds: models.DefaultKinds()})
	now, batch, serial := models.Instant(1_800_000_000_000_000), int64(0), 0
	id := func() models.ID {
		serial++
		return models.NewID(now, [10]byte{byte(serial >> 24), byte(serial >> 16), byte(serial >> 8), byte(serial)})
	}
	decide := func(cmds ...*engine.Command) []engine.Reply {
		now += 1000
		batch++
		e.Need(cmds)
		_, replies := e.Decide(batch, 1, &models.Facts{Now: now}, cmds)
		e.Commit(&models.Effects{})
		return replies
	}
	var envs []int32
	for n := range tenants {
		decide(&engine.Command{Configure: &engine.Configure{New: true, Tenant: &models.Tenant{ID: id(), Slug: string(rune(n)), Weight: 1}}})
	}
	for env := range e.Board().Envs {
		envs = append(envs, env)
	}
	worker := models.Worker{ID: id(), Session: id(), Name: "w", Instance: "w", Pool: "cpu", Slots: 1000, LeaseSeconds: 30}
	decide(&engine.Command{Register: &engine.Register{Worker: worker}})
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += 500 {
		tasks := make([]engine.NewTask, 500)
		for i := range tasks {
			tasks[i] = engine.NewTask{ID: id(), Class: models.Class{Type: "work"}, Priority: 50, MaxAttempts: 3, Input: json.RawMessage(`{}`)}
		}
		decide(&engine.Command{Submit: &engine.Submit{Env: envs[(done/500)%len(envs)], Tasks: tasks}})
		leases := decide(&engine.Command{Claim: &engine.Claim{Worker: worker.ID, Session: worker.Session, Most: 500}})[0].Answer.Claimed.Leases
		results := make([]engine.Result, len(leases))
		for i, l := range leases {
			results[i] = engine.Result{Token: l.Row.Token, Outcome: models.AttemptSucceeded}
		}
		decide(&engine.Command{Settle: &engine.Settle{Worker: worker.ID, Session: worker.Session, Results: results}})
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}
