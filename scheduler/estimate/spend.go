package estimate

import "encoding/binary"

// What tasks use of tokens and money is kept in the same buckets as their run time, counted in tokens and in millionths
// of a dollar: the first bucket is one of them, the last four thousand million.
const unit = least

// Spent adds what one task used, in tokens and in millionths of a dollar; nothing of both says nothing.
func (b *Book) Spent(tenant, class int32, tokens, micro int64) {
	if tokens <= 0 && micro <= 0 {
		return
	}
	p := b.pageOf(key{tenant, class})
	if p.tokens == nil {
		p.tokens, p.cost = &Histogram{}, &Histogram{}
	}
	p.tokens.Saw(float64(max(0, tokens)) * unit)
	p.cost.Saw(float64(max(0, micro)) * unit)
	p.most = [2]int64{max(p.most[0], tokens), max(p.most[1], micro)}
	b.changed(p)
}

// Tokens is what a share q of the tasks stayed within; ok says whether any of them reported its use.
func (b *Book) Tokens(tenant, class int32, q float64) (tokens int64, ok bool) {
	return b.use(tenant, class, q, func(p *page) (*Histogram, int64) { return p.tokens, p.most[0] })
}

// Cost is like Tokens, in millionths of a dollar.
func (b *Book) Cost(tenant, class int32, q float64) (micro int64, ok bool) {
	return b.use(tenant, class, q, func(p *page) (*Histogram, int64) { return p.cost, p.most[1] })
}

// use is a quantile of what was used. Where it falls among the largest uses it is the largest itself: tasks that all cost
// the same are known exactly.
func (b *Book) use(tenant, class int32, q float64, of func(*page) (*Histogram, int64)) (int64, bool) {
	p := b.pages[key{tenant, class}]
	if p == nil {
		return 0, false
	}
	h, most := of(p)
	if h == nil || h.total == 0 {
		return 0, false
	}
	if h.counts[0] >= h.share(q) {
		return 0, true // that share used nothing of it, or one
	}
	within := h.Quantile(q)
	if most > 0 && within == edge(bucket(float64(most)*unit)) {
		return most, true
	}
	return int64(within / unit), true
}

// saved is the stored form of a page: run times alone as they are, and where uses were seen a byte before three
// histograms, each with its length, and the largest uses. The two are told apart by their length, which is even or odd.
func (p *page) saved() []byte {
	if p.tokens == nil {
		return p.bytes()
	}
	out := []byte{1}
	for _, h := range []*Histogram{&p.Histogram, p.tokens, p.cost} {
		counts := h.bytes()
		out = binary.LittleEndian.AppendUint16(out, uint16(len(counts)))
		out = append(out, counts...)
	}
	for _, most := range p.most {
		out = binary.LittleEndian.AppendUint64(out, uint64(most))
	}
	return out
}

// restored makes a page of its stored form, nil where it is none.
func restored(k key, saved []byte) *page {
	if len(saved)%2 == 0 {
		h := read(saved)
		if h == nil {
			return nil
		}
		return &page{runs: runs{*h, h.mean()}, key: k}
	}
	var parts [3]*Histogram
	rest := saved[1:]
	for i := range parts {
		if len(rest) < 2 {
			return nil
		}
		n := int(binary.LittleEndian.Uint16(rest))
		if rest = rest[2:]; len(rest) < n {
			return nil
		}
		if parts[i], rest = read(rest[:n]), rest[n:]; parts[i] == nil {
			return nil
		}
	}
	p := &page{runs: runs{*parts[0], parts[0].mean()}, key: k, tokens: parts[1], cost: parts[2]}
	for i := range p.most {
		if len(rest) >= 8 { // an earlier version did not keep it
			p.most[i], rest = int64(binary.LittleEndian.Uint64(rest)), rest[8:]
		}
	}
	return p
}
