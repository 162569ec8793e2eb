package postgres_test

import (
	"maps"
	"slices"
	"testing"

	"nightshift/models"
)

func (w *world) retain(now models.Instant) map[string]int64 {
	w.t.Helper()
	gone, err := w.db.Retain(w.t.Context(), now)
	if err != nil {
		w.t.Fatal(err)
	}
	maps.DeleteFunc(gone, func(_ string, n int64) bool { return n == 0 })
	return gone
}

func TestRetainForgetsTheOldAlone(t *testing.T) {
	w := newWorld(t)
	recent := w.now
	for _, at := range []models.Instant{recent.Add(-models.Seconds(8 * 24 * 3600)), recent} {
		w.now = at
		w.apply(&models.Plan{Done: []models.ID{newID(at)}, Events: []models.Event{{Env: env, Name: "lane.paused", At: at}}})
	}
	exec(t, w.db, `UPDATE batches SET at = 1 WHERE batch = 1`) // the world's own
	exec(t, w.db, `INSERT INTO logs (env, task, attempt, at, level, message) SELECT 1, gen_random_uuid(), 1, unnest($1::bigint[]), 'info', 'm'`,
		[]int64{int64(recent.Add(-models.Seconds(15 * 24 * 3600))), int64(recent)})
	for _, at := range []models.Instant{recent.Add(-models.Seconds(31 * 24 * 3600)), recent} {
		exec(t, w.db, `INSERT INTO signals VALUES ($1, 1, $1, 'stop', NULL)`, [16]byte(newID(at)))
	}
	exec(t, w.db, `INSERT INTO spans (env, task, attempt, at, span, name, began, ended, attributes) SELECT 1, gen_random_uuid(), 1, unnest($1::bigint[]), 'a', 'n', 1, 2, '{}'`,
		[]int64{int64(recent.Add(-models.Seconds(15 * 24 * 3600))), int64(recent)})
	if gone := w.retain(recent); !maps.Equal(gone, map[string]int64{"done": 1, "events": 2, "logs": 1, "spans": 1, "signals": 1}) {
		t.Errorf("gone: %v", gone)
	}
	exec(t, w.db, `UPDATE batches SET at = 1`)
	if gone := w.retain(recent); len(gone) > 0 {
		t.Errorf("the newest batch is gone: %v", gone)
	}
	if n := one[int](t, w.db, `SELECT count(*) FROM events`); n != 1 {
		t.Errorf("%d rows of events are left", n)
	}
	w.apply(&models.Plan{Tasks: []models.Task{w.ready()}})
}

// beside writes what stands beside tasks and counts it.
func (w *world) beside(tasks ...models.Task) *models.Plan {
	plan := &models.Plan{Tasks: tasks}
	for _, task := range tasks {
		plan.Specs = append(plan.Specs, models.Spec{Env: env, ID: task.ID, Input: []byte(`{}`)})
		plan.Labels = append(plan.Labels, models.Label{Env: env, Task: task.ID, Key: "k", Value: "v"})
		plan.Attempts = append(plan.Attempts, attemptOf(task, models.AttemptSucceeded))
		plan.Items = append(plan.Items, models.Items{Env: env, Task: task.ID, Workflow: task.ID, Total: 1})
		plan.Progress = append(plan.Progress, models.Progress{Env: env, Task: task.ID, Progress: []byte(`1`)})
	}
	return plan
}

