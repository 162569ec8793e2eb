package loop

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// Ten thousand schedules are due in the same second: their runs are made in bounded batches, and between those the claims
// of workers are answered.
func TestPostgresManySchedulesDueAtOnceDelayNoClaims(t *testing.T) {
	const n, most = 10_000, 200
	h := newHouse(t)
	one, stop := h.replica(h.dsn, "https://one", Options{})
	h.loop = one
	h.furnish(one)
	stop()
	at := int64(models.InstantOf(time.Now().Truncate(time.Second))) // one moment for both: a mark beyond it would leave nothing due
	err := h.db.Platform().Write(t.Context(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SET LOCAL statement_timeout = '10min'`); err != nil { // a slow machine takes its time
			return err
		}
		for _, text := range []string{
			`INSERT INTO schedules (env, id, name, rule, task, given, by, created_at, updated_at, version)
				SELECT $1::int, ('01890000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 's' || i,
					json_build_object('kind', 'once', 'timezone', 'UTC', 'run_at', $2::bigint, 'misfire_grace_seconds', 3600, 'catch_up_limit', 100),
					'{"class":{"type":"work"},"max_attempts":1,"input":{}}', '{}', '{}', $2::bigint - 1, $2::bigint - 1, 1 FROM generate_series(1, $3::int) i`,
			`INSERT INTO schedule_states (env, id, enabled, paused_by, pause_reason, mark, until, last_run, last_outcome, last_for, last_late_ms, last_success, last_end, failures)
				SELECT env, id, true, '', '', $2::bigint - 1, 0, '00000000-0000-0000-0000-000000000000', '', 0, 0, 0, 0, 0 FROM schedules WHERE env = $1 AND $3::int > 0`,
		} {
			if _, err := tx.Exec(t.Context(), text, h.env, at, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	made := func() (runs, largest int) {
		err := h.db.Platform().Read(t.Context(), func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT coalesce(sum(n), 0), coalesce(max(n), 0) FROM (SELECT count(*) n FROM schedule_runs GROUP BY fired_at) a`).Scan(&runs, &largest)
		})
		if err != nil {
			t.Fatal(err)
		}
		return runs, largest
	}
	began := time.Now()
	two, _ := h.replica(h.dsn, "https://two", Options{})
	h.until(two)
	answered, got := 0, 0
	for end := time.Now().Add(5 * patience); ; {
		before, _ := made()
		leases := len(h.must(two, h.claim(1, 0)).Claimed.Leases)
		if got += leases; before < n && leases > 0 {
			answered++
		}
		runs, largest := made()
		if largest > 3*most { // two batches may have one moment
			t.Fatalf("%d runs were made at one moment", largest)
		}
		if runs == n {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d runs were made", runs, n)
		}
	}
	if answered < 3 {
		t.Errorf("%d claims got a task while runs were still to be made", answered)
	}
	t.Logf("%d runs in %v; %d claims got a task meanwhile", n, time.Since(began).Round(time.Millisecond), answered)
}
