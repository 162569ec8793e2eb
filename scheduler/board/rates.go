package board

import (
	"container/heap"
	"time"

	"nightshift/models"
	"nightshift/scheduler/rate"
)

// opening is a moment at which a rate lets something pass that waits for it.
type opening struct {
	at models.Instant
	id KeyID
}

type openings []opening

func (h openings) Len() int { return len(h) }
func (h openings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && compareKeys(h[i].id, h[j].id) < 0
}
func (h openings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *openings) Push(x any)   { *h = append(*h, x.(opening)) }
func (h *openings) Pop() any {
	old := *h
	o := old[len(old)-1]
	*h = old[:len(old)-1]
	return o
}

// TermsOf are a rate limit's terms.
func TermsOf(l *models.RateLimit) rate.Terms {
	return rate.Terms{Limit: l.Limit, Per: time.Duration(l.PerSeconds) * time.Second, Burst: l.Burst}
}

// RateLimit finds a rate limit, nil when there is none.
func (b *Board) RateLimit(env int32, name string) *models.RateLimit {
	return b.rateLimits[models.RateRef{Env: env, Key: name}]
}

// SetRate sets a rate limit or changes it: what has passed stays passed.
func (b *Board) SetRate(l models.RateLimit) *rate.Meter {
	b.rateLimits[models.RateRef{Env: l.Env, Key: l.Key}] = &l
	k := b.key(KeyID{l.Env, l.Key, true})
	if k.Meter == nil {
		k.Meter = rate.NewMeter(TermsOf(&l), b.Now)
	} else {
		k.Meter.Change(TermsOf(&l), b.Now)
	}
	k.opens = 0
	b.touch(k)
	return k.Meter
}

// DropRate forgets a rate limit: the key holds nothing back any more.
func (b *Board) DropRate(env int32, name string) {
	delete(b.rateLimits, models.RateRef{Env: env, Key: name})
	k := b.key(KeyID{env, name, true})
	k.Meter, k.opens = nil, 0
	b.touch(k)
}

func (b *Board) restoreRate(s *models.RateState) {
	l := s.RateLimit
	b.rateLimits[models.RateRef{Env: l.Env, Key: l.Key}] = &l
	terms := TermsOf(&l)
	bucket := rate.NewBucket(terms, b.Now)
	if s.At != 0 {
		bucket = rate.Bucket{Credit: s.Credit, At: s.At}
	}
	marks := make([]rate.Mark, len(s.Passes))
	for i, p := range s.Passes {
		marks[i] = rate.Mark{At: p.At, N: p.N}
	}
	b.key(KeyID{l.Env, l.Key, true}).Meter = rate.Restore(terms, bucket, marks)
}

// Pass counts the start of a task under its rate keys, and answers those that have a limit.
func (b *Board) Pass(row *models.Task) (passed []*Key) {
	for need := range row.Keys() {
		if !need.Rate() {
			continue
		}
		if k := b.keys[idOf(row.Env, need)]; k != nil && k.Meter != nil {
			k.Meter.Pass(b.Now, 1)
			passed = append(passed, k)
		}
	}
	return passed
}

// opening remembers when a rate opens that something waits for.
func (b *Board) opening(k *Key) {
	if !k.ID.Rate || k.Meter == nil || len(k.waits) == 0 {
		return
	}
	at := models.Forever
	for line := range k.waits { // any order: a minimum
		at = min(at, k.Meter.OpensFor(b.Now, int64(k.kept)+int64(k.Admitted[line])+1))
	}
	if at <= b.Now || at == models.Forever || k.opens != 0 && k.opens <= at {
		return // room that is there already is given away by whoever frees it
	}
	k.opens = at
	heap.Push(&b.openings, opening{at, k.ID})
}

// NextOpening is when the next rate opens that something waits for; Forever: none.
func (b *Board) NextOpening() models.Instant {
	for len(b.openings) > 0 {
		o := b.openings[0]
		if k := b.keys[o.id]; k != nil && k.opens == o.at {
			return o.at
		}
		heap.Pop(&b.openings)
	}
	return models.Forever
}

// rateDue touches the rates that have opened.
func (b *Board) rateDue() {
	for b.NextOpening() <= b.Now {
		o := heap.Pop(&b.openings).(opening)
		k := b.keys[o.id]
		k.opens = 0
		b.touch(k)
	}
}
