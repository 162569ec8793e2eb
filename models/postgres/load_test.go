package postgres_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

func TestLoadAndRefillShowLines(t *testing.T) {
	w := newWorld(t)
	var tasks []models.Task
	for i := range 12 {
		task := w.ready()
		task.Class = int32(1 + i%2)
		if i%2 == 0 {
			task.LimitKey, task.KeyLimit = "k", 2
		}
		if i >= 8 {
			task.Gate = "key:k"
		}
		tasks = append(tasks, task)
	}
	running := w.started(w.ready())
	w.apply(&models.Plan{Tasks: append(slices.Clone(tasks), running)})
	s := w.load(2, 1000)
	first := models.LineID{Lane: lane, Env: env, Class: 1}
	if len(s.Lines) != 2 || s.Lines[0].Line != first || s.Lines[0].Ready != 4 || len(s.Lines[0].Heads) != 2 {
		t.Fatalf("lines: %+v", s.Lines)
	}
	if !reflect.DeepEqual(s.Lines[0].Heads, []models.Task{tasks[0], tasks[2]}) {
		t.Errorf("the heads are not the first in rank: %+v", s.Lines[0].Heads)
	}
	if len(s.Parked) != 2 || s.Parked[0] != (models.ParkedCount{Line: first, Gate: "key:k", Count: 2, First: tasks[8].AgeKey, Keys: models.KeyText{LimitKey: "k", KeyLimit: 2}}) {
		t.Errorf("parked: %+v", s.Parked)
	}
	if len(s.Keys) != 1 || s.Keys[0].Key != "k" || s.Keys[0].Admitted != 4 || s.Keys[0].Limit != 2 {
		t.Errorf("keys: %+v", s.Keys)
	}
	if len(s.Running) != 1 || s.Running[0] != running || s.Batch != w.batch || s.Now < w.now {
		t.Errorf("running %+v, batch %d", s.Running, s.Batch)
	}
	if len(s.Tenants) != 1 || len(s.Environments) != 1 || !reflect.DeepEqual(s.Kinds, models.DefaultKinds()) || len(s.Lanes) != 1 ||
		!slices.Equal(s.Lanes[0].TaskTypes, []string{"text.*"}) || len(s.Classes) != 1 || s.Classes[0].Selector["zone"] != "a" {
		t.Errorf("configuration: %+v", s)
	}
	if few := w.load(4, 2); len(few.Lines[0].Heads) != 1 {
		t.Errorf("%d heads where 2 in all may be", len(few.Lines[0].Heads))
	}
	mark := models.Mark{AgeKey: tasks[2].AgeKey, ID: tasks[2].ID}
	got, err := w.store.Refill(t.Context(), &models.RefillAsk{Lines: []models.LineAsk{
		{Line: models.LineID{Lane: lane, Env: env, Class: 2}, Gate: "key:k", Limit: 9}, {Line: first, After: mark, Limit: 1}, {Line: models.LineID{Lane: 99}, Limit: 3},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]models.Task{{tasks[9], tasks[11]}, {tasks[4]}, nil}
	if !reflect.DeepEqual(got.Lines, want) {
		t.Errorf("refilled\n%+v, not\n%+v", got.Lines, want)
	}
}

func TestSecondOrderOfALine(t *testing.T) {
	w := newWorld(t)
	due := func(class int32, latest models.Instant) models.Task {
		task := w.ready()
		task.Class, task.Deadline, task.LatestStart = class, latest+9, latest
		return task
	}
	late, soon, same, plain, other := due(1, 900), due(1, 100), due(1, 100), w.ready(), w.ready()
	other.Class = 2
	if soon.ID.Compare(same.ID) > 0 { // of one moment: the id decides
		soon.ID, same.ID = same.ID, soon.ID
	}
	parked, running := due(1, 50), w.started(due(1, 60))
	parked.Gate = "key:k"
	w.apply(&models.Plan{Tasks: []models.Task{late, soon, same, plain, other, parked, running}})
	s := w.load(2, 1000)
	if len(s.Lines) != 2 || s.Lines[0].Ready != 4 || s.Lines[0].Timed != 3 || s.Lines[1].Timed != 0 || s.Lines[1].Starts != nil {
		t.Fatalf("lines: %+v", s.Lines)
	}
	if got := s.Lines[0]; !reflect.DeepEqual(got.Starts, []models.Task{soon, same}) || !reflect.DeepEqual(got.Heads, []models.Task{late, soon}) {
		t.Errorf("by start %+v, by rank %+v", got.Starts, got.Heads)
	}
	line := models.LineID{Lane: lane, Env: env, Class: 1}
	mark := models.Mark{AgeKey: int64(soon.LatestStart), ID: soon.ID}
	got, err := w.store.Refill(t.Context(), &models.RefillAsk{Lines: []models.LineAsk{
		{Line: line, ByStart: true, After: mark, Limit: 9}, {Line: line, Limit: 1}, {Line: line, ByStart: true, Limit: 1}, {Line: line, Gate: "key:k", Limit: 9},
	}})
	if want := [][]models.Task{{same, late}, {late}, {soon}, {parked}}; err != nil || !reflect.DeepEqual(got.Lines, want) {
		t.Errorf("refilled %+v, %v", got.Lines, err)
	}
}

func TestRefillTimers(t *testing.T) {
	w := newWorld(t)
	at := func(state models.State, wake, expires models.Instant) models.Task {
		task := w.ready()
		task.State, task.WakeAt, task.ExpiresAt = state, wake, expires
		if state.Live() {
			task = w.started(task)
		}
		return task
	}
	a, b, c := at(models.Scheduled, 5000, 0), at(models.Ready, 0, 3000), at(models.RetryWait, 9000, 4000)
	w.apply(&models.Plan{Tasks: []models.Task{a, b, c, at(models.Running, 0, 3500), at(models.Succeeded, 3500, 0), at(models.Ready, 0, 0), at(models.Scheduled, 7000, 0)}})
	got, err := w.store.Refill(t.Context(), &models.RefillAsk{Timers: &models.TimerAsk{After: 2999, Until: 5000, Limit: 10}})
	if err != nil || !reflect.DeepEqual(got.Timers, []models.Task{b, c, a}) {
		t.Errorf("timers: %+v, %v", got.Timers, err)
	}
	got, err = w.store.Refill(t.Context(), &models.RefillAsk{Timers: &models.TimerAsk{After: 3000, Until: 5000, Limit: 1}})
	if err != nil || !reflect.DeepEqual(got.Timers, []models.Task{c}) {
		t.Errorf("after 3000: %+v, %v", got.Timers, err)
	}
}

func TestStagedBodyEntersInSlices(t *testing.T) {
	w := newWorld(t)
	body := &models.StagedBody{Staging: models.Staging{ID: newID(w.now), Env: env, At: w.now}}
	workflow := models.Workflow{Env: env, ID: newID(w.now), Name: "night", Input: []byte(`{"name":"night"}`), CreatedAt: w.now, UpdatedAt: w.now}
	for range 5 {
		task := w.ready()
		task.State, task.Workflow, task.IdemKey = models.Staged, workflow.ID, "" // names nothing
		body.Tasks = append(body.Tasks, task)
		body.Specs = append(body.Specs, models.Spec{Env: env, ID: task.ID, Input: []byte(`{}`)})
	}
	head, tail := body.Tasks[0], &body.Tasks[4]
	tail.Remaining = 1
	body.Edges = []models.Edge{{Env: env, From: head.ID, To: tail.ID}}
	for _, part := range [][]models.Task{body.Tasks[:3], body.Tasks[3:]} {
		b := *body
		if b.Tasks = part; len(part) == 2 {
			b.Specs, b.Edges = nil, nil
		}
		if err := w.store.Stage(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
	}
	id := body.Staging.ID
	if s := w.load(4, 100); len(s.Lines)+len(s.Flipped)+len(s.Freed) != 0 {
		t.Errorf("a rebuild sees what is staged: %+v", s)
	}
	cursor := models.Cursor{ID: newID(w.now), Env: env, Kind: models.EnterStaged, Target: id, Actor: models.Actor{Kind: "key", ID: "k"}, Reason: "flip", At: w.now}
	w.apply(&models.Plan{Flips: []models.ID{id}, Workflows: []models.Workflow{workflow}, Cursors: []models.Cursor{cursor}})
	w.refused(models.RowCount, &models.Plan{Flips: []models.ID{id}})
	if err := w.store.Stage(t.Context(), body); models.CodeOf(err) != models.BadData {
		t.Errorf("a flipped body took more: %v", err)
	}
	s := w.load(4, 100)
	if len(s.Flipped) != 1 || s.Flipped[0].Tasks != 5 || !reflect.DeepEqual(s.Cursors, []models.Cursor{cursor}) {
		t.Errorf("flipped %+v, cursors %+v", s.Flipped, s.Cursors)
	}
	slice := func() []models.Task {
		return w.facts(&models.Need{Slices: []models.SliceNeed{{Cursor: cursor, Limit: 3}}}).Slices[cursor.ID]
	}
	for got := slice(); len(got) > 0; got = slice() {
		plan := &models.Plan{}
		for _, task := range got {
			task.State = models.Ready
			if task.Remaining > 0 {
				task.State = models.Pending
			}
			plan.Changes = append(plan.Changes, models.Change{From: models.Staged, After: task})
			cursor.After, cursor.Done = task.ID, cursor.Done+1
		}
		plan.Cursors = []models.Cursor{cursor}
		w.apply(plan)
	}
	f := w.facts(&models.Need{Workflows: []models.TaskRef{{Env: env, ID: workflow.ID}}, Stagings: []models.ID{id}})
	counts := f.Workflows[models.TaskRef{Env: env, ID: workflow.ID}].Counts
	if counts[models.Ready] != 4 || counts[models.Pending] != 1 || cursor.Done != 5 || !f.Stagings[id].Flipped {
		t.Errorf("counts %v, %d done, staging %+v", counts, cursor.Done, f.Stagings[id])
	}
	slices.SortFunc(body.Tasks, func(a, b models.Task) int { return a.ID.Compare(b.ID) })
	cancel := models.Cursor{ID: newID(w.now), Env: env, Kind: models.CancelWorkflow, Target: workflow.ID, Until: body.Tasks[1].ID}
	if got := w.facts(&models.Need{Slices: []models.SliceNeed{{Cursor: cancel, Limit: 9}}}).Slices[cancel.ID]; len(got) != 2 {
		t.Errorf("%d tasks of the workflow up to the second, not 2", len(got))
	}
}

func TestWhatIsRemembered(t *testing.T) {
	w := newWorld(t)
	task := w.started(w.ready())
	once := models.Once{Scope: "1/1/v1/tasks", Key: "k", Request: newID(w.now), Made: []byte(`{"ids":[1]}`), At: w.now}
	command := newID(w.now)
	worker := models.Worker{
		ID: newID(w.now), Tenant: 1, Env: env, KeyID: "key", Name: "w", Instance: "i", Version: "1", Pool: "gpu", TaskTypes: []string{"a", "b,\"c"},
		Kinds: []models.KindName{models.IO, models.Batch}, CPUMilli: 4000, GPUs: []models.GPUCard{{VRAMMB: 24576}}, KindSlots: map[string]int32{"io": 200},
		Labels: map[string]string{"zone": "a"}, LeaseSeconds: 30, Session: newID(w.now), LastSeen: w.now, CreatedAt: w.now, UpdatedAt: w.now,
		Replaced: []models.Instant{1, 2}, Utilization: []byte(`{"cpu":0.5}`),
	}
	lost := attemptOf(task, models.AttemptLost)
	lost.Result, lost.Error = nil, &models.TaskError{Class: "worker_lost", Message: "gone"}
	w.apply(&models.Plan{
		Tasks: []models.Task{task}, Once: []models.Once{once}, Done: []models.ID{command}, Workers: []models.Worker{worker},
		Virtual: []models.Virtual{{Pool: "gpu", Kind: models.Batch, Tenant: 1, Time: 1.25}}, Attempts: []models.Attempt{lost},
		Progress: []models.Progress{{Env: env, Task: task.ID, Progress: []byte(`1`), Checkpoint: []byte(`{"at":1}`)}},
		Audit:    []models.Audit{{Tenant: 1, Env: env, At: w.now, Actor: models.Actor{Kind: "user", ID: "u"}, Action: "lane.pause", Object: "batch", Reason: "why", After: []byte(`{"paused":true}`)}},
	})
	f := w.facts(&models.Need{Once: []models.OnceRef{{Scope: once.Scope, Key: "k"}, {Scope: "x", Key: "k"}}, Done: []models.ID{command, newID(w.now)}})
	if len(f.Once) != 1 || !reflect.DeepEqual(f.Once[models.OnceRef{Scope: once.Scope, Key: "k"}], once) || f.Done[command] != w.batch || len(f.Done) != 1 {
		t.Errorf("facts: %+v", f)
	}
	worker.LastSeen += 10
	late := models.Late{Env: env, Task: task.ID, Token: task.Token, Usage: []byte(`{"tokens":5}`)}
	w.apply(&models.Plan{
		Seen: []models.Seen{{Worker: worker.ID, At: worker.LastSeen}}, Virtual: []models.Virtual{{Pool: "gpu", Kind: models.Batch, Tenant: 1, Time: 2.5}},
		Estimates: []models.Estimate{{Tenant: 1, Class: 1, Counts: []byte{1, 2}}, {Tenant: 1, Class: 2, Counts: []byte{0}}},
		Late:      []models.Late{late}, Progress: []models.Progress{{Env: env, Task: task.ID, Progress: []byte(`2`)}},
	})
	w.refused(models.RowCount, &models.Plan{Late: []models.Late{late}})
	s := w.load(1, 1)
	if !reflect.DeepEqual(s.Workers, []models.Worker{worker}) {
		t.Errorf("the worker came back as\n%+v, not\n%+v", s.Workers, worker)
	}
	if len(s.Virtual) != 1 || s.Virtual[0].Time != 2.5 {
		t.Errorf("virtual times: %+v", s.Virtual)
	}
	w.apply(&models.Plan{Estimates: []models.Estimate{{Tenant: 1, Class: 1, Counts: []byte{3, 0, 4}}}})
	want := []models.Estimate{{Tenant: 1, Class: 1, Counts: []byte{3, 0, 4}}, {Tenant: 1, Class: 2, Counts: []byte{0}}}
	if got := w.load(1, 1).Estimates; !reflect.DeepEqual(got, want) {
		t.Errorf("estimates: %v", got)
	}
	if got := one[string](t, w.db, `SELECT progress || checkpoint FROM progress`); got != `2{"at":1}` {
		t.Errorf("progress and checkpoint are %s", got)
	}
	if got := one[string](t, w.db, `SELECT actor_id || after || reason FROM audit`); got != `u{"paused":true}why` {
		t.Errorf("audit: %s", got)
	}
	worker.State = models.WorkerGone
	w.apply(&models.Plan{Workers: []models.Worker{worker}, LanesGone: []int32{lane}})
	if s := w.load(1, 1); len(s.Workers)+len(s.Lanes) != 0 || s.MostLane != lane {
		t.Errorf("what is gone came back: %+v", s)
	}
}

// TestLoadOfAMillion prints how long a rebuild's reads take with a million ready tasks in 31,000 lines.
func TestLoadOfAMillion(t *testing.T) {
	if !*long {
		t.Skip("needs -long")
	}
	w := newWorld(t)
	exec(t, w.db, `
		INSERT INTO tasks (env, lane, class, state, priority, flags, attempt, attempts_used, max_attempts, remaining, killed, hard_seconds,
			age_key, created_at, updated_at, id, ready_at)
		SELECT i % 1000 + 1, i % 1000 * 4 + 1, i / 1000 % 31 + 1, 3, 50, 0, 0, 0, 3, 0, 0, 600, i, i, i,
			(lpad(to_hex(i), 12, '0') || '70008000000000000000')::uuid, i FROM generate_series(1, 1000000) i`)
	for _, when := range []string{"never vacuumed", "vacuumed"} { // autovacuum lets counts come from the index alone
		if when == "vacuumed" {
			vacuum(t, w.dsn)
		}
		best := time.Hour // of several: on a busy machine it is nearest to a quiet one's
		for range 5 {
			began := time.Now()
			s := w.load(4, 200_000)
			best = min(best, time.Since(began))
			var ready int64
			for _, line := range s.Lines {
				ready += line.Ready
				if len(line.Heads) != 4 {
					t.Fatalf("line %+v has %d heads", line.Line, len(line.Heads))
				}
			}
			if ready != 1_000_000 || len(s.Lines) != 31_000 {
				t.Fatalf("%d tasks in %d lines", ready, len(s.Lines))
			}
		}
		t.Logf("%s: %s", when, best.Round(time.Millisecond))
	}
}

func vacuum(t *testing.T, dsn string) {
	t.Helper()
	owner, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.WithoutCancel(t.Context()))
	if _, err := owner.Exec(t.Context(), `VACUUM ANALYZE tasks`); err != nil {
		t.Fatal(err)
	}
}
