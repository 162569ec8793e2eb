package postgres_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"nightshift/models"
	"nightshift/models/postgres"
)

// numbered is an id made at second n, so that ids sort by n.
func numbered(n int) models.ID {
	return models.NewID(models.Instant(1_700_000_000_000_000+int64(n)*1_000_000), [10]byte{9: byte(n)})
}

func at(n int) models.Instant { return numbered(n).At() }

const readEnv = 5

var readScope = postgres.Scope{Tenant: 1, Envs: []int32{readEnv}}

// seed writes a small world: two lanes, two classes, tasks 1–9 of env 5 in states 1–9, one of another environment, a
// workflow of tasks 7–9 in which 9 waits for 8 and 7, and a worker.
func seed(t *testing.T, db *postgres.DB) {
	t.Helper()
	for n, lane := range []string{"batch", "io"} {
		exec(t, db, `INSERT INTO lanes VALUES ($1, 5, $2, $3, 1, 0, 1000, '{}', false, false, '', true, '', '', '', 0, 0, 1)`, n+1, lane, 3-2*n)
	}
	for n, typ := range []string{"a.one", "b.two"} {
		exec(t, db, `INSERT INTO classes VALUES ($1, sha256($2::text::bytea), $2, jsonb_build_object('type', $2::text, 'cpu_milli', 500))`, n+1, typ)
	}
	insert := func(env, n, state int, workflow any) {
		id := [16]byte(numbered(n))
		var token, fingerprint any
		if state == 4 || state == 6 {
			token = [16]byte{1}
		}
		if state == 7 {
			fingerprint = [16]byte{7}
		}
		exec(t, db, `INSERT INTO tasks (env, lane, class, state, priority, flags, attempt, attempts_used, max_attempts, remaining, killed,
			hard_seconds, age_key, created_at, updated_at, id, workflow, key, token, worker, fingerprint)
			VALUES ($1, $2, $2, $3, 50, 0, 1, 1, 3, 0, 0, 60, 0, $4, $4, $5, $6, $7, $8, $8, $9)`,
			env, 1+n%2, state, int64(at(n)), id, workflow, fmt.Sprintf("k%d", n), token, fingerprint)
		exec(t, db, `INSERT INTO specs (env, id, input, payload) VALUES ($1, $2, '{"labels":{"n":"x"}}', $3)`, env, id, fmt.Sprintf(`{"n": %d}`, n))
		exec(t, db, `INSERT INTO labels VALUES ($1, $2, 'n', $3)`, env, id, fmt.Sprint(n%3))
	}
	workflow := [16]byte(numbered(0))
	for n := 1; n <= 9; n++ {
		if n >= 7 {
			insert(readEnv, n, n, workflow)
		} else {
			insert(readEnv, n, n, nil)
		}
	}
	insert(6, 50, 3, nil)
	exec(t, db, `INSERT INTO workflows (env, id, state, priority, cancelling, created_at, updated_at, name, counts, input, stops, over, gate, budget, depth, grown)
		VALUES (5, $1, 2, 50, false, $2, $2, 'nightly', array_fill(0, ARRAY[13]), '{}', false, false, 0, '{}', 0, 0)`, workflow, int64(at(0)))
	for _, from := range []int{7, 8} {
		exec(t, db, `INSERT INTO edges VALUES (5, $1, $2, 0, $3)`, [16]byte(numbered(from)), [16]byte(numbered(9)), from-7)
	}
	attempt := func(n, try, outcome int, failure, usage, result any) {
		exec(t, db, `INSERT INTO attempts (env, n, task, id, worker, token, started_at, finished_at, charged_ms, outcome, pool, worker_version, model, error, usage, result)
			VALUES (5, $1, $2, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), $3, $3, 0, $4, 'cpu', 'v1', 'small', $5, $6, $7)`,
			try, [16]byte(numbered(n)), int64(at(n)), outcome, failure, usage, result)
	}
	attempt(8, 1, 2, `{"class":"network","message":"cut"}`, `{"tokens_in":3}`, nil)
	attempt(8, 2, 1, nil, `{"tokens_in":4}`, `{"answer": 42}`)
	attempt(7, 1, 2, `{"class":"invalid_input","message":"no text"}`, nil, nil)
	exec(t, db, `INSERT INTO progress VALUES (5, $1, 0, '0.5', '{"at": 7}')`, [16]byte(numbered(4)))
	exec(t, db, `INSERT INTO workers VALUES ($1, 1, 5, 'key', 'w', 'i', 'v1', 'gpu', '{a.*}', '{batch}', '{3}', 4000, 1024, 0, '[{"vram_mb": 24576}]', 8,
		'{"io": 2}', '{small}', '{}', '{"region": "eu"}', 30, $1, 0, false, 5, 5, 5, '{}', NULL)`, [16]byte{1})
}

