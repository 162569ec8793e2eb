package engine

import (
	"cmp"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
)

// parkedClaim is a claim that waits for work.
type parkedClaim struct {
	cmd    *Command
	worker models.ID
}

// ration is what a claim may still take.
type ration struct {
	most     int32
	bySlot   map[string]int32
	cpuMilli int64
	memoryMB int64
	limited  bool // cpu and memory are the worker's own word
}

func rationOf(c *Claim, w *board.Worker) *ration {
	r := &ration{most: c.Most, cpuMilli: w.CPUMilli, memoryMB: w.MemoryMB}
	if c.Free == nil {
		return r
	}
	if c.Free.Slots != nil {
		r.most = min(r.most, *c.Free.Slots)
	}
	if c.Free.BySlot != nil {
		r.bySlot = map[string]int32{}
		for kind, n := range c.Free.BySlot { // any order: a copy
			r.bySlot[kind] = n
		}
	}
	if c.Free.CPUMilli != nil {
		r.cpuMilli, r.limited = *c.Free.CPUMilli, true
	}
	if c.Free.MemoryMB != nil {
		r.memoryMB, r.limited = *c.Free.MemoryMB, true
	}
	return r
}

// atMost is how many more tasks the claim may get at most.
func (r *ration) atMost(w *board.Worker) int32 {
	slots := w.Slots - w.Use.Slots
	if w.KindSlots != nil {
		slots = -w.Use.Slots
		for _, n := range w.KindSlots { // any order: a sum
			slots += n
		}
	}
	return max(1, min(r.most, slots))
}

func (r *ration) allows(kind models.KindName, c *models.Class) bool {
	if r.bySlot != nil && r.bySlot[kind.String()] <= 0 {
		return false
	}
	return r.most > 0 && (!r.limited || c.CPUMilli <= r.cpuMilli && c.MemoryMB <= r.memoryMB)
}

func (r *ration) take(kind models.KindName, c *models.Class) {
	r.most--
	if r.bySlot != nil {
		r.bySlot[kind.String()]--
	}
	r.cpuMilli -= c.CPUMilli
	r.memoryMB -= c.MemoryMB
}

// claim answers at once when something fits, or waits.
func (e *Engine) claim(cmd *Command) (*Answer, error) {
	c := cmd.Claim
	w, err := e.worker(c.Worker, c.Session)
	if err != nil {
		return nil, err
	}
	w.LastSeen = max(w.LastSeen, e.now)
	if c.Until == 0 && c.WaitMS > 0 {
		c.Until = e.now + models.Instant(c.WaitMS*1000)
	}
	leases := e.serve(w, c)
	if signals := e.signalsOf(w); len(leases) > 0 || len(signals) > 0 {
		return &Answer{Claimed: &Claimed{Leases: leases, Signals: signals}}, nil
	}
	if c.Until <= e.now || w.State != models.WorkerActive {
		return &Answer{Claimed: &Claimed{}}, nil
	}
	e.claims = append(e.claims, &parkedClaim{cmd: cmd, worker: w.ID})
	return nil, nil
}

// holdsSession refuses a session that is not the one whose worker holds the lease. The single forms may leave it out.
func holdsSession(lease *board.Lease, session models.ID) error {
	switch w := lease.Worker; {
	case session.IsZero():
	case w == nil:
		return models.Errorf(models.SessionReplaced, "the worker of this lease is not known any more")
	case w.Session != session:
		return models.Errorf(models.SessionReplaced, "the worker %s has registered again: this session has ended", w.Name)
	}
	return nil
}

// worker finds a worker and checks its session; a zero session is an admin's.
func (e *Engine) worker(id, session models.ID) (*board.Worker, error) {
	w := e.board.Workers[id]
	switch {
	case w == nil:
		return nil, models.Errorf(models.NotFound, "there is no worker %s", id.Text(models.WorkerPrefix))
	case w.Session != session:
		return nil, models.Errorf(models.SessionReplaced, "the worker %s has registered again: this session has ended", w.Name)
	}
	return w, nil
}

// workers lists all by id.
func (e *Engine) workers() []*board.Worker {
	out := make([]*board.Worker, 0, len(e.board.Workers))
	for _, w := range e.board.Workers { // any order: sorted below
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b *board.Worker) int { return a.ID.Compare(b.ID) })
	return out
}

