package postgres_test

import (
	"testing"

	"nightshift/models"
	"nightshift/models/postgres"
)

func TestSweepsFindPlantedDamageAndSayWhatTheyFound(t *testing.T) {
	w := newWorld(t)
	long := w.now.Add(-models.Seconds(3600))
	whole, waiting := w.ready(), w.ready()
	waiting.State, waiting.Remaining, waiting.ReadyAt = models.Pending, 1, 0
	plan := w.beside(whole)
	plan.Tasks = append(plan.Tasks, waiting)
	plan.Edges = []models.Edge{{Env: env, From: whole.ID, To: waiting.ID, On: models.OnFinished}}
	flow := models.Workflow{Env: env, ID: newID(long), Name: "stuck", Input: []byte(`{}`), CreatedAt: long, UpdatedAt: long}
	ended := models.Workflow{Env: env, ID: newID(long), Name: "ended", State: models.WorkflowSucceeded, Input: []byte(`{}`), CreatedAt: long, UpdatedAt: long, FinishedAt: long}
	plan.Workflows = []models.Workflow{flow, ended}
	w.apply(plan)
	sweep := func() *postgres.Swept {
		t.Helper()
		out, err := w.db.Sweep(t.Context(), w.now)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	exec(t, w.db, `UPDATE workflows SET state = 1 WHERE name = 'stuck'`) // not damaged yet
	exec(t, w.db, `INSERT INTO schedule_tasks (env, schedule, task) SELECT 1, gen_random_uuid(), id FROM workflows UNION ALL SELECT 1, gen_random_uuid(), id FROM tasks`)
	if out := sweep(); out.Found["orphans"]+out.Found["waits"]+out.Found["counts"]+out.Found["stuck_workflows"] != 0 || len(out.Found) != 4 {
		t.Fatalf("what is sound is found: %+v", out)
	}
	exec(t, w.db, `INSERT INTO specs (env, id, input) VALUES (1, gen_random_uuid(), '{}')`)
	exec(t, w.db, `INSERT INTO labels (env, task, key, value) SELECT 1, gen_random_uuid(), 'k', 'v' FROM generate_series(1, 3)`)
	exec(t, w.db, `UPDATE tasks SET remaining = 2 WHERE state = 2`)
	exec(t, w.db, `UPDATE workflows SET state = 0 WHERE name = 'stuck'`)
	exec(t, w.db, `UPDATE workflows SET counts[9] = 4 WHERE name = 'ended'`)
	out := sweep()
	if out.Found["orphans"] != 4 || out.Found["waits"] != 1 || out.Found["counts"] != 1 || out.Found["stuck_workflows"] != 1 {
		t.Errorf("found %+v", out.Found)
	}
	if len(out.Stuck) != 1 || out.Stuck[0].ID != flow.ID || len(out.Drift) != 2 || out.Drift[0].Task != waiting.ID || out.Drift[1].Workflow != ended.ID {
		t.Errorf("named %+v", out)
	}
	if again := sweep(); again.Found["orphans"] != 0 || again.Found["waits"] != 1 {
		t.Errorf("again: %+v", again.Found)
	}
	if n := one[int](t, w.db, `SELECT count(*) FROM schedule_tasks`); n != 4 {
		t.Errorf("of two workflows and two tasks that schedules made %d are known to be", n)
	}
	if n := one[int](t, w.db, `SELECT count(*) FROM specs`); n != 1 {
		t.Errorf("%d specs are left beside one task", n)
	}
	records, err := postgres.NewReads(w.db).Sweeps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.LastRun != w.now || r.EverySeconds != postgres.SweepEvery || r.Name == "orphans" && (r.Total != 4 || r.Found != 0) {
			t.Errorf("recorded %+v", r)
		}
	}
	if len(records) != 4 {
		t.Errorf("%d sweeps are recorded", len(records))
	}
}