func numbers(rows []postgres.TaskRow) (out []int) {
	for _, r := range rows {
		out = append(out, int(r.ID.At()-at(0))/1_000_000)
	}
	return out
}

func TestTasksAreListedByFilter(t *testing.T) {
	db, _ := open(t)
	seed(t, db)
	reads := postgres.NewReads(db)
	for _, c := range []struct {
		name string
		f    postgres.TaskFilter
		want []int
	}{
		{"all, newest first", postgres.TaskFilter{Desc: true, Limit: 4}, []int{9, 8, 7, 6}},
		{"the next page", postgres.TaskFilter{Desc: true, Limit: 4, After: numbered(6)}, []int{5, 4, 3, 2}},
		{"oldest first", postgres.TaskFilter{Limit: 3}, []int{1, 2, 3}},
		{"the next page upwards", postgres.TaskFilter{Limit: 3, After: numbered(3)}, []int{4, 5, 6}},
		{"states", postgres.TaskFilter{States: []models.State{models.Pending, models.DeadLetter}, Limit: 9}, []int{2, 7}},
		{"types", postgres.TaskFilter{Types: []string{"b.two"}, Limit: 9}, []int{1, 3, 5, 7, 9}},
		{"lanes", postgres.TaskFilter{Lanes: []string{"batch", "nowhere"}, Limit: 9}, []int{2, 4, 6, 8}},
		{"kinds", postgres.TaskFilter{Kinds: []models.KindName{models.IO}, Limit: 9}, []int{1, 3, 5, 7, 9}},
		{"workflows", postgres.TaskFilter{Workflows: []models.ID{numbered(0)}, Limit: 9}, []int{7, 8, 9}},
		{"workers", postgres.TaskFilter{Workers: []models.ID{{1}}, Limit: 9}, []int{4, 6}},
		{"labels", postgres.TaskFilter{Labels: map[string][]string{"n": {"0", "1"}}, Limit: 9}, []int{1, 3, 4, 6, 7, 9}},
		{"all of it", postgres.TaskFilter{Labels: map[string][]string{"n": {"0"}}, Lanes: []string{"io"}, Limit: 9}, []int{3, 9}},
		{"made between", postgres.TaskFilter{CreatedAfter: at(3), CreatedBefore: at(6), Limit: 9}, []int{4, 5}},
		{"fingerprints", postgres.TaskFilter{Fingerprints: []models.ID{{7}}, Limit: 9}, []int{7}},
	} {
		rows, err := reads.Tasks(t.Context(), readScope, readEnv, &c.f)
		if err != nil || !slices.Equal(numbers(rows), c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.name, numbers(rows), err, c.want)
		}
		if c.f.Limit == 9 && c.f.After.IsZero() {
			if n, more, err := reads.CountTasks(t.Context(), readScope, readEnv, &c.f); err != nil || more || int(n) != len(c.want) {
				t.Errorf("%s: counted %d, %v, %v", c.name, n, more, err)
			}
		}
	}
	if rows, err := reads.Tasks(t.Context(), postgres.Scope{Tenant: 2, Envs: []int32{6}}, readEnv, &postgres.TaskFilter{Limit: 9}); err != nil || len(rows) > 0 {
		t.Errorf("another tenant's scope shows %v, %v", numbers(rows), err)
	}
}

