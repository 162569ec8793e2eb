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
	storeLimit  = time.Second     // no transaction of the loop lasts longer
	loadLimit   = 10 * time.Second
	takeLimit   = 10 * time.Second
	handLimit   = 2 * time.Second
	tickEvery   = time.Second
	tickAside   = time.Minute // a Tick that failed three times rests
	retryEvery  = 200 * time.Millisecond
	tries       = 3
	recoverFor  = 5 * time.Second
	recoverCall = 3 * time.Second
	tickApart   = 2 * time.Millisecond // two ticks that no slice of work asks for

	defaultHeads = 4
	defaultMost  = 200_000
	defaultSlice = 1_000
	sampleEvery  = 5 * time.Second
)

// standBy watches the brain row until it has taken over; the error is only ever the end of ctx. It returns the new epoch
// and the row as it was before. A row of the epoch this replica itself had last is nobody's: it need not wait.
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
			seen, since = row, time.Now()
		}
		if err == nil {
			l.watched(row)
			if row.RenewedAt == 0 || row.Epoch == mine || time.Since(since) >= silentFor {
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

func (l *Loop) look(ctx context.Context) (models.Brain, error) {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
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