// serve starts what the worker may take now.
func (e *Engine) serve(w *board.Worker, c *Claim) []Lease {
	if w.State != models.WorkerActive {
		return nil
	}
	r := rationOf(c, w)
	var leases []Lease
	for r.most > 0 {
		entry, cards := e.redeem(w, r)
		if entry == nil {
			entry, cards = e.pick(w, r)
		}
		if entry == nil {
			break
		}
		if leases == nil {
			leases = make([]Lease, 0, r.atMost(w))
		}
		leases = append(leases, e.start(entry, w, cards, r))
	}
	return leases
}

// start gives the worker a lease on the task. The lease's row is filled in at the end of the batch.
func (e *Engine) start(entry *board.Entry, w *board.Worker, cards []int, r *ration) Lease {
	c := e.enlist(&entry.Row)
	e.endsHold(&c.row, w.Pool)
	entry.Starts()
	e.move(c, models.Claimed, models.Running)
	lane := e.board.Lanes[c.row.Lane]
	class := e.board.Classes[c.row.Class]
	c.row.Attempt++
	c.row.Worker, c.row.AttemptID, c.row.Token = w.ID, e.newID(), e.token()
	c.row.StartedAt, c.row.FinishedAt, c.row.WakeAt, c.row.ExpiresAt = e.now, 0, 0, 0
	c.row.DelaySeconds = 0 // it has been waited for
	if c.row.TotalSeconds > 0 && c.row.TotalUntil == 0 {
		c.row.TotalUntil = e.now.Add(models.Seconds(int(c.row.TotalSeconds)))
	}
	c.row.LeaseUntil = e.now.Add(models.Seconds(int(leaseSeconds(w))))
	c.row.Cards = board.CardBits(cards)
	e.place(c)
	lease := e.board.Grant(&c.row, cards, e.now)
	e.pass(&c.row)
	seconds := float64(c.row.EstimateMS) / 1000
	if seconds == 0 {
		seconds = e.book.Mean(lease.Tenant, c.row.Class)
	}
	e.board.Spend(lease.Tenant, c.row.Tokens, e.now)
	if class.Model != "" {
		e.board.SpendOn(lease.Tenant, class.Model, c.row.Tokens, e.now)
	}
	e.board.Charge(lease, e.board.Clock(w.Pool, lane.Kind).Span(seconds)*lease.Rate)
	e.noteStart(w.Pool, lane.Kind)
	r.take(lane.Kind, class)
	lane.Out.Add(e.now)
	e.note(tallyStarted, &c.row)
	ev := e.event(c, "task.started")
	ev.Worker, ev.Pool = w.ID, w.Pool
	return Lease{Row: c.row, GPUs: cards, Model: class.Model, Type: class.Type, Permissions: class.Permissions, Spec: c.spec}
}

// starts are the kinds of a pool's last 100 starts.
type starts struct {
	ring   []models.KindName
	counts [4]float64
}

func (e *Engine) noteStart(pool string, kind models.KindName) {
	s := e.starts[pool]
	if s == nil {
		s = &starts{}
		e.starts[pool] = s
	}
	s.ring = append(s.ring, kind)
	s.counts[kind]++
	if len(s.ring) > 100 {
		s.counts[s.ring[0]]--
		s.ring = s.ring[1:]
	}
}

// pick chooses what the worker runs next: kind, tenant by virtual time, then the best of the tenant's lines.
func (e *Engine) pick(w *board.Worker, r *ration) (entry *board.Entry, cards []int) {
	e.misfits = e.misfits[:0]
	if entry, cards = e.pickKind(w, r); entry != nil {
		for _, line := range e.misfits { // something else fills the gap that they did not fit
			line.Misfit = e.now
		}
	}
	return entry, cards
}

func (e *Engine) pickKind(w *board.Worker, r *ration) (*board.Entry, []int) {
	for _, kind := range e.kindsFor(w.Pool) {
		if !w.Use.SlotFree(&w.Worker, kind) || len(e.board.Groups(kind)) == 0 {
			continue
		}
		if entry, cards := e.pickLoose(w, r, kind); entry != nil {
			return entry, cards
		}
		if w.Yields(kind) {
			continue
		}
		if entry, cards := e.pickOf(w, r, kind); entry != nil {
			return entry, cards
		}
	}
	return nil, nil
}