func TestATaskIsReadWhole(t *testing.T) {
	db, _ := open(t)
	seed(t, db)
	reads := postgres.NewReads(db)
	row, err := reads.Task(t.Context(), readScope, readEnv, numbered(8), postgres.Whole)
	if err != nil {
		t.Fatal(err)
	}
	if row.State != models.Succeeded || string(row.Payload) != `{"n": 8}` || string(row.Result) != `{"answer": 42}` || len(row.Usages) != 2 ||
		row.Error == nil || row.Error.Class != "network" || row.LaneName != "batch" || row.Kind != models.Batch || row.Needs.CPUMilli != 500 ||
		row.Model != "small" || row.Workflow != numbered(0) || row.Key != "k8" {
		t.Errorf("got %+v", row)
	}
	if row, err = reads.Task(t.Context(), readScope, readEnv, numbered(9), postgres.Include{}); err != nil || len(row.DependsOn) != 2 || row.Payload != nil {
		t.Errorf("got %+v, %v", row, err)
	}
	if row, err = reads.Task(t.Context(), readScope, readEnv, numbered(4), postgres.Whole); err != nil || string(row.Progress) != "0.5" || row.Token != (models.ID{1}) {
		t.Errorf("got %+v, %v", row, err)
	}
	for _, id := range []models.ID{numbered(50), numbered(99)} {
		if _, err := reads.Task(t.Context(), readScope, readEnv, id, postgres.Whole); models.CodeOf(err) != models.NotFound {
			t.Errorf("got %v", err)
		}
		if _, err := reads.State(t.Context(), readScope, readEnv, id); models.CodeOf(err) != models.NotFound {
			t.Errorf("got %v", err)
		}
	}
	if s, err := reads.State(t.Context(), readScope, readEnv, numbered(3)); err != nil || s.State != models.Ready {
		t.Errorf("got %v, %v", s, err)
	}
	rows, err := reads.TasksByID(t.Context(), readScope, readEnv, []models.ID{numbered(5), numbered(99), numbered(2)}, postgres.Include{})
	if err != nil || !slices.Equal(numbers(rows), []int{5, 2}) {
		t.Errorf("got %v, %v", numbers(rows), err)
	}
	all, err := reads.Attempts(t.Context(), readScope, readEnv, []models.ID{numbered(8), numbered(7), numbered(1)})
	if err != nil || len(all[numbered(8)]) != 2 || all[numbered(8)][0].Error.Class != "network" || all[numbered(8)][1].Error != nil || len(all[numbered(7)]) != 1 || len(all) != 2 {
		t.Errorf("got %+v, %v", all, err)
	}
}

// Rows of a body that has entered show as pending; of one that has not, nothing shows.
func TestStagedRows(t *testing.T) {
	db, _ := open(t)
	seed(t, db)
	reads := postgres.NewReads(db)
	body := [16]byte{9}
	exec(t, db, `UPDATE tasks SET state = 0, staging = $1 WHERE state = 1`, body)
	exec(t, db, `INSERT INTO stagings VALUES ($1, 5, 1, 0, false)`, body)
	f := postgres.TaskFilter{States: []models.State{models.Pending}, Limit: 9}
	if rows, err := reads.Tasks(t.Context(), readScope, readEnv, &f); err != nil || !slices.Equal(numbers(rows), []int{2}) {
		t.Errorf("before: %v, %v", numbers(rows), err)
	}
	exec(t, db, `UPDATE stagings SET flipped = true`)
	rows, err := reads.Tasks(t.Context(), readScope, readEnv, &f)
	if err != nil || !slices.Equal(numbers(rows), []int{1, 2}) || rows[0].State != models.Pending {
		t.Errorf("after: %v, %v", numbers(rows), err)
	}
	if row, err := reads.Task(t.Context(), readScope, readEnv, numbered(1), postgres.Whole); err != nil || row.State != models.Pending {
		t.Errorf("alone: %v", err)
	}
}

