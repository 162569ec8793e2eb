package storetest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
	"nightshift/scheduler/engine"
)

// Mirror is the reference store with PostgreSQL beside it: whatever is asked of one is asked of both, and an answer that
// differs fails the test. What only the reference store can tell is read from it alone.
type Mirror struct {
	*memory.Store
	t       testing.TB
	other   engine.Store // nil: there is no other
	db      *postgres.DB
	pending *bool // the next plan fails by order, and whether it happens all the same
	shown   shown // the snapshot that was compared last
}

// shown is what a snapshot was asked for; the zero value is none.
type shown struct {
	since       bool // and nothing has been written since
	heads, most int
}

var _ engine.Store = (*Mirror)(nil)

// NewMirror makes both, PostgreSQL's in a database of its own. The clock is the test's for both.
func NewMirror(t testing.TB, clock func() models.Instant) *Mirror {
	t.Helper()
	m := Lone(t, clock)
	m.db, m.other = onPostgres(t, clock)
	t.Cleanup(m.compareBeside)
	return m
}

// Lone is a mirror that shows the reference store alone, for tests too long to be told twice.
func Lone(t testing.TB, clock func() models.Instant) *Mirror {
	return &Mirror{Store: memory.New(clock), t: t}
}

// Postgres is the store on PostgreSQL, in a database of its own, under the test's clock.
func Postgres(t testing.TB, clock func() models.Instant) engine.Store {
	t.Helper()
	_, store := onPostgres(t, clock)
	return store
}

func onPostgres(t testing.TB, clock func() models.Instant) (*postgres.DB, engine.Store) {
	t.Helper()
	db := pgtest.Opened(t)
	writer := db.Writer()
	t.Cleanup(writer.Close)
	return db, clocked{writer, clock}
}

// clocked is a store whose clock is the test's: only what is read with facts and snapshots tells the engine the time.
type clocked struct {
	engine.Store
	clock func() models.Instant
}

func (c clocked) Facts(ctx context.Context, need *models.Need) (*models.Facts, error) {
	facts, err := c.Store.Facts(ctx, need)
	if err == nil {
		facts.Now = c.clock()
	}
	return facts, err
}

func (c clocked) Load(ctx context.Context, heads, most int) (*models.Snapshot, error) {
	snapshot, err := c.Store.Load(ctx, heads, most)
	if err == nil {
		snapshot.Now = c.clock()
	}
	return snapshot, err
}

// both asks the other what the reference store has answered, and compares.
func both[T any](m *Mirror, what string, told T, err error, ask func(engine.Store) (T, error)) (T, error) {
	m.t.Helper()
	if m.other == nil {
		return told, err
	}
	other, otherErr := ask(m.other)
	if models.CodeOf(err) != models.CodeOf(otherErr) {
		m.t.Fatalf("%s: the reference store says %v, PostgreSQL %v", what, err, otherErr)
	}
	if d := difference(told, other); err == nil && d != "" {
		m.t.Fatalf("%s: the reference store and PostgreSQL differ at %s", what, d)
	}
	return told, err
}

// FailNext makes the next plan fail, in both stores.
func (m *Mirror) FailNext(code models.Code, happened bool) {
	m.Store.FailNext(code, happened)
	m.pending = &happened
}

// Listed writes down, as replicas do, which tasks a bulk action is for.
func (m *Mirror) Listed(env int32, under models.ID, tasks []models.ID) {
	m.t.Helper()
	m.shown = shown{}
	m.List(under, tasks)
	if m.db == nil {
		return
	}
	n, err := postgres.NewReads(m.db).ListForBulk(m.t.Context(), under, env, &postgres.TaskFilter{IDs: tasks, Limit: len(tasks)})
	if err != nil || n != int64(len(tasks)) {
		m.t.Fatalf("%d of %d tasks are listed: %v", n, len(tasks), err)
	}
}