// kindsFor orders the kinds for a pool: those below their guaranteed share of its last starts, then by precedence, then by virtual
// time.
func (e *Engine) kindsFor(pool string) [4]models.KindName {
	var got [4]float64
	last := 0.0
	if s := e.starts[pool]; s != nil {
		got, last = s.counts, float64(len(s.ring))
	}
	starved := func(k models.KindName) bool { return got[k] < e.board.Kinds[k].MinShare*last }
	order := [4]models.KindName{models.Realtime, models.IO, models.Compute, models.Batch}
	slices.SortStableFunc(order[:], func(a, b models.KindName) int {
		if starved(a) != starved(b) {
			if starved(a) {
				return -1
			}
			return 1
		}
		ka, kb := &e.board.Kinds[a], &e.board.Kinds[b]
		return cmp.Or(cmp.Compare(ka.Precedence, kb.Precedence), cmp.Compare(e.board.KindTime(pool, a), e.board.KindTime(pool, b)))
	})
	return order
}

// headOf is the line's first task by rank whose key has room; those before it are parked.
func (e *Engine) headOf(line *board.Line) *board.Entry {
	for {
		head := line.Head()
		if head == nil || e.board.Open(&head.Row) {
			if head != nil && !e.known(&head.Row) {
				return nil
			}
			return head
		}
		e.parkEntry(head)
	}
}

// parkEntry takes a task whose key is taken out of its line until the key has room.
func (e *Engine) parkEntry(entry *board.Entry) {
	c := e.enlist(&entry.Row)
	e.stepOut(c)
	c.row.UpdatedAt = e.now
	e.park(c)
	e.sync(c)
}

// match answers the parked claims that now get something, the fullest worker first.
func (e *Engine) match() {
	if !e.dirty || len(e.claims) == 0 {
		e.dirty = e.dirty && len(e.claims) > 0
		return
	}
	e.dirty = false
	order := slices.Clone(e.claims)
	slices.SortStableFunc(order, func(a, b *parkedClaim) int { return cmp.Compare(e.fullness(b), e.fullness(a)) })
	for _, p := range order {
		w := e.board.Workers[p.worker]
		if w == nil || w.Session != p.cmd.Claim.Session {
			continue // expireClaims tells it
		}
		if leases := e.serve(w, p.cmd.Claim); len(leases) > 0 {
			e.unparkClaim(p, &Answer{Claimed: &Claimed{Leases: leases}}, nil)
		}
	}
}

func (e *Engine) fullness(p *parkedClaim) float64 {
	if w := e.board.Workers[p.worker]; w != nil {
		return w.Use.Fullness(&w.Worker)
	}
	return 0
}

func (e *Engine) unparkClaim(p *parkedClaim, answer *Answer, err error) {
	e.claims = slices.DeleteFunc(e.claims, func(o *parkedClaim) bool { return o == p })
	e.reply(p.cmd, answer, err)
}

// expireClaims answers the claims whose time is over, and those whose worker is gone, draining or replaced.
func (e *Engine) expireClaims() {
	for _, p := range slices.Clone(e.claims) {
		w, err := e.worker(p.worker, p.cmd.Claim.Session)
		switch {
		case err != nil:
			e.unparkClaim(p, nil, err)
		case p.cmd.Claim.Until <= e.now || w.State != models.WorkerActive:
			e.unparkClaim(p, &Answer{Claimed: &Claimed{}}, nil)
		}
	}
}

// giveBack takes back leases that could not be delivered and a parked claim nobody waits for.
func (e *Engine) giveBack(r *Return) (*Answer, error) {
	for _, p := range slices.Clone(e.claims) {
		if p.cmd.ID == r.Claim && !r.Claim.IsZero() {
			e.unparkClaim(p, &Answer{Claimed: &Claimed{}}, nil)
		}
	}
	for _, token := range r.Tokens {
		if lease := e.board.Leases[token]; lease != nil {
			e.b.notes.lost[lostUndelivered]++
			e.release(lease, nil)
		}
	}
	return &Answer{}, nil
}

func leaseSeconds(w *board.Worker) int32 {
	if w == nil || w.LeaseSeconds == 0 {
		return 30
	}
	return w.LeaseSeconds
}
