package storetest

import (
	"cmp"
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

// spoils says of each table how one of its rows is changed; each of them is deleted too.
var spoils = map[string]string{
	"labels": "value = value || 'x'", "watermarks": "version = version + 1", "dedupes": "ttl_seconds = ttl_seconds + 1", "signals": "name = name || 'x'",
	"qualities": "score = 1 - score / 2", "messages": "matched = matched + 1", "feed_marks": "after = after - 1", "takes": "count = count + 1",
}

// What stands beside tasks and runs is compared to the last row: with one of them gone or changed, the stores differ. Scripts are
// run until each table has had a row to spoil.
func TestTheComparisonSeesEveryRow(t *testing.T) {
	left := maps.Clone(spoils)
	for seed := uint64(2); len(left) > 0; seed += 2 {
		if seed > 12 {
			t.Fatalf("no script leaves rows of %v", slices.Sorted(maps.Keys(left)))
		}
		spoil(t, seed, left)
	}
}

// spoil runs a script, spoils a row of each table that has one, and takes those tables off the list.
func spoil(t *testing.T, seed uint64, left map[string]string) {
	m := &Mirror{t: t}
	Run(t, seed, 400, func(t *testing.T, clock func() models.Instant) (a, b engine.Store) {
		m.Store = memory.New(clock)
		m.db, b = onPostgres(t, clock)
		return m.Store, b
	}, true)
	if d := m.saidDiffers(t.Context()); d != "" {
		t.Fatalf("unspoilt they differ at %s", d)
	}
	for _, table := range slices.Sorted(maps.Keys(left)) {
		seen := false
		for _, spoil := range []string{fmt.Sprintf("UPDATE %s SET %s", table, left[table]), "DELETE FROM " + table} {
			err := m.db.Platform().Write(t.Context(), func(tx pgx.Tx) error {
				tag, err := tx.Exec(t.Context(), spoil+fmt.Sprintf(" WHERE ctid = (SELECT max(ctid) FROM %s)", table))
				if err != nil || tag.RowsAffected() == 0 {
					return cmp.Or(err, errUndo)
				}
				seen = true
				got, err := read(t.Context(), tx)
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