func TestWorkflowsAreRead(t *testing.T) {
	db, _ := open(t)
	seed(t, db)
	reads := postgres.NewReads(db)
	w, err := reads.Workflow(t.Context(), readScope, readEnv, numbered(0))
	if err != nil || w.Name != "nightly" || w.Counts[models.Succeeded] != 1 || w.Counts[models.DeadLetter] != 1 || w.Counts.Total() != 3 {
		t.Errorf("got %+v, %v", w, err)
	}
	if _, err := reads.Workflow(t.Context(), readScope, readEnv, numbered(1)); models.CodeOf(err) != models.NotFound {
		t.Errorf("got %v", err)
	}
	f := &postgres.WorkflowFilter{States: []models.WorkflowState{models.WorkflowFailed}, CreatedAfter: at(-1), Desc: true, Limit: 5}
	rows, err := reads.Workflows(t.Context(), readScope, readEnv, f)
	if n, _, cerr := reads.CountWorkflows(t.Context(), readScope, readEnv, f); err != nil || cerr != nil || len(rows) != 1 || n != 1 {
		t.Errorf("got %v, %v, %v", rows, err, cerr)
	}
	f.After = numbered(0)
	if rows, err := reads.Workflows(t.Context(), readScope, readEnv, f); err != nil || len(rows) != 0 {
		t.Errorf("got %v, %v", rows, err)
	}
	nodes, edges, more, err := reads.Graph(t.Context(), readScope, readEnv, numbered(0), 10)
	if err != nil || more || len(nodes) != 3 || nodes[0].Key != "k7" || nodes[1].Type != "a.one" || len(edges) != 2 || edges[0].From != numbered(7) || edges[1].State != models.EdgeFired {
		t.Errorf("got %+v, %+v, %v, %v", nodes, edges, more, err)
	}
	if nodes, _, more, err := reads.Graph(t.Context(), readScope, readEnv, numbered(0), 2); err != nil || !more || len(nodes) != 2 {
		t.Errorf("got %+v, %v, %v", nodes, more, err)
	}
}