// Forget deletes a workflow's row in both.
func (m *Mirror) Forget(flow models.TaskRef) {
	m.t.Helper()
	m.shown = shown{}
	m.Store.Forget(flow)
	if m.db == nil {
		return
	}
	err := m.db.Platform().Write(m.t.Context(), func(tx pgx.Tx) error {
		tag, err := tx.Exec(m.t.Context(), `DELETE FROM workflows WHERE env = $1 AND id = $2`, flow.Env, [16]byte(flow.ID))
		if err == nil && tag.RowsAffected() != 1 {
			m.t.Errorf("%d rows were deleted", tag.RowsAffected())
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// Drift makes a task's counter of what it waits for wrong, in both.
func (m *Mirror) Drift(task models.TaskRef, by int32) {
	m.t.Helper()
	m.shown = shown{}
	m.Store.Drift(task, by)
	if m.db == nil {
		return
	}
	err := m.db.Platform().Write(m.t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(m.t.Context(), `UPDATE tasks SET remaining = remaining + $3 WHERE env = $1 AND id = $2`, task.Env, [16]byte(task.ID), by)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// Facts answers of both.
func (m *Mirror) Facts(ctx context.Context, need *models.Need) (*models.Facts, error) {
	m.t.Helper()
	facts, err := m.Store.Facts(ctx, need)
	whole := facts
	if err == nil {
		whole = promised(facts)
	}
	_, err = both(m, "facts", whole, err, func(s engine.Store) (*models.Facts, error) {
		other, err := s.Facts(ctx, need)
		if err != nil {
			return nil, err
		}
		return promised(other), nil
	})
	return facts, err
}

// promised leaves of attempts what facts promise to tell.
func promised(f *models.Facts) *models.Facts {
	some := *f
	some.Tokens = make(map[models.TokenRef]models.Attempt, len(f.Tokens))
	for ref, a := range f.Tokens { // any order: each on its own
		some.Tokens[ref] = models.Attempt{N: a.N, Outcome: a.Outcome, Usage: a.Usage, StartedAt: a.StartedAt, FinishedAt: a.FinishedAt}
	}
	return &some
}

// Apply applies to both.
func (m *Mirror) Apply(ctx context.Context, plan *models.Plan) (*models.Effects, error) {
	m.t.Helper()
	m.shown = shown{}
	effects, err := m.Store.Apply(ctx, plan)
	if fails := m.pending; fails != nil {
		m.pending = nil
		if *fails && m.other != nil {
			if _, err := m.other.Apply(ctx, plan); err != nil {
				m.t.Fatal(err)
			}
		}
		return effects, err
	}
	return both(m, "a plan", effects, err, func(s engine.Store) (*models.Effects, error) { return s.Apply(ctx, plan) })
}

// Refill reads both.
func (m *Mirror) Refill(ctx context.Context, ask *models.RefillAsk) (*models.Refill, error) {
	m.t.Helper()
	refill, err := m.Store.Refill(ctx, ask)
	return both(m, "a refill", refill, err, func(s engine.Store) (*models.Refill, error) { return s.Refill(ctx, ask) })
}

// Load reads both, PostgreSQL only where something was written since it was asked the same: its rows are all that a snapshot
// depends on.
func (m *Mirror) Load(ctx context.Context, heads, most int) (*models.Snapshot, error) {
	m.t.Helper()
	snapshot, err := m.Store.Load(ctx, heads, most)
	if now := (shown{true, heads, most}); m.shown != now {
		m.shown = now
		return both(m, "a snapshot", snapshot, err, func(s engine.Store) (*models.Snapshot, error) { return s.Load(ctx, heads, most) })
	}
	return snapshot, err
}

// Stage writes to both.
func (m *Mirror) Stage(ctx context.Context, body *models.StagedBody) error {
	m.t.Helper()
	m.shown = shown{}
	err := m.Store.Stage(ctx, body)
	_, err = both(m, "a staged body", struct{}{}, err, func(s engine.Store) (struct{}, error) { return struct{}{}, s.Stage(ctx, body) })
	return err
}

// TakeOver raises the epoch of both.
func (m *Mirror) TakeOver(ctx context.Context, seen models.Brain, address string) (int64, error) {
	m.t.Helper()
	m.shown = shown{}
	epoch, err := m.Store.TakeOver(ctx, seen, address)
	return both(m, "a takeover", epoch, err, func(s engine.Store) (int64, error) {
		row, err := s.Brain(ctx)
		if err != nil {
			return 0, err
		}
		return s.TakeOver(ctx, row, address)
	})
}
