package fair

import "nightshift/models"

// Clock holds the virtual times of one pool and kind, in weighted seconds.
type Clock struct {
	system  float64
	span    float64 // mean expected seconds of what starts
	step    float64 // the largest that anybody was charged at once
	tenants map[int32]*Account
}

// Account is one tenant's in a clock.
type Account struct {
	virtual float64
	charged float64 // unweighted seconds since the clock was made
}

// NewClock makes a clock at zero.
func NewClock() *Clock { return &Clock{tenants: map[int32]*Account{}} }

// Virtual is the tenant's virtual time.
func (a *Account) Virtual() float64 { return a.virtual }

// Of is the tenant's account; one that was never seen begins at the system's time.
func (c *Clock) Of(tenant int32) *Account {
	a := c.tenants[tenant]
	if a == nil {
		a = &Account{virtual: c.system}
		c.tenants[tenant] = a
	}
	return a
}

// Time is the tenant's virtual time; one that was never seen stands at the system's.
func (c *Clock) Time(tenant int32) float64 {
	if a := c.tenants[tenant]; a != nil {
		return a.virtual
	}
	return c.system
}

// System is the pool's virtual time: the start tag of what went last.
func (c *Clock) System() float64 { return c.system }

// Charged is what the tenant was charged in all, unweighted.
func (c *Clock) Charged(tenant int32) float64 {
	if a := c.tenants[tenant]; a != nil {
		return a.charged
	}
	return 0
}

// Wake lets a tenant that had nothing to do re-enter at the system's time: being idle earns nothing.
func (c *Clock) Wake(tenant int32) {
	a := c.Of(tenant)
	a.virtual = max(a.virtual, c.system)
}

// Unblock lets a tenant re-enter that had work but could start none of it: at most two of the largest steps behind the
// system's time, so that it does not take everything until it has caught up.
func (c *Clock) Unblock(tenant int32) bool {
	a := c.Of(tenant)
	least := c.system - 2*c.step
	if a.virtual >= least {
		return false
	}
	a.virtual = least
	return true
}

// Span is what a task is charged for when it starts, in seconds: the mean of what starts in this pool and kind, whoever
// it belongs to and however long it is expected to take itself. What it really took is settled later. With everybody
// charged alike the slots that run are shared by weight from the first moment; charging each its own estimate gives the
// tenant with the shortest tasks too many slots whenever many fall free at once.
func (c *Clock) Span(seconds float64) float64 {
	if c.span == 0 {
		c.span = seconds
	}
	c.span += spanWeight * (seconds - c.span)
	return c.span
}

// Ahead is what a running task is charged beyond what it has used: the span as it stands now.
func (c *Clock) Ahead() float64 { return c.span }

// spanWeight is how much the newest start counts in the mean.
const spanWeight = 0.02

// Start charges the estimated seconds of a task that starts now and moves the system's time to its start tag.
func (c *Clock) Start(tenant int32, seconds, weight float64) {
	a := c.Of(tenant)
	c.system = max(c.system, a.virtual)
	c.add(a, seconds, weight)
}

// Correct charges (or gives back) the difference between what was charged and what was used.
func (c *Clock) Correct(tenant int32, seconds, weight float64) { c.add(c.Of(tenant), seconds, weight) }

func (c *Clock) add(a *Account, seconds, weight float64) {
	a.virtual += seconds / weight
	c.step = max(c.step, seconds/weight)
	a.charged += seconds
}

// Restore sets a saved virtual time; tenant 0 is the system's, with its span.
func (c *Clock) Restore(tenant int32, virtual, span float64) {
	if tenant == 0 {
		c.system, c.span = max(c.system, virtual), span
		return
	}
	c.Of(tenant).virtual = virtual
}

// Save lists the virtual times, in no order.
func (c *Clock) Save(pool string, kind models.KindName) []models.Virtual {
	out := []models.Virtual{{Pool: pool, Kind: kind, Time: c.system, Span: c.span}}
	for tenant, a := range c.tenants { // any order
		out = append(out, models.Virtual{Pool: pool, Kind: kind, Tenant: tenant, Time: a.virtual})
	}
	return out
}
