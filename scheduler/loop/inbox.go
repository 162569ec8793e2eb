package loop

import (
	"sync"
	"time"

	"nightshift/models"
)

// Limits bound the inbox and a batch.
type Limits struct {
	Inbox    int // commands that wait
	Commands int // of a batch
	Rows     int // that a batch changes, estimated
	Bytes    int // that a batch carries
}

// DefaultLimits are those of production.
var DefaultLimits = Limits{Inbox: 10_000, Commands: 1_000, Rows: 2_000, Bytes: 2 << 20}

// aloneFor is how long a tenant whose command broke a batch has batches of its own.
const aloneFor = 10 * time.Minute

// inbox holds what waits for the next batch: by order first, then round-robin by tenant, then as it came.
type inbox struct {
	limits Limits
	ready  chan struct{} // holds one token while something may wait

	mu     sync.Mutex
	closed error // why nothing is taken; nil while this is the brain
	queues [orderings]queue
	count  int
	held   map[int32]int       // waiting commands that count toward their tenant's share
	alone  map[int32]time.Time // tenants with batches of their own, until when
	turn   bool                // the next batch is for one of those
}

func newInbox(limits Limits, closed error) *inbox {
	b := &inbox{limits: limits, closed: closed, ready: make(chan struct{}, 1), held: map[int32]int{}, alone: map[int32]time.Time{}}
	for i := range b.queues {
		b.queues[i].of = map[int32][]*call{}
	}
	return b
}

// put takes a command in or says why not. The last tenth of the room is kept for what frees others.
func (b *inbox) put(c *call) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed != nil {
		return b.closed
	}
	room := b.limits.Inbox
	if c.order != reports {
		room -= room / 10
		if tenant := c.cmd.Tenant; tenant != 0 && b.held[tenant] >= room/(b.sharers(tenant)+1) {
			return refusal(models.RateLimited, "too many of this tenant's commands wait already; send again in a moment")
		}
	}
	if b.count >= room {
		return refusal(models.Overloaded, "too many commands wait already; send again in a moment")
	}
	b.push(c)
	return nil
}

// sharers counts the tenants that share the room with this one, itself among them.
func (b *inbox) sharers(tenant int32) int {
	if b.held[tenant] > 0 {
		return len(b.held)
	}
	return len(b.held) + 1
}

// again puts back what was taken before, past every limit.
func (b *inbox) again(calls ...*call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range calls {
		if b.closed != nil {
			c.finish(outcome{err: b.closed})
			continue
		}
		b.push(c)
	}
}

func (b *inbox) push(c *call) {
	b.queues[c.order].push(c)
	b.count++
	if c.order != reports && c.cmd.Tenant != 0 {
		b.held[c.cmd.Tenant]++
	}
	b.wake()
}

func (b *inbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take removes what makes the next batch. A tenant that stands alone never shares one: its batches take turns with the
// others'.
func (b *inbox) take() []*call {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for tenant, until := range b.alone {
		if now.After(until) {
			delete(b.alone, tenant)
		}
	}
	b.turn = !b.turn
	if b.turn && len(b.alone) > 0 {
		for tenant := range b.alone {
			if batch := b.gather(func(t int32) bool { return t == tenant }); len(batch) > 0 {
				return batch
			}
		}
	}
	batch := b.gather(func(t int32) bool { _, alone := b.alone[t]; return !alone })
	if b.count > 0 {
		b.wake()
	}
	return batch
}

func (b *inbox) gather(wanted func(tenant int32) bool) []*call {
	var batch []*call
	rows, bytes := 0, 0
	for i := range b.queues {
		for {
			c := b.queues[i].peek(wanted)
			if c == nil {
				break
			}
			full := len(batch) >= b.limits.Commands || rows+c.rows > b.limits.Rows || bytes+c.bytes > b.limits.Bytes
			if full && len(batch) > 0 {
				return batch
			}
			b.drop(i)
			if c.abandoned() {
				continue
			}
			rows, bytes, batch = rows+c.rows, bytes+c.bytes, append(batch, c)
		}
	}
	return batch
}

// drop removes the command peeked at in a queue.
func (b *inbox) drop(i int) {
	c := b.queues[i].pop()
	b.count--
	if c.order != reports && c.cmd.Tenant != 0 {
		if b.held[c.cmd.Tenant]--; b.held[c.cmd.Tenant] == 0 {
			delete(b.held, c.cmd.Tenant)
		}
	}
}

// isolate gives a tenant batches of its own for a while.
func (b *inbox) isolate(tenant int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alone[tenant] = time.Now().Add(aloneFor)
}

func (b *inbox) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = nil
}

// close refuses what comes from now on and answers everything that waits, with the same reason.
func (b *inbox) close(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = why
	for i := range b.queues {
		for c := b.queues[i].peek(anyone); c != nil; c = b.queues[i].peek(anyone) {
			b.drop(i)
			c.finish(outcome{err: why})
		}
	}
}

func (b *inbox) depth() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

func anyone(int32) bool { return true }

// queue is a line of commands a tenant, taken in turn.
type queue struct {
	of   map[int32][]*call
	ring []int32 // tenants with something in their line; the first has its turn
}

func (q *queue) push(c *call) {
	tenant := c.cmd.Tenant
	if len(q.of[tenant]) == 0 {
		q.ring = append(q.ring, tenant)
	}
	q.of[tenant] = append(q.of[tenant], c)
}

// peek finds the next command of a wanted tenant and brings that tenant to the front.
func (q *queue) peek(wanted func(int32) bool) *call {
	for i, tenant := range q.ring {
		if wanted(tenant) {
			if i > 0 {
				copy(q.ring[1:i+1], q.ring[:i])
				q.ring[0] = tenant
			}
			return q.of[tenant][0]
		}
	}
	return nil
}

// pop removes the command at the front; its tenant goes to the end of the ring.
func (q *queue) pop() *call {
	tenant := q.ring[0]
	line := q.of[tenant]
	c := line[0]
	line[0] = nil
	q.ring = q.ring[1:]
	if len(line) == 1 {
		delete(q.of, tenant)
	} else {
		q.of[tenant] = line[1:]
		q.ring = append(q.ring, tenant)
	}
	return c
}

func refusal(code models.Code, format string, args ...any) *models.Error {
	err := models.Errorf(code, format, args...)
	err.RetryAfterSeconds = 1
	return err
}