func (w *world) ids() []models.ID {
	w.t.Helper()
	var ids []models.ID
	for _, text := range one[[]string](w.t, w.db, `SELECT coalesce(array_agg(replace(id::text, '-', '') ORDER BY id), '{}') FROM tasks`) {
		var id models.ID
		if err := id.UnmarshalText([]byte(text)); err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for _, table := range []string{"specs", "labels", "attempts", "progress", "task_items"} {
		if n := one[int](w.t, w.db, `SELECT count(*) FROM `+table); n != len(ids) {
			w.t.Errorf("%d rows of %s stand beside %d tasks", n, table, len(ids))
		}
	}
	return ids
}

func TestRetainDeletesWorkThatEndedLongAgo(t *testing.T) {
	w := newWorld(t)
	now := w.now
	w.now = now.Add(-models.Seconds(31 * 24 * 3600))
	final := func(state models.State) models.Task { return w.ended(w.started(w.ready()), state) }
	old, failed, dead, asked, parent, waits := final(models.Succeeded), final(models.Failed), final(models.DeadLetter), final(models.Succeeded), w.ready(), w.ready()
	dead.Fingerprint = newID(w.now)
	asked.Flags = models.HasDependants
	waits.State, waits.Remaining = models.Pending, 1
	child, grown := final(models.Succeeded), final(models.Cancelled)
	child.Parent, child.Key = parent.ID, "a"
	grown.Parent, grown.Key = old.ID, "a"
	late := final(models.Succeeded)
	late.FinishedAt = now.Add(-models.Seconds(29 * 24 * 3600))
	plan := w.beside(old, failed, dead, asked, parent, waits, child, grown, late)
	plan.Edges = []models.Edge{{Env: env, From: asked.ID, To: waits.ID}}
	w.apply(plan)
	if gone := w.retain(now); gone["tasks"] != 3 {
		t.Errorf("gone: %v", gone)
	}
	want := []models.ID{dead.ID, asked.ID, parent.ID, waits.ID, child.ID, late.ID}
	slices.SortFunc(want, models.ID.Compare)
	if got := w.ids(); !slices.Equal(got, want) {
		t.Errorf("left are %v, not %v", got, want)
	}
	exec(t, w.db, `UPDATE tasks SET state = 10 WHERE state IN (2, 3)`)
	if gone := w.retain(now); gone["tasks"] != 4 {
		t.Errorf("later gone: %v", gone)
	}
	if n := one[int](t, w.db, `SELECT count(*) FROM edges`); n != 0 {
		t.Errorf("%d edges are left", n)
	}
}

func TestRetainCountsFromTheEndOfTheWorkflow(t *testing.T) {
	w := newWorld(t)
	now := w.now
	w.now = now.Add(-models.Seconds(40 * 24 * 3600))
	flow := func(state models.WorkflowState, days int, dead int32) models.Workflow {
		f := models.Workflow{Env: env, ID: newID(w.now), Name: "night", Input: []byte(`{}`), State: state, CreatedAt: w.now, UpdatedAt: w.now}
		f.Counts[models.DeadLetter] = dead
		if state.Final() {
			f.FinishedAt = now.Add(-models.Seconds(days * 24 * 3600))
		}
		return f
	}
	over, recent, running, broken := flow(models.WorkflowSucceeded, 31, 0), flow(models.WorkflowSucceeded, 29, 0), flow(models.WorkflowRunning, 0, 0), flow(models.WorkflowFailed, 31, 1)
	of := func(f models.Workflow) models.Task {
		task := w.ended(w.started(w.ready()), models.Succeeded)
		task.Workflow = f.ID
		return task
	}
	a, b, c, d, e := of(over), of(over), of(recent), of(running), of(broken)
	dead := of(broken)
	dead.State, dead.Fingerprint = models.DeadLetter, newID(w.now)
	plan := w.beside(a, b, c, d, e, dead)
	plan.Workflows = []models.Workflow{over, recent, running, broken}
	plan.Edges = []models.Edge{{Env: env, From: a.ID, To: b.ID, State: models.EdgeFired}, {Env: env, From: a.ID, To: c.ID, State: models.EdgeFired}}
	w.apply(plan)
	exec(t, w.db, `INSERT INTO flow_spends SELECT env, id, 1, 1, 1, 1 FROM workflows WHERE id IN ($1, $2)`, [16]byte(over.ID), [16]byte(recent.ID))
	if gone := w.retain(now); !maps.Equal(gone, map[string]int64{"tasks": 2, "workflows": 1}) {
		t.Errorf("gone: %v", gone)
	}
	want := []models.ID{c.ID, d.ID, e.ID, dead.ID}
	slices.SortFunc(want, models.ID.Compare)
	if got := w.ids(); !slices.Equal(got, want) {
		t.Errorf("left are %v, not %v", got, want)
	}
	if n := one[int](t, w.db, `SELECT count(*) FROM edges`); n != 1 {
		t.Errorf("%d edges are left", n)
	}
	if n := one[int](t, w.db, `SELECT count(*) FROM flow_spends`); n != 1 {
		t.Errorf("%d spends are left", n)
	}
	exec(t, w.db, `UPDATE workflows SET counts[8] = 0`) // drifted: the dead letter stays all the same
	if gone := w.retain(now); !maps.Equal(gone, map[string]int64{"tasks": 1}) {
		t.Errorf("of a workflow with a dead letter: %v", gone)
	}
}

// A call deletes a bounded number, the next one goes on; what is kept does not stop it.
func TestRetainGoesOnWhereItStopped(t *testing.T) {
	w := newWorld(t)
	fillOld := func(state, from, n int) {
		exec(t, w.db, `INSERT INTO tasks (env, lane, class, state, priority, flags, attempt, attempts_used, max_attempts, remaining, killed, hard_seconds,
			age_key, created_at, updated_at, id, finished_at, workflow) SELECT 1, 4, 1, $1::smallint, 50, 0, 1, 1, 3, 0, 0, 600, 1, 1, 1,
			(lpad(to_hex(i), 12, '0') || '70008000000000000000')::uuid, 1, CASE WHEN $1::smallint = 9 THEN $4::uuid END
			FROM generate_series($2::int, $2::int + $3::int - 1) i`, state, from, n, [16]byte{1})
	}
	fillOld(7, 1, 1500)
	fillOld(8, 10_000, 59_000)
	fillOld(9, 100_000, 1500)
	exec(t, w.db, `INSERT INTO workflows (env, id, state, priority, cancelling, created_at, updated_at, finished_at, name, counts, input, stops, over, gate, budget, depth, grown)
		VALUES (1, $1, 1, 50, false, 1, 1, 1, 'big', array_fill(0, ARRAY[13]), '{}', false, false, 0, '{}', 0, 0)`, [16]byte{1})
	exec(t, w.db, `UPDATE workflows SET id = '00000000-0001-7000-8000-000000000000'`)
	exec(t, w.db, `UPDATE tasks SET workflow = '00000000-0001-7000-8000-000000000000' WHERE workflow IS NOT NULL`)
	first, second := w.retain(w.now), w.retain(w.now)
	if first["tasks"] != 1500+58_500 || first["workflows"] != 1 || !maps.Equal(second, map[string]int64{"tasks": 500}) {
		t.Errorf("gone: %v, then %v", first, second)
	}
	if gone := w.retain(w.now); len(gone) != 0 {
		t.Errorf("a third time: %v", gone)
	}
	if n := one[int](t, w.db, `SELECT count(*) FROM tasks WHERE state = 7`); n != 1500 {
		t.Errorf("%d dead letters are left", n)
	}
}

func TestRetainDropsBodiesThatNeverFlipped(t *testing.T) {
	w := newWorld(t)
	now := w.now
	stage := func(at models.Instant) models.ID {
		body := &models.StagedBody{Staging: models.Staging{ID: newID(at), Env: env, At: at}}
		for range 3 {
			task := w.ready()
			task.State = models.Staged
			beside := w.beside(task)
			body.Tasks, body.Specs, body.Labels = append(body.Tasks, task), append(body.Specs, beside.Specs...), append(body.Labels, beside.Labels...)
		}
		body.Edges = []models.Edge{{Env: env, From: body.Tasks[0].ID, To: body.Tasks[1].ID}}
		if err := w.store.Stage(t.Context(), body); err != nil {
			t.Fatal(err)
		}
		return body.Staging.ID
	}
	hours := func(n int) models.Instant { return now.Add(-models.Seconds(n * 3600)) }
	stale, fresh, flipped := stage(hours(2)), stage(now), stage(hours(30))
	w.apply(&models.Plan{Flips: []models.ID{flipped}})
	if gone := w.retain(now); !maps.Equal(gone, map[string]int64{"staged": 3}) {
		t.Errorf("gone: %v", gone)
	}
	for table, want := range map[string]int{"tasks": 6, "specs": 6, "labels": 6, "edges": 2, "stagings": 2} {
		if n := one[int](t, w.db, `SELECT count(*) FROM `+table); n != want {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
	w.refused(models.RowCount, &models.Plan{Flips: []models.ID{stale}})
	exec(t, w.db, `UPDATE stagings SET dropped = true WHERE id = $1`, [16]byte(fresh)) // one that is being deleted
	w.refused(models.RowCount, &models.Plan{Flips: []models.ID{fresh}})
	if f := w.facts(&models.Need{Stagings: []models.ID{fresh, flipped}}); len(f.Stagings) != 1 {
		t.Errorf("stagings: %+v", f.Stagings)
	}
	exec(t, w.db, `UPDATE tasks SET state = 3 WHERE staging = $1`, [16]byte(flipped))
	if gone := w.retain(now); !maps.Equal(gone, map[string]int64{"stagings": 1}) {
		t.Errorf("once it has entered: %v", gone)
	}
}
