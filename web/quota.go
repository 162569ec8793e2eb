package web

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
)

// quota is an evenly refilled bucket of requests for each tenant, and for each platform key that acts for none. It keeps
// one caller from taking the replica's front from the others; what a tenant may run is decided elsewhere.
type quota struct {
	mu      sync.Mutex
	buckets map[string]*level
}

type level struct {
	left float64
	at   time.Time
}

func newQuota() *quota { return &quota{buckets: map[string]*level{}} }

const perSecond = float64(handlers.RequestsPerMinute) / 60

// take uses one request of the caller's bucket and writes the RateLimit headers.
func (q *quota) take(c *fiber.Ctx, caller *handlers.Caller) error {
	name := caller.Sub
	if caller.Tenant != 0 {
		name = fmt.Sprint(caller.Tenant)
	}
	left := q.use(name, time.Now())
	full := int(math.Ceil((float64(handlers.RequestsPerMinute) - left) / perSecond))
	c.Set("RateLimit-Policy", fmt.Sprintf(`"requests";q=%d;w=60`, handlers.RequestsPerMinute))
	c.Set("RateLimit", fmt.Sprintf(`"requests";r=%d;t=%d`, int(max(0, left)), full))
	if left < 0 {
		e := models.Errorf(models.RateLimited, "more than %d requests a minute", handlers.RequestsPerMinute)
		e.RetryAfterSeconds = 1
		return e
	}
	return nil
}

// use is what is left after this request; negative when there was none.
func (q *quota) use(name string, now time.Time) float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	b, ok := q.buckets[name]
	if !ok {
		if len(q.buckets) > 100_000 {
			clear(q.buckets)
		}
		b = &level{left: handlers.RequestsPerMinute, at: now}
		q.buckets[name] = b
	}
	b.left = min(handlers.RequestsPerMinute, b.left+now.Sub(b.at).Seconds()*perSecond)
	b.at = now
	if b.left < 1 {
		return -1
	}
	b.left--
	return b.left
}
