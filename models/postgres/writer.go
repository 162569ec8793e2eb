package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"nightshift/models"
)

// Writer is the store of the engine: the truth on one direct connection. One goroutine uses it; the lock is for those
// who renew the lease beside it.
type Writer struct {
	db      *DB
	mu      sync.Mutex
	link    *link // nil: to be dialled when next needed
	epoch   int64
	unclear bool                     // a commit got no answer: only Recover or TakeOver goes on
	raised  struct{ from, to int64 } // what Recover did last
	tries   []session                // that have asked to become the brain since the last that knows it did
	left    []session                // this writer's own, given up: nobody has seen their end
	floor   models.Instant           // time never goes back
	told    models.Instant           // what the database's clock last said
	toldAt  time.Time                // and when, by our own
	buffers buffers
}

// Writer makes a store; it connects when it takes over.
func (db *DB) Writer() *Writer { return &Writer{db: db} }

// Close ends the writer's connection.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop()
}

func (w *Writer) drop() {
	if w.link != nil {
		w.left = append(w.left, w.link.session())
		w.left = w.left[max(0, len(w.left)-mostTries):]
		w.link.close()
		w.link = nil
	}
}

// endLeft ends the sessions that this writer has given up, where the server still has them. Such a one may wait for the
// rest of a message for as long as the connection stands, in a transaction that locks the brain's row: a new session of
// the same brain would wait for it. The login does it, which they all are.
func (w *Writer) endLeft(ctx context.Context, l *link) error {
	if len(w.left) == 0 {
		return nil
	}
	pids, starts := make([]int32, len(w.left)), make([]int64, len(w.left))
	for i, s := range w.left {
		pids[i], starts[i] = s.pid, s.started
	}
	const end = `SELECT pg_terminate_backend(a.pid, 1000) FROM pg_stat_activity a JOIN unnest($1::int[], $2::bigint[]) AS s (pid, started)
		ON s.pid = a.pid AND s.started = (extract(epoch FROM a.backend_start) * 1000000)::bigint`
	ended, err := l.conn.Exec(ctx, end, pids, starts)
	if err != nil {
		return classify(err)
	}
	if n := ended.RowsAffected(); n > 0 {
		w.db.log.Warn("ended own sessions that were given up and still stood", "sessions", n)
	}
	w.left = nil
	return nil
}

// connected is the writer's connection. A new one first says, in a commit of its own, which session the brain now is.
// That has a limit of its own, which is not the one of what the connection is wanted for.
func (w *Writer) connected(ctx context.Context, epoch int64) (*link, error) {
	if w.unclear {
		return nil, models.Errorf(models.Unclear, "a commit has no answer yet: recover first")
	}
	if w.link != nil && !w.link.conn.IsClosed() {
		return w.link, nil
	}
	w.drop()
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	l, err := w.db.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err = w.endLeft(ctx, l); err == nil {
		err = w.join(ctx, l, epoch)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	w.link = l
	return l, nil
}

func (w *Writer) join(ctx context.Context, l *link, epoch int64) error {
	if err := l.become(ctx, w.db.engine); err != nil {
		return err
	}
	if _, err := l.epochOf(ctx, "brain_join", int8Param(epoch), int8Param(l.started)); err != nil {
		return err
	}
	return l.hasten(ctx, w.db.hasty())
}

// read runs calls that change nothing.
func (w *Writer) read(ctx context.Context, calls ...call) error {
	l, err := w.connected(ctx, w.epoch)
	if err != nil {
		return err
	}
	if err = l.run(ctx, calls...); err != nil {
		if l.conn.IsClosed() || outdated(err) {
			w.drop()
		}
		return classify(err)
	}
	return nil
}

// soon is read within the time of a batch, once there is a connection.
func (w *Writer) soon(ctx context.Context, calls ...call) error {
	if _, err := w.connected(ctx, w.epoch); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, w.db.options.BatchTimeout)
	defer cancel()
	return w.read(ctx, calls...)
}

// outdated says that a prepared statement is no longer what it was: a migration changed a table, or the server forgot.
func outdated(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "0A000" || pg.Code == "26000")
}

// clockFor is how long a reading of the database's clock is run on by our own monotonic one. The two differ by less than
// what a reading takes on its way.
const clockFor = time.Second

// clock lets time go forward alone, whatever the database's clock does.
func (w *Writer) clock(read models.Instant) models.Instant {
	w.told, w.toldAt = read, time.Now()
	w.floor = max(w.floor, read)
	return w.floor
}

// runsOn is the database's clock without asking for it, while the last reading is fresh.
func (w *Writer) runsOn() (models.Instant, bool) {
	since := time.Since(w.toldAt)
	if w.link == nil || w.link.conn.IsClosed() || since > clockFor {
		return 0, false
	}
	w.floor = max(w.floor, w.told.Add(since))
	return w.floor, true
}
