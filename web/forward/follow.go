package forward

import (
	"context"
	"encoding/json"
	"time"

	"nightshift/handlers"
	"nightshift/models"
)

// BatchesPath is where a replica tells the others how far it has committed.
const BatchesPath = "/internal/batches"

const (
	followWait  = 20 * time.Second // one held request
	followPause = time.Second      // while this replica is the brain, or nobody answers
)

type progress struct {
	Batch int64 `json:"batch"`
}

// Batches answers, over a held connection, as soon as this replica has committed past the batch in the body, or after
// 20 s. It is mounted at BatchesPath like Handler; subscribe is the loop's.
func Batches(subscribe func(context.Context) <-chan int64, verify func(token string) error) func(ctx context.Context, body []byte, from Sender) (int, []byte) {
	return func(ctx context.Context, body []byte, from Sender) (int, []byte) {
		if err := verify(from.Token); err != nil {
			return answered(nil, models.Errorf(models.Unauthenticated, "this needs a token for the brain"))
		}
		var after progress
		if err := json.Unmarshal(body, &after); err != nil {
			return answered(nil, models.Errorf(models.InvalidJSON, "the batch can't be read: %w", err))
		}
		ctx, stop := handlers.UntilDrain(ctx)
		defer stop()
		ctx, cancel := context.WithTimeout(ctx, followWait)
		defer cancel()
		last := after
		for batch := range subscribe(ctx) {
			if last.Batch = batch; batch != after.Batch {
				break
			}
		}
		out, err := encode(last)
		if err != nil {
			return answered(nil, err)
		}
		return 200, out
	}
}

// Follow tells the numbers of batches the brain commits while that is another replica, until ctx ends. What it misses
// while nobody answers, a poll of the database has to find.
func (d *Door) Follow(ctx context.Context) <-chan int64 {
	ch := make(chan int64, 1)
	go func() {
		defer close(ch)
		var last progress
		for ctx.Err() == nil {
			next, err := d.progress(ctx, last)
			if err != nil {
				pause(ctx, followPause)
				continue
			}
			if next == last {
				continue
			}
			last = next
			select {
			case <-ch: // what was not read yet is old
			default:
			}
			ch <- last.Batch
		}
	}()
	return ch
}

func (d *Door) progress(ctx context.Context, after progress) (next progress, err error) {
	brain, address := d.options.Role()
	if brain || address == "" {
		return after, unavailable("no other replica decides")
	}
	token, err := d.options.Token(ctx)
	if err != nil {
		return after, err
	}
	body, err := encode(after)
	if err != nil {
		return after, err
	}
	ctx, cancel := context.WithTimeout(ctx, followWait+callLimit)
	defer cancel()
	got, err := d.exchange(ctx, address+BatchesPath, token, body)
	if err != nil {
		return after, err
	}
	return next, json.Unmarshal(got, &next)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
