package board

import (
	"encoding/json"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/fit"
)

// Worker is a worker with what it runs.
type Worker struct {
	models.Worker
	Use    *fit.Use
	Leases []*Lease // in no order

	Make   *Make
	counts [4]*counts     // holds that leases count in, by kind
	fits   map[int32]bool // by class
}

// SlotsFor are its slots that a kind may take.
func (w *Worker) SlotsFor(kind models.KindName) int32 {
	if w.KindSlots != nil {
		return w.KindSlots[kind.String()]
	}
	return w.Slots
}

// Lease is a worker's right to one attempt.
type Lease struct {
	Entry     *Entry
	Worker    *Worker // nil when its worker is not known any more
	Kind      models.KindName
	Pool      string
	Tenant    int32
	Cards     []int
	Until     models.Instant
	GrantedAt models.Instant
	Rate      float64        // share of its pool, the dominant resource's
	Charged   float64        // seconds of the pool charged so far
	Unseen    models.Instant // how long no brain lived to see it run, in microseconds: nobody is charged for that
	Progress  json.RawMessage
	index     int // among its worker's

	SoftTold  bool           // soft_timeout was signalled
	MissedAt  models.Instant // first beat that did not list it, 0: none
	Confirmed bool           // a beat listed it

	CancelTold bool            // cancel was signalled
	Signals    []models.Signal // sent by name, not told yet

	ofKind, ofLane *counts // that it is counted in
}

// Row is the task's row.
func (l *Lease) Row() *models.Task { return &l.Entry.Row }

// Pool is a group of like workers with what they have in all.
type Pool struct {
	Workers  int
	Slots    int64
	CPUMilli int64
	MemoryMB int64
	Cards    int64
	VRAMMB   int64
}

func (p *Pool) add(w *models.Worker, sign int64) {
	p.Workers += int(sign)
	p.Slots += sign * int64(w.Slots)
	for _, n := range w.KindSlots { // any order: a sum
		p.Slots += sign * int64(n)
	}
	p.CPUMilli += sign * w.CPUMilli
	p.MemoryMB += sign * w.MemoryMB
	for _, c := range w.GPUs {
		p.Cards += sign
		p.VRAMMB += sign * c.VRAMMB
	}
}

// Share is the class's dominant share of the pool.
func (p *Pool) Share(c *models.Class) float64 {
	part := func(need, all int64) float64 {
		if need <= 0 || all <= 0 {
			return 0
		}
		return float64(need) / float64(all)
	}
	cards := int64(fit.Cards(c))
	return max(part(1, p.Slots), part(c.CPUMilli, p.CPUMilli), part(c.MemoryMB, p.MemoryMB), part(cards, p.Cards), part(cards*c.VRAMMB, p.VRAMMB))
}

// PutWorker adds a worker or replaces what it says of itself, keeping its leases.
func (b *Board) PutWorker(w models.Worker) *Worker {
	old := b.Workers[w.ID]
	if old == nil {
		old = &Worker{Use: fit.NewUse(&w)}
		b.Workers[w.ID] = old
	} else {
		b.pool(old.Pool).add(&old.Worker, -1)
		b.part(old)
		for _, l := range old.Leases {
			b.countOut(l)
		}
	}
	old.Worker = w
	old.fits = map[int32]bool{}
	b.pool(w.Pool).add(&w, 1)
	b.instances[instance{w.Tenant, w.Instance}] = old
	b.join(old)
	b.countOn(old)
	old.Use = fit.NewUse(&w)
	for _, l := range old.Leases {
		old.Use.Take(&old.Worker, l.Kind, b.Classes[l.Row().Class], l.Cards)
		b.countIn(l)
	}
	return old
}

func (b *Board) pool(name string) *Pool {
	p := b.Pools[name]
	if p == nil {
		p = &Pool{}
		b.Pools[name] = p
	}
	return p
}

// DropWorker forgets a worker; its leases must have been ended.
func (b *Board) DropWorker(w *Worker) {
	b.part(w)
	b.pool(w.Pool).add(&w.Worker, -1)
	if b.pool(w.Pool).Workers == 0 {
		delete(b.Pools, w.Pool)
		b.dropHolds(w.Pool)
	}
	delete(b.instances, instance{w.Tenant, w.Instance})
	delete(b.Workers, w.ID)
}

// Instance finds the worker of an instance id.
func (b *Board) Instance(tenant int32, name string) *Worker {
	return b.instances[instance{tenant, name}]
}

// Fits says whether the worker could ever run the class, and remembers it.
func (b *Board) Fits(w *Worker, class int32) bool {
	ok, known := w.fits[class]
	if !known {
		c := b.Classes[class]
		ok = c != nil && fit.Lack(&w.Worker, c) == ""
		w.fits[class] = ok
	}
	return ok
}

// Serves says whether the worker takes tasks of this environment, lane and kind.
func (b *Board) Serves(w *Worker, env int32, lane *Lane) bool {
	switch {
	case w.Tenant != 0 && w.Tenant != b.TenantOf(env), w.Env != 0 && w.Env != env:
		return false
	case len(w.Lanes) > 0 && (lane == nil || !slices.Contains(w.Lanes, lane.Name)):
		return false
	case len(w.Kinds) > 0 && (lane == nil || !slices.Contains(w.Kinds, lane.Kind)):
		return false
	}
	return true
}

// Grant makes a running row's lease. The row carries worker, token and LeaseUntil.
func (b *Board) Grant(row *models.Task, cards []int, now models.Instant) *Lease {
	e := b.hold(row)
	e.starts = false
	w := b.Workers[row.Worker]
	l := &Lease{
		Entry: e, Worker: w, Kind: b.kindOf(row.Lane), Tenant: b.TenantOf(row.Env), Cards: cards,
		Until: row.LeaseUntil, GrantedAt: now,
	}
	e.Lease = l
	b.Leases[row.Token] = l
	b.runs(row.Lane, 1)
	b.counts(row, l.Tenant, 1)
	b.holdKeys(row)
	b.holdMoney(row, 1)
	if w != nil {
		class := b.Classes[row.Class]
		l.Pool = w.Pool
		l.Rate = b.pool(w.Pool).Share(class)
		l.index = len(w.Leases)
		w.Leases = append(w.Leases, l)
		w.Use.Take(&w.Worker, l.Kind, class, cards)
		b.countIn(l)
	}
	return l
}

// End takes a lease off: slot, cards and keys are free again.
func (b *Board) End(l *Lease) {
	row := l.Row()
	delete(b.Leases, row.Token)
	b.runs(row.Lane, -1)
	b.counts(row, l.Tenant, -1)
	b.freeKeys(row)
	b.holdMoney(row, -1)
	if w := l.Worker; w != nil {
		b.countOut(l)
		last := w.Leases[len(w.Leases)-1]
		w.Leases[l.index], last.index = last, l.index
		w.Leases[len(w.Leases)-1] = nil
		w.Leases = w.Leases[:len(w.Leases)-1]
		w.Use.Give(&w.Worker, l.Kind, b.Classes[row.Class], l.Cards)
	}
	l.Entry.Lease = nil
	b.release(l.Entry)
}

// runs counts what a lane runs; at its limit the lane's lines go off offer, and below it on again.
func (b *Board) runs(number, n int32) {
	lane := b.Lanes[number]
	if lane == nil {
		return
	}
	was := lane.Running
	lane.Running += n
	if most := lane.MaxConcurrent; most > 0 && (was >= most) != (lane.Running >= most) {
		for _, line := range lane.lines {
			b.offer(line)
		}
	}
}
