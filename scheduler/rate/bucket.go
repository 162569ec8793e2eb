package rate

import (
	"math"
	"math/bits"
	"time"

	"nightshift/models"
)

// Terms are a rate: Limit units in a time of Per, at most Burst of them at once.
type Terms struct {
	Limit int64         // units, ≥ 1
	Per   time.Duration // at least a microsecond
	Burst int64         // units; 0: as many as Limit
}

// burst is what a full bucket holds.
func (t Terms) burst() int64 {
	if t.Burst == 0 {
		return t.Limit
	}
	return t.Burst
}

// per is the length in microseconds, and so what one unit is worth in a bucket's credit: Limit comes back in each microsecond.
func (t Terms) per() int64 { return max(1, int64(t.Per/time.Microsecond)) }

func (t Terms) full() int64 { return times(t.burst(), t.per()) }

// Bucket is what is left of a rate, refilled evenly. Its state is Credit as of At; the terms are handed to each call, so
// that a bucket can be kept as two numbers. The zero Bucket is empty since 1970: start with NewBucket.
type Bucket struct {
	Credit int64 // in units × microseconds of Per; below zero: debt
	At     models.Instant
}

// NewBucket is a full one.
func NewBucket(t Terms, now models.Instant) Bucket { return Bucket{t.full(), now} }

// fill brings the credit up to now. A clock that stands still or goes back gives nothing and takes nothing.
func (b *Bucket) fill(t Terms, now models.Instant) {
	if now <= b.At {
		return
	}
	b.Credit = min(t.full(), plus(b.Credit, times(int64(now-b.At), t.Limit)))
	b.At = now
}

// Left is how many whole units are left at now; below zero: so many are owed.
func (b Bucket) Left(t Terms, now models.Instant) int64 {
	b.fill(t, now)
	per := t.per()
	left := b.Credit / per
	if b.Credit%per < 0 {
		left--
	}
	return left
}

// Open says whether something may pass: at least one unit is left. How much it then takes does not matter.
func (b Bucket) Open(t Terms, now models.Instant) bool { return b.OpensAt(t, now) <= now }

// OpensAt is the next moment at which something may pass, now when it may at once.
func (b Bucket) OpensAt(t Terms, now models.Instant) models.Instant { return b.OpensFor(t, now, 1) }

// Dry says whether nothing may pass yet, and then when something may. Without a limit (Terms{}) a bucket is never dry.
func (b Bucket) Dry(t Terms, now models.Instant) (dry bool, opens models.Instant) {
	if t.Limit == 0 {
		return false, 0
	}
	if opens = b.OpensAt(t, now); opens <= now {
		return false, 0
	}
	return true, opens
}

// OpensFor is the next moment at which at least n units are left, now when they are; Forever: a full bucket has fewer.
func (b Bucket) OpensFor(t Terms, now models.Instant, n int64) models.Instant {
	if n > t.burst() {
		return models.Forever
	}
	b.fill(t, now)
	missing := plus(times(n, t.per()), -b.Credit)
	if missing <= 0 {
		return now
	}
	wait := missing / t.Limit
	if missing%t.Limit > 0 {
		wait++
	}
	return models.Instant(min(plus(int64(max(now, b.At)), wait), int64(models.Forever)))
}

// Take uses n units, more than are left where it must: the bucket goes into debt and opens when that is paid. Below zero it
// gives units back that were taken too many; a bucket never holds more than its burst.
func (b *Bucket) Take(t Terms, now models.Instant, n int64) {
	b.fill(t, now)
	b.Credit = min(t.full(), plus(b.Credit, -times(n, t.per())))
}

// Change goes over to other terms: what is used or owed stays used or owed, to the next whole unit.
func (b *Bucket) Change(from, to Terms, now models.Instant) {
	b.fill(from, now)
	used := plus(from.full(), -b.Credit)
	units := used / from.per()
	if used%from.per() > 0 {
		units++
	}
	b.Credit = plus(to.full(), -times(units, to.per()))
}

// most bounds credits, so that sums of two never overflow.
const most = math.MaxInt64 / 4

// times is a × b, held within ±most.
func times(a, b int64) int64 {
	negative := (a < 0) != (b < 0)
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	out := int64(most)
	if hi == 0 && lo < most {
		out = int64(lo)
	}
	if negative {
		return -out
	}
	return out
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// plus is a + b of two bounded numbers, held within ±most.
func plus(a, b int64) int64 {
	a, b = max(-most, min(a, most)), max(-most, min(b, most))
	return max(-most, min(a+b, most))
}
