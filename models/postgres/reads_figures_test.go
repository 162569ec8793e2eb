package postgres_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/postgres"
)

func TestStatesAreCounted(t *testing.T) {
	db, _ := open(t)
	seed(t, db)
	reads := postgres.NewReads(db)
	exec(t, db, `UPDATE tasks SET state = 2 WHERE state = 1`)
	exec(t, db, `UPDATE tasks SET state = 0, staging = $1 WHERE state = 5`, [16]byte{9}) // of a body that has not entered
	want := models.Counts{models.Pending: 2, models.Ready: 1, models.Running: 1, models.CancelRequested: 1, models.DeadLetter: 1, models.Succeeded: 1, models.Failed: 1}
	if got, err := reads.StateCounts(t.Context(), readScope, readEnv); err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := reads.StateCounts(t.Context(), postgres.Scope{Tenant: 2, Envs: []int32{6}}, readEnv); err != nil || got != (models.Counts{}) {
		t.Errorf("another tenant's scope shows %v, %v", got, err)
	}
	exec(t, db, `INSERT INTO tasks (env, lane, class, state, priority, flags, attempt, attempts_used, max_attempts, remaining, killed,
		hard_seconds, age_key, created_at, updated_at, id)
		SELECT 5, 1, 1, 10, 50, 0, 1, 1, 3, 0, 0, 60, 0, i, i, (lpad(to_hex(2000000000000 + i), 12, '0') || '70008000000000000000')::uuid
		FROM generate_series(1, $1::int) i`, postgres.StatesWithin-1)
	if got, err := reads.StateCounts(t.Context(), readScope, readEnv); err != nil || got.Total() != postgres.StatesWithin || got[models.Failed] != 1 || got[models.Ready] != 0 {
		t.Errorf("of many the newest count: %v, %v", got, err)
	}
}

func TestDependantsAndChildrenAreRead(t *testing.T) {
	db, _ := open(t)
	seed(t, db)
	reads := postgres.NewReads(db)
	exec(t, db, `INSERT INTO edges VALUES (5, $1, $2, 1, 2), (5, $1, $3, 2, 0)`, [16]byte(numbered(7)), [16]byte(numbered(9)), [16]byte(numbered(2)))
	exec(t, db, `UPDATE tasks SET parent = $1 WHERE env = 5 AND state IN (2, 3)`, [16]byte(numbered(4)))
	rows, err := reads.Dependants(t.Context(), readScope, readEnv, numbered(7), 9)
	if err != nil || !slices.Equal(numbers(rows), []int{2, 9}) {
		t.Fatalf("got %v, %v", numbers(rows), err)
	}
	want := []models.Edge{{Env: readEnv, From: numbered(7), To: numbered(9)}, {Env: readEnv, From: numbered(7), To: numbered(9), On: models.OnFailed, State: models.EdgeKilled}}
	if !reflect.DeepEqual(rows[1].DependsOn, want) || len(rows[0].DependsOn) != 1 || rows[0].Needs.Type != "a.one" {
		t.Errorf("edges: %+v and %+v", rows[0].DependsOn, rows[1].DependsOn)
	}
	for id, want := range map[models.ID]int{numbered(7): 1, numbered(8): 1, numbered(9): 0} {
		if rows, err := reads.Dependants(t.Context(), readScope, readEnv, id, 1); err != nil || len(rows) != want {
			t.Errorf("at most one: %v, %v", numbers(rows), err)
		}
	}
	if rows, err := reads.Dependants(t.Context(), postgres.Scope{Tenant: 2, Envs: []int32{6}}, readEnv, numbered(7), 9); err != nil || len(rows) > 0 {
		t.Errorf("another tenant's scope shows %v, %v", numbers(rows), err)
	}
	if rows, err := reads.Children(t.Context(), readScope, readEnv, numbered(4), 9); err != nil || !slices.Equal(numbers(rows), []int{2, 3}) {
		t.Errorf("children: %v, %v", numbers(rows), err)
	}
}

func TestFiguresOfTenants(t *testing.T) {
	db, _ := open(t)
	seed(t, db)
	for env, tenant := range map[int]int{5: 1, 6: 2, 7: 1} {
		exec(t, db, `INSERT INTO environments VALUES ($1, gen_random_uuid(), $2, $3, 'production', false, '', 0, 0, 1)`, env, tenant, "e"+string(rune('0'+env)))
	}
	exec(t, db, `UPDATE tasks SET env = 7, gate = 'key:x' WHERE env = 6`)
	exec(t, db, `UPDATE attempts SET finished_at = $1 WHERE task = $2`, time.Now().UnixMicro(), [16]byte(numbered(8)))
	reads := postgres.NewReads(db)
	got, err := reads.TenantFigures(t.Context())
	if want := map[int32]postgres.TenantFigure{1: {Ready: 2, Running: 2, Dead: 1, DoneToday: 1}}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestTheDatabaseTellsOfItself(t *testing.T) {
	db, _ := open(t)
	d, err := postgres.NewWorld(db).Database(t.Context())
	if err != nil || !strings.Contains(d.Version, ".") || d.SizeBytes < 1<<20 || d.Connections < 1 || d.MostConnections < d.Connections || d.OldestTransactionSeconds < 0 {
		t.Errorf("got %+v, %v", d, err)
	}
}
