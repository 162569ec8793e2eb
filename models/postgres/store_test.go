package postgres_test

import (
	"crypto/rand"
	"reflect"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/postgres"
)

const (
	env   = int32(1)
	lane  = int32(4)
	class = int32(1)
)

// world is a store that is the brain, with a tenant, its environment, a lane and a class.
type world struct {
	t     testing.TB
	db    *postgres.DB
	dsn   string
	store *postgres.Writer
	epoch int64
	batch int64
	now   models.Instant
}

func newID(at models.Instant) models.ID {
	var entropy [10]byte
	rand.Read(entropy[:])
	return models.NewID(at, entropy)
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldWithin(t, patience)
}

// newWorldWithin is newWorld with another time for a batch.
func newWorldWithin(t testing.TB, batch time.Duration) *world {
	t.Helper()
	db, dsn := openWithin(t, batch)
	w := &world{t: t, db: db, dsn: dsn, store: db.Writer()}
	t.Cleanup(w.store.Close)
	w.epoch = takeOver(t, w.store)
	w.now = w.facts(&models.Need{}).Now
	w.apply(&models.Plan{
		Tenants:      []models.Tenant{{Number: 1, ID: newID(w.now), Slug: "north", Name: "North", Weight: 5, Timezone: "UTC", CreatedAt: w.now, UpdatedAt: w.now, Version: 1}},
		Environments: []models.Environment{{Env: env, ID: newID(w.now), Tenant: 1, Name: "production", Kind: "production", CreatedAt: w.now, UpdatedAt: w.now, Version: 1}},
		Kinds:        models.DefaultKinds(),
		Lanes:        []models.Lane{{Number: lane, Env: env, Name: "batch", Kind: models.Batch, Weight: 1, TaskTypes: []string{"text.*"}, First: true, CreatedAt: w.now, UpdatedAt: w.now, Version: 1}},
		Classes:      []models.Class{{Number: class, Type: "text.embed", CPUMilli: 100, Selector: map[string]string{"zone": "a"}}},
	})
	return w
}

