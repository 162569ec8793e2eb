package handlers

import (
	"sync"
	"time"
)

// Rate tells how fast a count rises, from what it was a moment ago.
type Rate struct {
	mu    sync.Mutex
	count int64
	at    time.Time
	per   float64
}

// Sample notes the count and says how much it rose a second since the sample before; samples closer than a second
// repeat the last figure. A count that fell began anew.
func (r *Rate) Sample(now time.Time, count int64) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := now.Sub(r.at)
	switch {
	case r.at.IsZero() || count < r.count:
		r.per = 0
	case since < time.Second:
		return r.per
	default:
		r.per = float64(count-r.count) / since.Seconds()
	}
	r.count, r.at = count, now
	return r.per
}