func TestDeadLettersAreGrouped(t *testing.T) {
	db, _ := open(t)
	seed(t, db)
	reads := postgres.NewReads(db)
	exec(t, db, `UPDATE tasks SET state = 7, fingerprint = $1 WHERE state IN (2, 3) AND env = 5`, [16]byte{8})
	f := &postgres.DeadFilter{Desc: true, Limit: 1}
	groups, err := reads.DeadGroups(t.Context(), readScope, readEnv, f)
	if err != nil || len(groups) != 1 || groups[0].Fingerprint != (models.ID{7}) || groups[0].Count != 1 {
		t.Fatalf("got %+v, %v", groups, err)
	}
	f.After = postgres.DeadMark{At: groups[0].LastSeen, Fingerprint: groups[0].Fingerprint}
	groups, err = reads.DeadGroups(t.Context(), readScope, readEnv, f)
	if err != nil || len(groups) != 1 || groups[0].Count != 2 || groups[0].Sample != numbered(3) || groups[0].FirstSeen != at(2) || !slices.Equal(groups[0].Types, []string{"a.one", "b.two"}) {
		t.Errorf("got %+v, %v", groups, err)
	}
	if n, err := reads.CountDeadGroups(t.Context(), readScope, readEnv, &postgres.DeadFilter{Types: []string{"a.one"}}); err != nil || n != 1 {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := reads.CountDead(t.Context(), readScope, readEnv, models.ID{8}); err != nil || n != 2 {
		t.Errorf("got %d, %v", n, err)
	}
	digests, err := reads.Digests(t.Context(), readScope, readEnv, []models.ID{numbered(7)})
	if err != nil || digests[numbered(7)].Bytes != 8 || len(digests[numbered(7)].SHA256) != 64 {
		t.Errorf("got %+v, %v", digests, err)
	}
	kept := models.Cursor{ID: numbered(3), Env: readEnv, Kind: models.DiscardDead, Matched: 2, Done: 1, Failed: 1, Finished: true, Reason: "old", At: 5}
	if err := reads.KeepBulkAction(t.Context(), &kept, []byte(`{"kind":"key"}`)); err != nil {
		t.Fatal(err)
	}
	if got, err := reads.BulkAction(t.Context(), readScope, readEnv, kept.ID); err != nil || !reflect.DeepEqual(got, kept) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBriefs(t *testing.T) {
	db, _ := open(t)
	seed(t, db)
	reads := postgres.NewReads(db)
	ref := func(n int) models.TaskRef { return models.TaskRef{Env: readEnv, ID: numbered(n)} }
	briefs, err := reads.Briefs(t.Context(), []models.TaskRef{ref(9), ref(4), {Env: 6, ID: numbered(50)}})
	if err != nil || len(briefs) != 3 {
		t.Fatalf("got %v, %v", briefs, err)
	}
	nine := briefs[ref(9)]
	if string(nine.Payload) != `{"n": 9}` || len(nine.Dependencies) != 2 || nine.Dependencies[0].State != models.DeadLetter || nine.Dependencies[0].Result != nil ||
		nine.Dependencies[1].Key != "k8" || string(nine.Dependencies[1].Result) != `{"answer": 42}` || nine.Many {
		t.Errorf("got %+v", nine)
	}
	if four := briefs[ref(4)]; string(four.Checkpoint) != `{"at": 7}` || len(four.Dependencies) != 0 {
		t.Errorf("got %+v", four)
	}
	exec(t, db, `UPDATE attempts SET result = to_json(repeat('x', 1000001))::text WHERE outcome = 1`)
	if briefs, err = reads.Briefs(t.Context(), []models.TaskRef{ref(9)}); err != nil || !briefs[ref(9)].Many || briefs[ref(9)].Dependencies != nil {
		t.Errorf("too large, yet %+v, %v", briefs[ref(9)], err)
	}
	list, _, err := reads.Dependencies(t.Context(), ref(9), postgres.DependencyList{After: numbered(7), More: true, Limit: 5})
	if err != nil || len(list) != 1 || list[0].Task != numbered(8) || len(list[0].Result) != 1_000_003 {
		t.Errorf("got %d, %v", len(list), err)
	}
	for token, want := range map[models.ID]bool{{1}: true, {2}: false} {
		if holds, err := reads.HoldsLease(t.Context(), ref(4), token); err != nil || holds != want {
			t.Errorf("%v: %v, %v", token, holds, err)
		}
	}
}

func TestWorkersAreRead(t *testing.T) {
	db, _ := open(t)
	seed(t, db)
	reads := postgres.NewReads(db)
	for _, c := range []struct {
		f    postgres.WorkerFilter
		want int
	}{
		{postgres.WorkerFilter{Tenant: 1, Limit: 5}, 1},
		{postgres.WorkerFilter{Tenant: 2, Limit: 5}, 0},
		{postgres.WorkerFilter{Platform: true, Limit: 5, Desc: true}, 1},
		{postgres.WorkerFilter{Platform: true, Limit: 5, Pools: []string{"cpu"}}, 0},
		{postgres.WorkerFilter{Platform: true, Limit: 5, States: []models.WorkerState{models.WorkerGone}}, 0},
		{postgres.WorkerFilter{Platform: true, Limit: 5, After: models.ID{1}}, 0},
	} {
		rows, err := reads.Workers(t.Context(), &c.f)
		if err != nil || len(rows) != c.want {
			t.Errorf("%+v: %v, %v", c.f, rows, err)
		}
	}
	w, err := reads.Worker(t.Context(), 1, false, models.ID{1})
	if err != nil || w.GPUs[0].VRAMMB != 24576 || w.KindSlots["io"] != 2 || w.Labels["region"] != "eu" || w.Kinds[0] != models.Batch {
		t.Errorf("got %+v, %v", w, err)
	}
	if _, err := reads.Worker(t.Context(), 2, false, models.ID{1}); models.CodeOf(err) != models.NotFound {
		t.Errorf("another tenant's worker: %v", err)
	}
	if counts, err := reads.LeaseCounts(t.Context(), []models.ID{{1}}); err != nil || counts[models.ID{1}] != 2 {
		t.Errorf("got %v, %v", counts, err)
	}
}
