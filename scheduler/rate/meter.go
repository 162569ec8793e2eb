package rate

import (
	"slices"

	"nightshift/models"
)

// Slices is models.RateSlices: into how many parts a meter cuts its length: what passed in one part is remembered as if it had passed with the
// last of that part. So a meter stays small, never lets too much pass, and loses at most a Slices-th of its rate.
const Slices = models.RateSlices

// Mark is how much passed up to a moment, in one slice.
type Mark struct {
	At models.Instant
	N  int64
}

// Meter lets at most Limit pass in any stretch of Per, and at most Burst at once. Where Burst is larger than Limit, at most
// Burst pass in a stretch, and Limit a stretch over time. The zero Meter is not usable: make it with NewMeter or Restore.
type Meter struct {
	Terms  Terms
	bucket Bucket
	marks  []Mark // ascending, a slice each
	passed int64  // the sum of marks
}

// NewMeter is one through which nothing has passed yet.
func NewMeter(t Terms, now models.Instant) *Meter { return &Meter{Terms: t, bucket: NewBucket(t, now)} }

// Restore is a meter as it was saved: the bucket after the last that passed, and the marks, ascending.
func Restore(t Terms, b Bucket, marks []Mark) *Meter {
	m := &Meter{Terms: t, bucket: b}
	for _, mark := range marks {
		m.mark(mark.At, mark.N)
	}
	return m
}

// Bucket is the part of the meter's state that its marks do not say.
func (m *Meter) Bucket() Bucket { return m.bucket }

// Credit is the bucket's as of now.
func (m *Meter) Credit(now models.Instant) int64 {
	b := m.bucket
	b.fill(m.Terms, now)
	return b.Credit
}

// Marks are what passed lately, ascending.
func (m *Meter) Marks() []Mark { return m.marks }

// Slice says to which slice of its terms a moment belongs; what is saved may be summed up by it.
func (t Terms) Slice(at models.Instant) int64 { return int64(at) / t.SliceLength() }

// SliceLength is the length of a slice in microseconds.
func (t Terms) SliceLength() int64 { return max(1, t.per()/Slices) }

// window is how much passes in any stretch at most.
func (t Terms) window() int64 { return max(t.Limit, t.burst()) }

// Since is the moment up to which marks count no longer.
func (t Terms) Since(now models.Instant) models.Instant { return now - models.Instant(t.per()) }

// forget drops what has passed long enough ago.
func (m *Meter) forget(now models.Instant) {
	since, n := m.Terms.Since(now), 0
	for n < len(m.marks) && m.marks[n].At <= since {
		m.passed -= m.marks[n].N
		n++
	}
	m.marks = slices.Delete(m.marks, 0, n)
}

// Left is how many may pass at now, at once.
func (m *Meter) Left(now models.Instant) int64 {
	m.forget(now)
	return max(0, min(m.Terms.window()-m.passed, m.bucket.Left(m.Terms, now)))
}

// OpensAt is the next moment at which one may pass, now when it may at once.
func (m *Meter) OpensAt(now models.Instant) models.Instant { return m.OpensFor(now, 1) }

// OpensFor is the next moment at which n may pass at once, now when they may; Forever: so many never may.
func (m *Meter) OpensFor(now models.Instant, n int64) models.Instant {
	m.forget(now)
	at := m.bucket.OpensFor(m.Terms, now, n)
	over := m.passed - m.Terms.window() + n - 1
	for i := 0; over >= 0 && i < len(m.marks); i++ {
		over -= m.marks[i].N
		at = max(at, m.marks[i].At+models.Instant(m.Terms.per()))
	}
	return at
}

// Pass counts n that pass at now, whether they may or not.
func (m *Meter) Pass(now models.Instant, n int64) {
	m.forget(now)
	m.bucket.Take(m.Terms, now, n)
	m.mark(now, n)
}

func (m *Meter) mark(at models.Instant, n int64) {
	if n == 0 {
		return
	}
	m.passed += n
	if last := len(m.marks) - 1; last >= 0 && m.Terms.Slice(m.marks[last].At) == m.Terms.Slice(at) {
		m.marks[last].At, m.marks[last].N = max(m.marks[last].At, at), m.marks[last].N+n
		return
	}
	m.marks = append(m.marks, Mark{at, n})
}

// Change goes over to other terms: what has passed stays passed. Where the length changes, it counts as if it had passed just
// now, because the slices of one length say nothing of those of another.
func (m *Meter) Change(to Terms, now models.Instant) {
	m.forget(now)
	m.bucket.Change(m.Terms, to, now)
	passed := m.passed
	if to.per() != m.Terms.per() {
		m.marks, m.passed = nil, 0
	}
	if m.Terms = to; m.marks == nil {
		m.mark(now, passed)
	}
}

// Passed is how many passed that still count.
func (m *Meter) Passed(now models.Instant) int64 {
	m.forget(now)
	return m.passed
}
