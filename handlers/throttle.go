package handlers

import (
	"sync"
	"time"
)

// Throttle counts failures: after a few it asks to wait. Successes are never counted and never refused.
type Throttle struct {
	most  float64       // failures at once
	every time.Duration // one more is forgiven each time this has passed

	mu      sync.Mutex
	buckets map[string]bucket
}

type bucket struct {
	level float64
	at    time.Time
}

// mostBuckets bounds the memory: beyond it, forgiven ones go first, then all.
const mostBuckets = 50_000

// NewThrottle allows most failures at once and one more after each every.
func NewThrottle(most int, every time.Duration) *Throttle {
	return &Throttle{most: float64(most), every: every, buckets: map[string]bucket{}}
}

// Fail counts a failure of each name and says how long to wait; 0: no need.
func (t *Throttle) Fail(now time.Time, names ...string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune(now)
	var wait time.Duration
	for _, name := range names {
		b := t.drained(name, now)
		if b.level < t.most*2 { // a flood of failures does not lock out for ever
			b.level++
		}
		t.buckets[name] = b
		if b.level > t.most {
			wait = max(wait, time.Duration((b.level-t.most)*float64(t.every)))
		}
	}
	return wait
}

// Blocked says how long a name has to wait before its next try.
func (t *Throttle) Blocked(now time.Time, names ...string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var wait time.Duration
	for _, name := range names {
		if b := t.drained(name, now); b.level > t.most-1 {
			wait = max(wait, time.Duration((b.level-t.most+1)*float64(t.every)))
		}
	}
	return wait
}

// Forgive clears a name after a success.
func (t *Throttle) Forgive(names ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		delete(t.buckets, name)
	}
}

func (t *Throttle) drained(name string, now time.Time) bucket {
	b := t.buckets[name]
	b.level = max(0, b.level-float64(now.Sub(b.at))/float64(t.every))
	b.at = now
	return b
}

func (t *Throttle) prune(now time.Time) {
	if len(t.buckets) < mostBuckets {
		return
	}
	for name := range t.buckets {
		if t.drained(name, now).level == 0 {
			delete(t.buckets, name)
		}
	}
	if len(t.buckets) >= mostBuckets {
		clear(t.buckets)
	}
}
