package route

import (
	"slices"

	"nightshift/models"
)

// A breaker opens after so many failures of the provider in a row, for a time that doubles each time it opens again, up to a
// bound. When that is over one task at a time tries; the first success shuts it.
const (
	Failures  = 3
	Shortest  = 30 * 1_000_000
	Longest   = 10 * 60 * 1_000_000
	remembers = 10 * 60 * 1_000_000 // failures further apart are not in a row
)

// Breaker is what is known of a provider's failures, of one tenant and model. The zero one is shut.
type Breaker struct {
	failed int32          // in a row, of those that shut it again begins anew
	last   models.Instant // of them
	Opened int32          // how often since it was last shut
	Until  models.Instant // open until then
	Class  string         // of the failure that opened it
}

// ProviderFailure says that a failure is the provider's rather than the task's.
func ProviderFailure(class string) bool {
	return slices.Contains([]string{"provider_outage", "overloaded", "rate_limited"}, class)
}

// Failed notes a failure of the provider and says whether the breaker opens by it.
func (b *Breaker) Failed(class string, now models.Instant) bool {
	if b.Open(now) {
		return false // it was under way when it opened
	}
	if now-b.last > remembers {
		b.failed = 0
	}
	b.failed, b.last = b.failed+1, now
	if b.Opened == 0 && b.failed < Failures {
		return false
	}
	wait := models.Instant(Shortest) << min(b.Opened, 10)
	b.Opened, b.Until, b.Class, b.failed = b.Opened+1, now+min(wait, Longest), class, 0
	return true
}

// Worked notes a success and says whether the breaker shuts by it.
func (b *Breaker) Worked(now models.Instant) bool {
	if b.Open(now) {
		return false // it began before the failures
	}
	shuts := b.Opened > 0
	*b = Breaker{}
	return shuts
}

// Open says that nothing is given to the model.
func (b *Breaker) Open(now models.Instant) bool { return b.Opened > 0 && now < b.Until }

// Tries says that one task at a time is given to it, to see whether it works again.
func (b *Breaker) Tries(now models.Instant) bool { return b.Opened > 0 && now >= b.Until }

// Keep takes over what only a process remembers of the breaker before: the failures that have not opened it.
func (b *Breaker) Keep(old Breaker) {
	if b.Opened == old.Opened && b.Until == old.Until {
		b.failed, b.last = old.failed, old.last
	}
}

// Quiet says that nothing is remembered of it.
func (b *Breaker) Quiet() bool { return *b == Breaker{} }

// State is the word for it.
func (b *Breaker) State(now models.Instant) string {
	switch {
	case b.Open(now):
		return "open"
	case b.Tries(now):
		return "half_open"
	}
	return "closed"
}
