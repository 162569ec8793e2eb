package engine_test

import (
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// An environment that is sealed takes nothing until the seal is taken off or lapses; one that was not sealed by this brain
// is not closed; a closed one takes nothing, also after a rebuild, and leaves its name to another.
func TestAnEnvironmentIsSealedBeforeItIsClosed(t *testing.T) {
	w := newWorld(t, engine.Config{})
	tenant := w.engine.Board().TenantOf(w.env)
	create := func() (*engine.Answer, error) {
		return w.try(&engine.Command{Configure: &engine.Configure{New: true, Action: "environment.create", Environment: &models.Environment{ID: w.id(), Tenant: tenant, Name: "staging", Kind: "staging"}}})
	}
	made, err := create()
	w.must(err)
	env := made.Environment.Env
	ask := func(c engine.Configure) error {
		c.CloseEnvironment, c.Action = env, "environment.delete"
		_, err := w.try(&engine.Command{Configure: &c})
		return err
	}
	submit := func() error {
		_, err := w.try(&engine.Command{Submit: &engine.Submit{Env: env, Tasks: []engine.NewTask{w.task()}, InBatch: true, Dry: true}})
		w.must(err)
		_, err = w.try(&engine.Command{Submit: &engine.Submit{Env: env, Tasks: []engine.NewTask{w.task(func(n *engine.NewTask) { n.Lane = "nowhere" })}, InBatch: true}})
		return err
	}
	wanted := func(what string, err error, code models.Code) {
		t.Helper()
		if models.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", what, err, code)
		}
	}
	open := models.ValidationFailed // there is no such lane: it got past the seal
	wanted("not sealed", ask(engine.Configure{}), models.Unavailable)
	wanted("before", submit(), open)
	w.must(ask(engine.Configure{Seal: true}))
	wanted("sealed", submit(), models.StateConflict)
	w.must(ask(engine.Configure{Unseal: true}))
	wanted("unsealed", submit(), open)
	wanted("closed without a seal", ask(engine.Configure{}), models.Unavailable)
	w.must(ask(engine.Configure{Seal: true}))
	w.advance(16 * time.Second)
	wanted("lapsed", submit(), open)
	wanted("closed after the seal lapsed", ask(engine.Configure{}), models.Unavailable)

	w.must(ask(engine.Configure{Seal: true}))
	wanted("stale", ask(engine.Configure{Version: 9}), models.Stale)
	w.must(ask(engine.Configure{Version: made.Environment.Version}))
	for _, when := range []string{"closed", "after a rebuild"} {
		wanted(when, submit(), models.NotFound)
		wanted(when, ask(engine.Configure{Seal: true}), models.NotFound)
		_, err := w.try(&engine.Command{Configure: &engine.Configure{New: true, Action: "lane.create", Lane: &models.Lane{Env: env, Name: "sync", Kind: models.IO, Weight: 1, HighWater: 1}}})
		wanted(when, err, models.NotFound)
		w.rebuild()
	}
	if again, err := create(); err != nil || again.Environment.Env == env {
		t.Errorf("made again: %+v, %v", again, err)
	}
	_, err = create()
	wanted("twice", err, models.StateConflict)
}
