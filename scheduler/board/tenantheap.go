package board

// standHeap orders stands by (key, tenant). It is a heap of four branches with the keys in line. A key may be older than
// the tenant's virtual time, never younger.
type standHeap []standItem

type standItem struct {
	key    float64
	tenant int32
	stand  *Stand
}

func (a *standItem) before(b *standItem) bool {
	return a.key < b.key || a.key == b.key && a.tenant < b.tenant
}

func (h *standHeap) push(s *Stand) {
	*h = append(*h, standItem{key: s.account.Virtual(), tenant: s.Tenant, stand: s})
	s.index = len(*h) - 1
	h.up(s.index)
}

// raise moves a stand up whose tenant's virtual time went back; nil and those set aside are left alone.
func (h *standHeap) raise(s *Stand) {
	if s == nil || s.index < 0 {
		return
	}
	if item := &(*h)[s.index]; s.account.Virtual() < item.key {
		item.key = s.account.Virtual()
		h.up(s.index)
	}
}

func (h *standHeap) remove(i int) {
	s := *h
	last := len(s) - 1
	s[i].stand.index = -1
	if i != last {
		s[i] = s[last]
		s[i].stand.index = i
	}
	s[last] = standItem{}
	*h = s[:last]
	if i < last {
		h.fix(i)
	}
}

func (h *standHeap) fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

func (h *standHeap) up(i int) {
	s := *h
	item := s[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !item.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		s[i].stand.index = i
		i = parent
	}
	s[i] = item
	item.stand.index = i
}

// down sinks an item and says whether it moved.
func (h *standHeap) down(i int) bool {
	s := *h
	item, from := s[i], i
	for {
		first := 4*i + 1
		if first >= len(s) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(s)); c++ {
			if s[c].before(&s[least]) {
				least = c
			}
		}
		if !s[least].before(&item) {
			break
		}
		s[i] = s[least]
		s[i].stand.index = i
		i = least
	}
	s[i] = item
	item.stand.index = i
	return i != from
}

// first is the stand whose tenant has the smallest virtual time, nil in an empty heap. Keys that are behind are brought up
// to date on the way.
func (h *standHeap) first() *Stand {
	for len(*h) > 0 {
		top := &(*h)[0]
		now := top.stand.account.Virtual()
		if now <= top.key {
			return top.stand
		}
		top.key = now
		h.down(0)
	}
	return nil
}
