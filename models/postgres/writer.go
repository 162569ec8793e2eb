package postgres

import (
	"context"
	"errors"
	"sync"

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
	floor   models.Instant           // time never goes back
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
		w.link.close()
		w.link = nil
	}
}

// connected is the writer's connection. A new one first says, in a commit of its own, which session the brain now is.
func (w *Writer) connected(ctx context.Context, epoch int64) (*link, error) {
	if w.unclear {
		return nil, models.Errorf(models.Unclear, "a commit has no answer yet: recover first")
	}
	if w.link != nil && !w.link.conn.IsClosed() {
		return w.link, nil
	}
	w.drop()
	l, err := w.db.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.become(ctx, w.db.engine); err != nil {
		l.close()
		return nil, err
	}
	if _, err := l.epochOf(ctx, "brain_join", int8Param(epoch), int8Param(l.started)); err != nil {
		l.close()
		return nil, err
	}
	w.link = l
	return l, nil
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

// outdated says that a prepared statement is no longer what it was: a migration changed a table, or the server forgot.
func outdated(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "0A000" || pg.Code == "26000")
}

// clock lets time go forward alone, whatever the database's clock does.
func (w *Writer) clock(read models.Instant) models.Instant {
	w.floor = max(w.floor, read)
	return w.floor
}
