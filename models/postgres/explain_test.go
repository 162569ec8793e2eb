package postgres_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"nightshift/models/postgres"
)

var (
	update = flag.Bool("update", false, "write the golden plans anew, from empty tables")
	long   = flag.Bool("long", false, "hold the plans on a million analysed rows too (a minute and a half)")
)

// TestPlans holds how each statement of the hot path reaches its rows: on empty tables, on 200,000 rows that nobody has
// analysed, and (with -long) on 1,000,000 analysed ones. Only the scans and their conditions are compared: the rest
// differs between versions of PostgreSQL.
func TestPlans(t *testing.T) {
	w := newWorld(t)
	check := func(t *testing.T) {
		for _, name := range postgres.HotStatements() {
			plan, err := w.store.Explain(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			got := scansOf(plan)
			path := filepath.Join("testdata", "plans", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s is planned\n%s\nnot\n%s\nin full:\n%s", name, got, want, plan)
			}
		}
	}
	t.Run("empty", check)
	*update = false
	owner, err := pgx.Connect(t.Context(), w.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(context.Background())
	for _, table := range []string{"tasks", "specs", "attempts", "edges"} {
		if _, err := owner.Exec(t.Context(), `ALTER TABLE `+table+` SET (autovacuum_enabled = off)`); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, w, 200_000)
	w.epoch = takeOver(t, w.store) // a connection of its own prepares anew
	t.Run("200,000 rows not analysed", check)
	if !*long {
		return
	}
	fill(t, w, 800_000)
	for _, table := range []string{"tasks", "specs", "attempts", "edges"} {
		if _, err := owner.Exec(t.Context(), `VACUUM ANALYZE `+table); err != nil {
			t.Fatal(err)
		}
	}
	w.epoch = takeOver(t, w.store)
	t.Run("1,000,000 rows analysed", check)
}

// fill adds rows as a busy month would leave them: most ended, one in ten ready, some in every other state.
func fill(t *testing.T, w *world, n int) {
	t.Helper()
	exec(t, w.db, `
		INSERT INTO tasks (env, lane, class, state, priority, flags, attempt, attempts_used, max_attempts, remaining, killed, hard_seconds,
			age_key, created_at, updated_at, id, ready_at, wake_at, worker, token, attempt_id, workflow, idem_key, limit_key, fingerprint, gate)
		SELECT i % 50 + 1, i % 200 + 1, i % 31 + 1, s, 50, 0, 1, 1, 3, CASE WHEN s = 2 THEN 1 ELSE 0 END, 0, 600,
			i, i, i, gen_random_uuid(), i, CASE WHEN s IN (1, 5) THEN i END, CASE WHEN s = 4 THEN gen_random_uuid() END,
			CASE WHEN s = 4 THEN gen_random_uuid() END, NULL, CASE WHEN i % 3 = 0 THEN md5((i / 1000)::text)::uuid END,
			CASE WHEN i % 20 = 0 THEN gen_random_uuid()::text END, CASE WHEN i % 7 = 0 THEN 'key' || i % 100 END,
			CASE WHEN s = 7 THEN md5((i % 50)::text)::uuid END, CASE WHEN s = 3 AND i % 5 = 0 THEN 'key:x' END
		FROM (SELECT i, CASE WHEN i % 10 = 0 THEN 3 WHEN i % 100 = 1 THEN 4 WHEN i % 100 = 2 THEN 1 WHEN i % 100 = 3 THEN 2
			WHEN i % 100 = 4 THEN 5 WHEN i % 100 = 5 THEN 7 ELSE 8 END AS s FROM generate_series(1, $1::int) i) g`, n)
	exec(t, w.db, `INSERT INTO specs (env, id, input) SELECT env, id, '{}' FROM tasks ON CONFLICT DO NOTHING`)
	exec(t, w.db, `INSERT INTO attempts (env, n, task, id, token, worker, started_at, finished_at, charged_ms, outcome, pool)
		SELECT env, 1, id, id, id, id, 1, 1, 1, 1, 'cpu' FROM tasks ON CONFLICT DO NOTHING`)
	exec(t, w.db, `INSERT INTO edges (env, from_task, to_task, fires_on, state)
		SELECT env, id, gen_random_uuid(), 0, 1 FROM tasks WHERE workflow IS NOT NULL ON CONFLICT DO NOTHING`)
}

// scansOf are the lines of a plan that say how rows are reached.
func scansOf(plan string) string {
	var out []string
	for line := range strings.Lines(plan) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "->"))
		for _, start := range []string{"Index", "Seq Scan", "Bitmap", "Hash Join", "Merge Join", "Nested Loop", "Update", "Insert", "Delete", "LockRows"} {
			if strings.HasPrefix(line, start) {
				out = append(out, line)
				break
			}
		}
	}
	return strings.Join(out, "\n") + "\n"
}
