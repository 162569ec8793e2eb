package web

import (
	"fmt"
	"math"
	"slices"
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
	most float64
}

func newQuota() *quota { return &quota{buckets: map[string]*level{}} }

// take uses one request of the caller's bucket and writes the RateLimit headers. A tenant's own limit does not concern its
// workers: their reports free what it waits for.
func (q *quota) take(c *fiber.Ctx, caller *handlers.Caller, r *handlers.Route, own *int64) error {
	name, most := caller.Sub, float64(handlers.RequestsPerMinute)
	switch {
	case caller.Tenant == 0:
	case slices.Contains(r.Scopes, handlers.WorkersRegister):
		name = fmt.Sprint("workers ", caller.Tenant)
	default:
		name = fmt.Sprint(caller.Tenant)
		if own != nil {
			most = min(most, float64(*own))
		}
	}
	left := q.use(name, most, time.Now())
	perSecond := most / 60
	full := int(math.Ceil((most - max(0, left)) / perSecond))
	c.Set("RateLimit-Policy", fmt.Sprintf(`"requests";q=%d;w=60`, int64(most)))
	c.Set("RateLimit", fmt.Sprintf(`"requests";r=%d;t=%d`, int64(max(0, left)), full))
	if left < 0 {
		e := models.Errorf(models.RateLimited, "more than %d requests a minute", int64(most))
		e.RetryAfterSeconds = max(1, int(math.Ceil(-left/perSecond)))
		return e
	}
	return nil
}

// use is what is left after this request of a bucket that holds most and is filled once a minute; where there was none,
// what is missing of one, below zero.
func (q *quota) use(name string, most float64, now time.Time) float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	b, ok := q.buckets[name]
	if !ok {
		if len(q.buckets) > 100_000 {
			clear(q.buckets)
		}
		b = &level{left: most, at: now, most: most}
		q.buckets[name] = b
	}
	if b.most != most { // another limit: what was used stays used
		b.left, b.most = max(0, most-(b.most-b.left)), most
	}
	b.left = min(most, b.left+max(0, now.Sub(b.at).Seconds())*most/60)
	b.at = now
	if b.left < 1 {
		return b.left - 1
	}
	b.left--
	return b.left
}
