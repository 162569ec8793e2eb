package estimate

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"nightshift/models"
)

// Prior is the run time expected of a task nobody has seen run, in seconds, whatever the quantile.
const Prior = 1.0

const (
	buckets  = 128
	perOctav = 4      // buckets a doubling
	least    = 0.0005 // seconds; the first bucket ends at least × 2^(1/4)
	fadeAt   = 1024   // observations after which all count half
)

// Histogram is what was seen of one kind of task.
type Histogram struct {
	counts [buckets]uint16
	total  int
}

func bucket(seconds float64) int {
	if seconds <= least {
		return 0
	}
	return min(buckets-1, int(math.Log2(seconds/least)*perOctav))
}

// Saw adds one run time in seconds.
func (h *Histogram) Saw(seconds float64) {
	h.counts[bucket(seconds)]++
	if h.total++; h.total >= fadeAt {
		h.fade()
	}
}

// Quantile is the run time that a share q of the tasks stayed within, to the upper edge of its bucket; Prior before
// anything was seen.
func (h *Histogram) Quantile(q float64) float64 {
	if h == nil || h.total == 0 {
		return Prior
	}
	need, sum := int(h.share(q)), 0
	for i, n := range h.counts {
		if sum += int(n); sum >= need && n > 0 {
			return edge(i)
		}
	}
	return Prior
}

// edge is where a bucket ends.
func edge(i int) float64 { return least * math.Exp2((float64(i)+1)/perOctav) }

// share is how many observations a share q is.
func (h *Histogram) share(q float64) uint16 { return uint16(math.Ceil(q * float64(h.total))) }

type key struct{ tenant, class int32 }

// like is a tenant's tasks of one type and model, whatever else they ask for.
type like struct{ tenant, shape int32 }

type shape struct{ taskType, model string }

// runs are run times, with a moving mean for what is charged at a claim.
type runs struct {
	Histogram
	mean float64
}

// page is what was seen of a tenant's class.
type page struct {
	runs
	key    key
	dirty  bool       // it is among those that changed
	tokens *Histogram // nil, like cost: no task reported any use
	cost   *Histogram
	most   [2]int64 // the most that one used, in tokens and in money; 0: that is not known
}

// Book holds the histograms of all tenants.
type Book struct {
	pages map[key]*page
	dirty []*page // changed since they were last saved, in any order

	shapes map[shape]int32
	shaped map[int32]int32 // by class
	likes  map[like]*runs  // follows from pages
}

// NewBook knows nothing yet.
func NewBook() *Book {
	return &Book{pages: map[key]*page{}, shapes: map[shape]int32{}, shaped: map[int32]int32{}, likes: map[like]*runs{}}
}

// Knows says of which type and model a class is. The run times of a class that was never seen are those of its like.
func (b *Book) Knows(class int32, taskType, model string) {
	s := shape{taskType, model}
	n := b.shapes[s]
	if n == 0 {
		n = int32(len(b.shapes) + 1)
		b.shapes[s] = n
	}
	b.shaped[class] = n
}

// like finds the run times of a tenant's tasks of the type and model of a class, and makes a page for them where there is none.
func (b *Book) like(tenant, class int32) *runs {
	at := like{tenant, b.shaped[class]}
	r := b.likes[at]
	if r == nil {
		r = &runs{mean: Prior}
		if at.shape != 0 {
			b.likes[at] = r
		}
	}
	return r
}

// runsOf are those seen of a tenant's class, else those of its like, nil where nothing of either was seen.
func (b *Book) runsOf(tenant, class int32) *runs {
	if p := b.pages[key{tenant, class}]; p != nil && p.total > 0 {
		return &p.runs
	}
	if r := b.likes[like{tenant, b.shaped[class]}]; r != nil && r.total > 0 {
		return r
	}
	return nil
}

