package loop

import (
	"context"
	"time"

	"nightshift/models"
)

const (
	lookEvery   = 500 * time.Millisecond // a standby reads the brain row
	silentFor   = 5 * time.Second        // unchanged, by the standby's own clock: the brain is taken over
	renewEvery  = 1500 * time.Millisecond
	freshFor    = 4 * time.Second // what commits nothing is answered after the last proof of being the brain
	lookLimit   = time.Second     // a standby's look
	storeLimit  = 6 * time.Second // a new connection, where one is needed, and a transaction: no store lets that last over 1 s
	loadLimit   = 10 * time.Second
	takeLimit   = 10 * time.Second
	handLimit   = 2 * time.Second
	tickEvery   = time.Second
	tickAside   = time.Minute           // a Tick that failed three times rests
	retryFirst  = 10 * time.Millisecond // and twice as long each time, up to
	retryEvery  = 200 * time.Millisecond
	tries       = 3
	recoverFor  = 5 * time.Second
	recoverCall = 4 * time.Second
	tickApart   = 2 * time.Millisecond // two ticks that no slice of work asks for

	defaultHeads = 4
	defaultMost  = 200_000
	defaultSlice = 1_000
	sampleEvery  = 5 * time.Second
)

// standBy watches the brain row until it has taken over; the error is only ever the end of ctx. It returns the new epoch
// and the row as it was before. A row of the epoch this replica itself had last, or has raised without hearing of it, is
// nobody's: it need not wait, nor does one that knows a newer schema than the brain. One that knows an older schema than
// the database has decides no more.
func (l *Loop) standBy(ctx context.Context, mine int64) (int64, models.Brain, error) {
	var seen models.Brain
	var since time.Time // when the row was first seen as it is; zero: not yet
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		row, err := l.look(ctx)
		switch {
		case err != nil:
			// A row that can't be read says nothing about the brain.
			since = time.Time{}
		case since.IsZero() || row.Beat != seen.Beat || row.Epoch != seen.Epoch:
			l.warnOfTwin(seen, row)
			seen, since = row, time.Now()
		}
		if err == nil {
			l.watched(row)
			switch free := row.RenewedAt == 0 || row.Own || row.Epoch == mine || row.Older() || time.Since(since) >= silentFor; {
			case row.Newer():
				l.warnOfNewer(row)
			case free:
				if epoch, err := l.takeOver(ctx, row); err == nil {
					return epoch, row, nil
				}
				since = time.Time{}
			}
		}
		select {
		case <-ctx.Done():
			return 0, models.Brain{}, ctx.Err()
		case <-tick.C:
		}
	}
}

// warnOfTwin says, once an epoch, that a brain that lives has the address of this replica. What comes here can't be
// forwarded then, and is refused for as long as the other decides.
func (l *Loop) warnOfTwin(seen, row models.Brain) {
	if row.Address == l.options.Address && row.Epoch == seen.Epoch && row.RenewedAt > seen.RenewedAt && row.Epoch != l.twin {
		l.twin = row.Epoch
		l.figures.count(func(f *Figures) { f.AddressTaken++ })
		l.log.Error("another replica decides under this replica's address: give each an address of its own", "alert", "address_taken",
			"address", row.Address, "epoch", row.Epoch)
	}
}

// warnOfNewer says, once a step of the schema, that this replica does not decide any more.
func (l *Loop) warnOfNewer(row models.Brain) {
	if step := max(row.Migrated, row.Schema); step != l.behind {
		l.behind = step
		l.figures.count(func(f *Figures) { f.Behind++ })
		l.log.Error("a newer version has migrated the database: this replica no longer decides; replace it by that version", "alert", "version_behind",
			"schema", step, "known", row.Known)
	}
}

func (l *Loop) look(ctx context.Context) (models.Brain, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	row, err := l.store.Brain(ctx)
	if err != nil && ctx.Err() == nil {
		l.log.Warn("the brain row can't be read", "error", err)
	}
	return row, err
}

// watched notes what a standby saw.
func (l *Loop) watched(row models.Brain) {
	l.setRole(func(r *Role) {
		r.Brain, r.Epoch = false, row.Epoch
		if r.Address = row.Address; row.RenewedAt == 0 || row.Address == l.options.Address {
			r.Address = ""
		}
	})
	if row.Batch > 0 {
		l.heard(row.Batch)
	}
}

func (l *Loop) takeOver(ctx context.Context, seen models.Brain) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, takeLimit)
	defer cancel()
	epoch, err := l.store.TakeOver(ctx, seen, l.options.Address)
	switch {
	case err == nil:
		l.log.Info("this replica is the brain now", "epoch", epoch, "before", seen.Address)
	case models.CodeOf(err) == models.FenceLost:
		l.log.Info("another replica was quicker to take over")
	default:
		l.log.Warn("the takeover failed", "error", err)
	}
	return epoch, err
}