// takeOver makes a store the brain. A takeover has eight seconds: on a machine that stands still for that long it is tried again.
func takeOver(t testing.TB, store *postgres.Writer) int64 {
	t.Helper()
	seen, err := store.Brain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	epoch, err := store.TakeOver(t.Context(), seen, "127.0.0.1:1")
	for end := time.Now().Add(patience); err != nil && models.CodeOf(err) != models.FenceLost && time.Now().Before(end); {
		if seen, err = store.Brain(t.Context()); err == nil {
			epoch, err = store.TakeOver(t.Context(), seen, "127.0.0.1:1")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if epoch != seen.Epoch+1 {
		t.Fatalf("epoch %d follows %d", epoch, seen.Epoch)
	}
	return epoch
}

// plan numbers a plan as the next batch.
func (w *world) plan(p *models.Plan) *models.Plan {
	w.batch++
	p.Epoch, p.Batch, p.At = w.epoch, w.batch, w.now
	return p
}

func (w *world) apply(p *models.Plan) *models.Effects {
	w.t.Helper()
	effects, err := w.store.Apply(w.t.Context(), w.plan(p))
	if err != nil {
		w.t.Fatal(err)
	}
	return effects
}

// refused applies a plan that must fail with this code.
func (w *world) refused(code models.Code, p *models.Plan) {
	w.t.Helper()
	_, err := w.store.Apply(w.t.Context(), w.plan(p))
	if models.CodeOf(err) != code {
		w.t.Fatalf("wanted %s, got %v", code, err)
	}
	w.batch--
}

func (w *world) facts(need *models.Need) *models.Facts {
	w.t.Helper()
	f, err := w.store.Facts(w.t.Context(), need)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

func (w *world) load(heads, most int) *models.Snapshot {
	w.t.Helper()
	s, err := w.store.Load(w.t.Context(), heads, most)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// ready is a new ready task.
func (w *world) ready() models.Task {
	w.now++
	return models.Task{
		Env: env, ID: newID(w.now), State: models.Ready, Lane: lane, Class: class, Priority: 50,
		AgeKey: models.AgeKeyOf(w.now, 50), ReadyAt: w.now, CreatedAt: w.now, UpdatedAt: w.now, MaxAttempts: 3, HardSeconds: 600,
	}
}

func (w *world) started(t models.Task) models.Task {
	t.State, t.Attempt, t.AttemptsUsed, t.StartedAt, t.UpdatedAt = models.Running, t.Attempt+1, t.AttemptsUsed+1, w.now, w.now
	t.Worker, t.AttemptID, t.Token, t.LeaseUntil = newID(w.now), newID(w.now), newID(w.now), w.now+30_000_000
	return t
}

// ended is a running task after its attempt.
func (w *world) ended(t models.Task, state models.State) models.Task {
	t.State, t.FinishedAt, t.UpdatedAt = state, w.now, w.now
	t.AttemptID, t.Token, t.LeaseUntil = models.ID{}, models.ID{}, 0
	return t
}

func attemptOf(t models.Task, outcome models.Outcome) models.Attempt {
	return models.Attempt{
		Env: t.Env, Task: t.ID, N: t.Attempt, ID: t.AttemptID, Token: t.Token, Worker: t.Worker, Outcome: outcome, Pool: "cpu",
		StartedAt: t.StartedAt, FinishedAt: t.StartedAt + 5, ChargedMS: 12, Result: []byte(`{"ok":true}`),
	}
}

func refOf(t models.Task) models.TaskRef { return models.TaskRef{Env: t.Env, ID: t.ID} }

func TestLifeCycle(t *testing.T) {
	w := newWorld(t)
	a := w.ready()
	a.IdemKey, a.LimitKey, a.KeyLimit, a.ExpiresAt, a.SoftSeconds, a.EstimateMS = "k", "gpu", 2, w.now+9e6, 60, 1500
	input := []byte(`{"name":"A","retry_policy":{"max_attempts":7}}`)
	w.apply(&models.Plan{
		Tasks: []models.Task{a}, Specs: []models.Spec{{Env: env, ID: a.ID, Input: input, Payload: []byte(`{"n":1}`)}},
		Labels: []models.Label{{Env: env, Task: a.ID, Key: "team", Value: "x"}},
	})
	f := w.facts(&models.Need{Tasks: []models.TaskRef{refOf(a)}, IdemKeys: []models.IdemRef{{Env: env, Key: "k"}}, Policies: []models.TaskRef{refOf(a)}})
	if got := f.Tasks[refOf(a)]; got != a {
		t.Errorf("the row came back as\n%+v, not\n%+v", got, a)
	}
	if f.IdemKeys[models.IdemRef{Env: env, Key: "k"}].ID != a.ID || f.Policies[refOf(a)].MaxAttempts != 7 || f.Policies[refOf(a)].MaxDelay != 300 {
		t.Errorf("facts: %+v", f)
	}
	running := w.started(a)
	w.apply(&models.Plan{Changes: []models.Change{{From: models.Ready, After: running}}})
	done := w.ended(running, models.Succeeded)
	w.apply(&models.Plan{
		Changes:  []models.Change{{From: models.Running, Token: running.Token, After: done}},
		Attempts: []models.Attempt{attemptOf(running, models.AttemptSucceeded)},
		Events:   []models.Event{{Env: env, Name: "task.succeeded", Task: a.ID, At: w.now}, {Name: "platform"}, {Env: env, Name: "last"}},
	})
	token := models.TokenRef{Env: env, Task: a.ID, Token: running.Token}
	f = w.facts(&models.Need{Tasks: []models.TaskRef{refOf(a)}, Tokens: []models.TokenRef{token}})
	if f.Tasks[refOf(a)] != done {
		t.Errorf("after its end: %+v", f.Tasks[refOf(a)])
	}
	if got := f.Tokens[token]; !reflect.DeepEqual(got, attemptOf(running, models.AttemptSucceeded)) {
		t.Errorf("the attempt came back as %+v", got)
	}
	if n := one[int](t, w.db, `SELECT json_array_length(items::json) FROM events WHERE env = 1 AND batch = $1`, w.batch); n != 2 {
		t.Errorf("%d events are packed for the environment", n)
	}
}

// TestEveryFieldIsKept finds a field of Task that the tables forget, whichever is added next.
func TestEveryFieldIsKept(t *testing.T) {
	w := newWorld(t)
	filled := func(state models.State) (task models.Task) {
		v := reflect.ValueOf(&task).Elem()
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString(v.Type().Field(i).Name)
			case reflect.Array:
				f.Set(reflect.ValueOf(newID(w.now)))
			default:
				f.SetInt(int64(i + 1))
			}
		}
		task.Env, task.State, task.Gate = env, state, "" // only ready tasks have a gate, only live ones a token
		return task
	}
	task := filled(models.Running)
	w.apply(&models.Plan{Tasks: []models.Task{task}})
	if got := w.facts(&models.Need{Tasks: []models.TaskRef{refOf(task)}}).Tasks[refOf(task)]; got != task {
		t.Errorf("inserted\n%+v, read\n%+v", task, got)
	}
	after := filled(models.Ready)
	after.ID, after.Remaining, after.Killed, after.Gate, after.Token, after.Key = task.ID, task.Remaining, task.Killed, "key:x", models.ID{}, "another"
	after.Priority, after.AgeKey, after.Attempt, after.Cards = 77, 78, 79, 80
	w.apply(&models.Plan{Changes: []models.Change{{From: models.Running, Token: task.Token, After: after}}})
	if got := w.facts(&models.Need{Tasks: []models.TaskRef{refOf(task)}}).Tasks[refOf(task)]; got != after {
		t.Errorf("changed to\n%+v, read\n%+v", after, got)
	}
}

func TestGuardsFailTheWholePlan(t *testing.T) {
	w := newWorld(t)
	a, b := w.ready(), w.ready()
	b.IdemKey = "held"
	w.apply(&models.Plan{Tasks: []models.Task{a, b}})
	running := w.started(a)
	w.apply(&models.Plan{Changes: []models.Change{{From: models.Ready, After: running}}})
	other := w.ready()

	stale := models.Change{From: models.Running, Token: newID(w.now), After: w.ended(running, models.Succeeded)}
	w.refused(models.RowCount, &models.Plan{Tasks: []models.Task{other}, Changes: []models.Change{stale}})
	w.refused(models.RowCount, &models.Plan{Changes: []models.Change{{From: models.Ready, After: w.started(a)}}})
	twice := w.ready()
	twice.IdemKey = "held"
	w.refused(models.BadData, &models.Plan{Tasks: []models.Task{other, twice}})
	w.refused(models.BadData, &models.Plan{Tasks: []models.Task{other, a}})
	nul := w.ready()
	nul.LimitKey = "a\x00b"
	w.refused(models.BadData, &models.Plan{Tasks: []models.Task{other, nul}})
	live := w.ready()
	live.State = models.Running
	w.refused(models.BadData, &models.Plan{Tasks: []models.Task{other, live}})
	for _, spoil := range []func(*models.Task){
		func(t *models.Task) { t.Token = newID(w.now) }, // ready with a token
		func(t *models.Task) { t.State, t.Gate = models.Succeeded, "key:x" },
		func(t *models.Task) { t.State, t.Remaining = models.Pending, -1 },
		func(t *models.Task) { t.State, t.Killed = models.Pending, -1 },
	} {
		unsound := w.ready()
		spoil(&unsound)
		w.refused(models.BadData, &models.Plan{Tasks: []models.Task{other, unsound}})
	}
	w.refused(models.BadData, &models.Plan{Tasks: []models.Task{other}, Changes: []models.Change{{From: models.Succeeded, After: b}}})
	w.refused(models.BadData, &models.Plan{Tasks: []models.Task{other}, Changes: []models.Change{{From: models.Ready, After: w.ended(b, models.Staged)}}})
	w.refused(models.RowCount, &models.Plan{Tasks: []models.Task{other}, Flips: []models.ID{newID(w.now)}})
	w.epoch--
	w.refused(models.FenceLost, &models.Plan{Tasks: []models.Task{other}})
	w.epoch++
	w.batch-- // a batch's number is used once
	w.refused(models.BadData, &models.Plan{Tasks: []models.Task{other}})
	w.batch++

	if f := w.facts(&models.Need{Tasks: []models.TaskRef{refOf(other), refOf(a)}}); len(f.Tasks) != 1 || f.Tasks[refOf(a)] != running {
		t.Errorf("a failed plan left something behind: %+v", f.Tasks)
	}
	w.apply(&models.Plan{Tasks: []models.Task{other}}) // the connection still serves
}

func TestEdgesFireOnce(t *testing.T) {
	w := newWorld(t)
	a, b := w.started(w.ready()), w.started(w.ready())
	after := func(remaining int32) models.Task {
		t := w.ready()
		t.State, t.Remaining, t.ReadyAt = models.Pending, remaining, 0
		return t
	}
	both, ifFailed, whenDone := after(2), after(1), after(1)
	edge := func(from, to models.Task, on models.On) models.Edge {
		return models.Edge{Env: env, From: from.ID, To: to.ID, On: on}
	}
	effects := w.apply(&models.Plan{Tasks: []models.Task{a, b, both, ifFailed, whenDone}, Edges: []models.Edge{
		edge(a, both, models.OnSucceeded), edge(b, both, models.OnSucceeded), edge(a, ifFailed, models.OnFailed), edge(b, whenDone, models.OnFinished),
	}})
	if len(effects.Freed) != 0 {
		t.Fatalf("freed too early: %+v", effects.Freed)
	}
	end := func(x models.Task, state models.State) *models.Effects {
		after := w.ended(x, state)
		if state == models.DeadLetter {
			after.Fingerprint = newID(w.now)
		}
		return w.apply(&models.Plan{Changes: []models.Change{{From: models.Running, Token: x.Token, After: after}}, Ends: []models.End{{Env: env, Task: x.ID, State: state}}})
	}
	freed := func(e *models.Effects) map[models.ID][2]int32 {
		got := map[models.ID][2]int32{}
		for _, f := range e.Freed {
			got[f.ID] = [2]int32{f.Remaining, f.Killed}
		}
		return got
	}
	if got := freed(end(a, models.Succeeded)); !reflect.DeepEqual(got, map[models.ID][2]int32{ifFailed.ID: {0, 1}}) {
		t.Errorf("a's success freed %v", got)
	}
	// A dead letter leaves "succeeded" open, so both still waits; its redrive's success fires it.
	if got := freed(end(b, models.DeadLetter)); !reflect.DeepEqual(got, map[models.ID][2]int32{whenDone.ID: {0, 0}}) {
		t.Errorf("b's death freed %v", got)
	}
	if got := freed(w.apply(&models.Plan{Ends: []models.End{{Env: env, Task: b.ID, State: models.Succeeded}}})); !reflect.DeepEqual(got, map[models.ID][2]int32{both.ID: {0, 0}}) {
		t.Errorf("b's late success freed %v", got)
	}
	if got := freed(w.apply(&models.Plan{Ends: []models.End{{Env: env, Task: b.ID, State: models.Succeeded}, {Env: env, Task: a.ID, State: models.Succeeded}}})); len(got) != 0 {
		t.Errorf("edges fired twice: %v", got)
	}
	if s := w.load(4, 100); len(s.Freed) != 3 {
		t.Errorf("a rebuild finds %d freed tasks, not 3", len(s.Freed))
	}
}
