package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// session is one of the database's. Its number alone is used again.
type session struct {
	pid     int32
	started int64 // microseconds
}

// mostTries bounds how many sessions are remembered that asked to become the brain and heard no answer.
const mostTries = 16

// brainRow is the row that says who decides, with the session that decides.
type brainRow struct {
	models.Brain
	by session // that decides
}

// Brain reads the row that says who decides. It needs no writer's connection.
func (w *Writer) Brain(ctx context.Context) (models.Brain, error) {
	ctx, cancel := context.WithTimeout(ctx, w.db.options.ConnectTimeout)
	defer cancel()
	row, err := w.db.brain(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	row.Own = slices.Contains(w.tries, row.by)
	return row.Brain, err
}

func (db *DB) brain(ctx context.Context) (row brainRow, err error) {
	err = db.Platform().Read(ctx, func(tx pgx.Tx) error {
		var pid *int32
		var started *int64
		err := tx.QueryRow(ctx, statements["brain_read"]).Scan(&row.Epoch, (*int64)(&row.RenewedAt), &row.Address, &row.Beat, &pid, &started, &row.Batch, &row.Schema, &row.Migrated)
		row.Known = db.known
		if err == nil && pid != nil && started != nil {
			row.by = session{*pid, *started}
		}
		return err
	})
	return row, classify(err)
}

// TakeOver raises the epoch if the row still is as seen, and makes a new connection the writer's. A brain that is frozen
// inside a transaction holds the row: its session is ended.
func (w *Writer) TakeOver(ctx context.Context, seen models.Brain, address string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, brainTimeout)
	defer cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop()
	return w.raise(ctx, seen.Epoch, []byte(seen.Beat), []byte(address))
}

// Recover finds out, on a new connection, whether a batch was committed. Raising the epoch waits for the lost
// transaction or ends it, so that what is read afterwards is what will stay. Asked again with the same epoch, because the
// reading failed, it goes on from the epoch that its earlier try has raised to; so it does when the answer to that try
// got lost, which the session in the row tells from another brain's takeover.
func (w *Writer) Recover(ctx context.Context, epoch, batch int64) (happened bool, next int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, brainTimeout)
	defer cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop()
	from := epoch
	if w.raised.from == epoch {
		from = w.raised.to
	}
	next, lost := w.raise(ctx, from, []byte{}, nil)
	if models.CodeOf(lost) == models.FenceLost && len(w.tries) > 0 {
		row, err := w.db.brain(ctx)
		if err != nil {
			return false, 0, err
		}
		if slices.Contains(w.tries, row.by) {
			next, lost = w.raise(ctx, row.Epoch, []byte{}, nil)
		}
	}
	if lost == nil {
		w.raised.from, w.raised.to = epoch, next
	}
	if lost != nil && models.CodeOf(lost) != models.FenceLost {
		return false, 0, lost
	}
	happened, err = w.db.happened(ctx, epoch, batch)
	if err != nil {
		return false, next, err
	}
	return happened, next, lost
}

// happened says whether a batch is in the list with this epoch.
func (db *DB) happened(ctx context.Context, epoch, batch int64) (bool, error) {
	var by int64
	err := db.Platform().Read(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, statements["batch_of"], batch).Scan(&by)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return by == epoch, classify(err)
}

// raise makes a new connection and raises the epoch on it. When the row is held it ends whoever holds it, once.
func (w *Writer) raise(ctx context.Context, epoch int64, beat, address []byte) (int64, error) {
	l, err := w.db.dial(ctx)
	if err != nil {
		return 0, err
	}
	next, err := w.take(ctx, l, epoch, beat, address)
	if err != nil {
		l.close()
		return 0, err
	}
	w.link, w.epoch, w.unclear, w.tries, w.left = l, next, false, nil, nil // whoever had the row has ended
	return next, nil
}

func (w *Writer) take(ctx context.Context, l *link, epoch int64, beat, address []byte) (int64, error) {
	if err := l.become(ctx, w.db.engine); err != nil {
		return 0, err
	}
	w.tries = append(w.tries, l.session())
	w.tries = w.tries[max(0, len(w.tries)-mostTries):]
	next, err := l.epochOf(ctx, "brain_take", int8Param(epoch), beat, address, int8Param(l.started), int8Param(w.db.known))
	if models.CodeOf(err) == models.Rollback { // the lock was not to be had
		if err := w.endHolder(ctx, l, epoch); err != nil {
			return 0, err
		}
		next, err = l.epochOf(ctx, "brain_take", int8Param(epoch), beat, address, int8Param(l.started), int8Param(w.db.known))
	}
	if err != nil {
		return 0, err
	}
	return next, l.hasten(ctx, w.db.hasty())
}

// endHolder ends the session that the row names, if it still is that session. The login does it: a set role may not.
func (w *Writer) endHolder(ctx context.Context, l *link, epoch int64) error {
	row, err := w.db.brain(ctx)
	if err != nil || row.Epoch != epoch {
		return err
	}
	if _, err := l.conn.Exec(ctx, `RESET ROLE`); err != nil {
		return classify(err)
	}
	const end = `SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
		WHERE pid = $1 AND (extract(epoch FROM backend_start) * 1000000)::bigint = $2`
	if _, err := l.conn.Exec(ctx, end, row.by.pid, row.by.started); err != nil {
		return classify(err)
	}
	w.db.log.Warn("ended the session of a brain that held its row", "epoch", epoch, "address", row.Address)
	_, err = l.conn.Exec(ctx, `SELECT set_config('role', $1, false)`, w.db.engine)
	return classify(err)
}

// Renew says that the brain of this epoch lives.
func (w *Writer) Renew(ctx context.Context, epoch int64) error {
	return w.beat(ctx, "brain_renew", epoch)
}

// HandOver gives the row up at once.
func (w *Writer) HandOver(ctx context.Context, epoch int64) error {
	return w.beat(ctx, "brain_give", epoch)
}

func (w *Writer) beat(ctx context.Context, statement string, epoch int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, err := w.connected(ctx, epoch)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, w.db.options.BatchTimeout)
	defer cancel()
	_, err = l.epochOf(ctx, statement, int8Param(epoch))
	if l.conn.IsClosed() {
		w.drop()
	}
	return err
}

// epochOf runs a statement on the brain row; no row is a fence lost.
func (l *link) epochOf(ctx context.Context, name string, params ...[]byte) (epoch int64, err error) {
	err = l.run(ctx, call{name: name, params: params, read: func(c *columns) { epoch = c.int8() }})
	if err != nil {
		return 0, classify(err)
	}
	if epoch == 0 {
		return 0, models.Errorf(models.FenceLost, "another brain has taken over")
	}
	return epoch, nil
}
