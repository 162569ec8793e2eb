package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/scheduler/engine"
)

var errUndo = errors.New("undo it")

// Spoils says of each table how one of its rows is changed; each of them is deleted too.
var Spoils = map[string]string{
	"labels": "value = value || 'x'", "watermarks": "version = version + 1", "dedupes": "ttl_seconds = ttl_seconds + 1", "signals": "name = name || 'x'",
	"qualities": "score = 1 - score / 2", "messages": "matched = matched + 1", "feed_marks": "after = after - 1", "takes": "count = count + 1",
}

// BesidePostgres is a reference store and one on PostgreSQL. When the test has passed, what stands beside their rows is compared;
// then that comparison is held to see every row: of each table in left that has a row, one is changed and deleted, the stores
// must differ, and the table is taken off the list.
func BesidePostgres(t *testing.T, first *memory.Store, clock func() models.Instant, left map[string]string) (a, b engine.Store) {
	t.Helper()
	m := &Mirror{Store: first, t: t}
	m.db, b = onPostgres(t, clock)
	t.Cleanup(func() {
		if !t.Failed() {
			m.compareBeside()
			m.spoil(t, left)
		}
	})
	return first, b
}

func (m *Mirror) spoil(t *testing.T, left map[string]string) {
	ctx := context.Background() // the test's own has ended
	for _, table := range slices.Sorted(maps.Keys(left)) {
		seen := false
		for _, spoil := range []string{fmt.Sprintf("UPDATE %s SET %s", table, left[table]), "DELETE FROM " + table} {
			err := m.db.Platform().Write(ctx, func(tx pgx.Tx) error {
				tag, err := tx.Exec(ctx, spoil+fmt.Sprintf(" WHERE ctid = (SELECT max(ctid) FROM %s)", table))
				if err != nil || tag.RowsAffected() == 0 {
					return cmp.Or(err, errUndo)
				}
				seen = true
				got, err := read(ctx, tx)
				if err != nil {
					return err
				}
				if d := difference(m.Store.Said(), got); d == "" {
					t.Errorf("nobody sees that %s", spoil)
				}
				return errUndo
			})
			if !errors.Is(err, errUndo) {
				t.Errorf("%s: %v", spoil, err)
			}
		}
		if seen {
			delete(left, table)
		}
	}
}