// Changes lists what was seen since the last call, by tenant and class, at most most of them; the rest comes next time.
func (b *Book) Changes(most int) []models.Estimate {
	slices.SortFunc(b.dirty, func(a, b *page) int {
		return cmp.Or(cmp.Compare(a.key.tenant, b.key.tenant), cmp.Compare(a.key.class, b.key.class))
	})
	n := min(len(b.dirty), most)
	out := make([]models.Estimate, 0, n)
	for _, p := range b.dirty[:n] {
		p.dirty = false
		out = append(out, models.Estimate{Tenant: p.key.tenant, Class: p.key.class, Counts: p.saved()})
	}
	b.dirty = slices.Delete(b.dirty, 0, n)
	return out
}

// Restore takes in what was saved; what was seen since goes first.
func (b *Book) Restore(saved []models.Estimate) {
	for _, s := range saved {
		k := key{s.Tenant, s.Class}
		if p := restored(k, s.Counts); p != nil && b.pages[k] == nil {
			b.pages[k] = p
			b.like(s.Tenant, s.Class).join(&p.runs)
		}
	}
}

// bytes is the saved form: a count of two bytes a bucket, without the empty ones at the end.
func (h *Histogram) bytes() []byte {
	last := len(h.counts)
	for last > 0 && h.counts[last-1] == 0 {
		last--
	}
	out := make([]byte, 0, 2*last)
	for _, n := range h.counts[:last] {
		out = binary.LittleEndian.AppendUint16(out, n)
	}
	return out
}

// read makes a histogram of its saved form, nil where it is none.
func read(saved []byte) *Histogram {
	if len(saved)%2 != 0 || len(saved) > 2*buckets {
		return nil
	}
	h := &Histogram{}
	for i := range len(saved) / 2 {
		h.counts[i] = binary.LittleEndian.Uint16(saved[2*i:])
		h.total += int(h.counts[i])
	}
	return h
}

// mean is the mean run time, each taken at the middle of its bucket.
func (h *Histogram) mean() float64 {
	if h.total == 0 {
		return Prior
	}
	sum := 0.0
	for i, n := range h.counts {
		sum += float64(n) * least * math.Exp2((float64(i)+0.5)/perOctav)
	}
	return sum / float64(h.total)
}

// meanWeight is how much the newest observation counts in the moving mean.
const meanWeight = 0.2

// Saw adds one run time.
func (b *Book) Saw(tenant, class int32, seconds float64) {
	p := b.pageOf(key{tenant, class})
	p.saw(seconds)
	b.like(tenant, class).saw(seconds)
	b.changed(p)
}

func (r *runs) saw(seconds float64) {
	if r.total == 0 {
		r.mean = seconds
	}
	r.Histogram.Saw(seconds)
	r.mean += meanWeight * (seconds - r.mean)
}

// join counts other run times too.
func (r *runs) join(o *runs) {
	if o.total == 0 {
		return
	}
	r.mean = (r.mean*float64(r.total) + o.mean*float64(o.total)) / float64(r.total+o.total)
	for i, n := range o.counts {
		r.counts[i] += n
	}
	if r.total += o.total; r.total >= fadeAt {
		r.fade()
	}
}

// fade lets what was seen count half.
func (h *Histogram) fade() {
	h.total = 0
	for i := range h.counts {
		h.counts[i] /= 2
		h.total += int(h.counts[i])
	}
}

func (b *Book) pageOf(k key) *page {
	p := b.pages[k]
	if p == nil {
		p = &page{key: k, runs: runs{mean: Prior}}
		b.pages[k] = p
	}
	return p
}

func (b *Book) changed(p *page) {
	if !p.dirty {
		p.dirty = true
		b.dirty = append(b.dirty, p)
	}
}

// Mean is the moving mean of the run time in seconds.
func (b *Book) Mean(tenant, class int32) float64 {
	if r := b.runsOf(tenant, class); r != nil {
		return r.mean
	}
	return Prior
}

// Quantile is the run time in seconds that a share q of the tasks stayed within.
func (b *Book) Quantile(tenant, class int32, q float64) float64 {
	if r := b.runsOf(tenant, class); r != nil {
		return r.Histogram.Quantile(q)
	}
	return Prior
}
