package pgtest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
)

// state is how many rows each table has, what stands in the brain's, and where the sequences are.
const state = `
SELECT format('%s: %s rows', relname, (xpath('/row/n/text()', query_to_xml('SELECT count(*) AS n FROM ' || oid::regclass, false, false, '')))[1])
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
UNION ALL SELECT 'brain ' || b::text FROM brain b
UNION ALL SELECT format('%s at %s', sequencename, last_value) FROM pg_sequences
ORDER BY 1`

// An emptied database is as a migrated one, whatever the test before it wrote, and whoever of it is still connected is sent away.
func TestAnEmptiedDatabaseIsAsMigrated(t *testing.T) {
	migrated := all(t, connect(t, pgtest.Admin(t, pgtest.Migrated(t))), state)
	var before string
	var left *pgx.Conn
	var kept []string
	t.Run("the test before", func(t *testing.T) {
		db := pgtest.Opened(t)
		before = address(t, db)
		admin := connect(t, pgtest.Admin(t, before))
		same(t, all(t, admin, state), migrated)
		writer := db.Writer()
		defer writer.Close()
		brain, err := writer.Brain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writer.TakeOver(t.Context(), brain, "here"); err != nil {
			t.Fatal(err)
		}
		kept = all(t, admin, `SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pgtest'`)
		if left, err = pgx.Connect(context.Background(), pgtest.Admin(t, before)); err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{
			`INSERT INTO batches SELECT 1, n, 1, 1 FROM generate_series(1, 100) n`,
			`SELECT nextval(seqrelid) FROM pg_sequence WHERE seqrelid <> 'goose_db_version_id_seq'::regclass`,
			`INSERT INTO audit (tenant, env, at, actor_kind, actor_id, ip, request_id, action, object, reason) VALUES (0, 0, 0, '', '', '', '', '', '', '')`,
		} {
			if _, err := admin.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	})
	after := address(t, pgtest.Opened(t))
	if after != before {
		t.Errorf("another database was made, %s beside %s", after, before)
	}
	if n := all(t, connect(t, pgtest.Admin(t, after)), `SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pgtest'`); !slices.Equal(n, kept) {
		t.Errorf("the pool had the connections %v before, now %v", kept, n)
	}
	if address(t, pgtest.Opened(t)) == after {
		t.Error("two tests at once got one database")
	}
	same(t, all(t, connect(t, pgtest.Admin(t, after)), state), migrated)
	if err := left.Ping(t.Context()); err == nil {
		t.Error("a connection of the test before still stands")
	}
}

func all(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if len(want) < 50 {
		t.Errorf("only %d lines are compared", len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("emptied: %s, migrated: %s", got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("emptied %d lines, migrated %d", len(got), len(want))
	}
}

// address is where a database stands, without a login.
func address(t *testing.T, db *postgres.DB) (url string) {
	t.Helper()
	err := db.Platform().Read(t.Context(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT 'postgres:///' || current_database()`).Scan(&url)
	})
	if err != nil {
		t.Fatal(err)
	}
	return url
}
