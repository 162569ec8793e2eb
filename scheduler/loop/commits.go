package loop

import (
	"context"
	"sync"
)

// commits tells listeners the number of the last committed batch. Who is slow misses numbers in between, never the last.
type commits struct {
	mu        sync.Mutex
	last      int64
	listeners map[chan int64]struct{}
}

// Subscribe gives the numbers of committed batches until ctx ends: always the newest, so a slow listener skips some.
// Only batches this replica committed as brain or saw as standby are told.
func (l *Loop) Subscribe(ctx context.Context) <-chan int64 {
	c := &l.commits
	ch := make(chan int64, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners[ch] = struct{}{}
	if c.last > 0 {
		ch <- c.last
	}
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, ch)
		close(ch)
	})
	return ch
}

func (c *commits) tell(batch int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if batch <= c.last {
		return
	}
	c.last = batch
	for ch := range c.listeners {
		select {
		case <-ch: // what it has not read yet is old
		default:
		}
		ch <- batch
	}
}

// restart goes on from an earlier batch, after history was lost.
func (c *commits) restart(batch int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = batch
}
