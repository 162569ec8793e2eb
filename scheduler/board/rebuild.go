package board

import (
	"fmt"
	"math/bits"
	"slices"

	"nightshift/models"
)

// Build makes the board of a snapshot. Leases keep the moment the row says; whoever rebuilds renews or restores them.
func Build(limits Limits, s *models.Snapshot) *Board {
	b := New(limits)
	b.Now = s.Now
	for _, t := range s.Tenants {
		b.PutTenant(t)
	}
	for _, e := range s.Environments {
		b.PutEnv(e)
	}
	for _, k := range s.Kinds {
		b.Kinds[k.Name] = k
	}
	b.ruleKinds()
	for _, l := range s.Lanes {
		b.PutLane(l)
	}
	b.KeepHours(s.Now)
	for _, c := range s.Classes {
		b.PutClass(c)
	}
	b.restoreQuotas(&s.Quota)
	b.restoreBudgets(s)
	b.restoreModels(&s.Models, s.Now)
	for _, w := range s.Workers {
		b.PutWorker(w)
	}
	for _, v := range s.Virtual {
		b.Clock(v.Pool, v.Kind).Restore(v.Tenant, v.Time, v.Span)
	}
	for i := range s.Running {
		b.Grant(&s.Running[i], CardsOf(s.Running[i].Cards), s.Running[i].StartedAt)
	}
	for _, l := range s.Lines {
		b.restoreLine(&l)
	}
	for _, f := range s.HeldFlows {
		b.SetShut(f.Workflow, f.Gate)
	}
	for _, p := range s.Parked {
		b.restoreParked(p)
	}
	b.restoreKeys(s)
	b.restoreTokens(s)
	b.restoreModelTokens(s)
	return b
}

func (b *Board) restoreLine(c *models.LineCount) {
	if c.Ready == 0 {
		return
	}
	l := b.openLine(c.Line)
	l.Ready, l.Timed = c.Ready, c.Timed
	b.ready[l.Kind] += c.Ready
	b.AddQueued(c.Line.Env, c.Ready)
	if lane := b.Lanes[c.Line.Lane]; lane != nil {
		lane.Depth += c.Ready
	}
	for i := range c.Heads {
		if ms := c.Heads[i].EstimateMS; ms > 0 {
			l.told++
			l.workMS += ms
		}
	}
	if n := int64(len(c.Heads)); n > 0 {
		l.told, l.workMS = l.told*c.Ready/n, l.workMS*c.Ready/n
	}
	l.ranks.restore(c.Heads, c.Ready)
	l.starts.restore(c.Starts, c.Timed)
	for i := range c.Heads {
		b.enter(l, &c.Heads[i])
	}
	for i := range c.Starts {
		b.enter(l, &c.Starts[i])
	}
	b.looks(l)
}

// restore sets the watermark by the first rows of all there are.
func (w *window) restore(rows []models.Task, all int64) {
	if w.all = int64(len(rows)) >= all; !w.all {
		w.mark = lowest
		if len(rows) > 0 {
			w.mark = w.by(&rows[len(rows)-1])
		}
	}
}

func (b *Board) restoreParked(p models.ParkedCount) {
	b.parked += p.Count
	b.AddQueued(p.Line.Env, p.Count)
	b.appears(p.Line.Env, p.Line.Class, p.Count)
	if lane := b.Lanes[p.Line.Lane]; lane != nil {
		lane.Parked += p.Count
	}
	if p.Gate == models.ModelGate {
		b.parkModel(p.Line, p.Count)
		return
	}
	if b.parkFlow(p.Gate, p.Count) || b.parkMoney(p.Gate, p.Line, p.Count, models.Mark{AgeKey: p.First}) {
		return
	}
	if keyed, _ := KeyGate(p.Gate); keyed {
		first := models.Mark{AgeKey: p.First}
		if p.Keys.Ordered {
			first.AgeKey = p.Order
		}
		b.enqueue(b.queueFor(p.Gate, p.Line, p.Keys), p.Count, first)
	}
}

// CardsOf and CardBits turn a set of cards into the row's bits and back.
func CardsOf(set int64) []int {
	var out []int
	for v := uint64(set); v != 0; v &= v - 1 {
		out = append(out, bits.TrailingZeros64(v))
	}
	return out
}

// CardBits is the row's form of a set of cards.
func CardBits(cards []int) (set int64) {
	for _, c := range cards {
		set |= 1 << c
	}
	return set
}

// Check says where the board differs from one rebuilt from the snapshot, nil when nowhere. The snapshot must be of the
// moment after the last commit, with nothing decided since.
func (b *Board) Check(s *models.Snapshot) error {
	fresh := Build(b.Limits, s)
	for _, check := range []func(*Board) error{b.checkLines, b.checkPresent, b.checkOffers, b.checkKeys, b.checkQueues, b.checkFlows, b.checkLeases, b.checkCounts, b.checkQuotas, b.checkMoney, b.checkHolds, b.checkModels} {
		if err := check(fresh); err != nil {
			return err
		}
	}
	return nil
}

func (b *Board) checkLines(fresh *Board) error {
	entries := 0
	for _, id := range sortedLines(b.lines) {
		l, want := b.lines[id], fresh.lines[id]
		entries += len(l.ranks.entries) + len(l.starts.entries)
		if want == nil || l.Ready != want.Ready || l.Timed != want.Timed {
			return fmt.Errorf("line %v: %d ready (%d timed) on the board, the rows say %d", id, l.Ready, l.Timed, readyOf(want))
		}
		if err := l.ranks.check(&want.ranks, l.Ready); err != nil {
			return fmt.Errorf("line %v by rank: %w", id, err)
		}
		if err := l.starts.check(&want.starts, l.Timed); err != nil {
			return fmt.Errorf("line %v by start: %w", id, err)
		}
	}
	for _, id := range sortedLines(fresh.lines) {
		if b.lines[id] == nil {
			return fmt.Errorf("line %v is missing: the rows say %d ready", id, fresh.lines[id].Ready)
		}
	}
	if entries != b.entries {
		return fmt.Errorf("%d entries counted, %d in windows", b.entries, entries)
	}
	return nil
}

// checkOffers says where a line's offers say something else than the line.
func (b *Board) checkOffers(*Board) error {
	for _, id := range sortedLines(b.lines) {
		l := b.lines[id]
		if !l.offered && len(l.places) > 0 {
			return fmt.Errorf("line %v is off offer, but %d makes are offered it", id, len(l.places))
		}
		first := l.Head()
		for _, p := range l.places {
			if p.index >= len(p.stand.Offers) || p.stand.Offers[p.index].Line != l {
				return fmt.Errorf("line %v is not where it stands among the offers", id)
			}
			if p.stand.account != b.Clock(p.stand.of.pool, l.Kind).Of(l.Tenant) {
				return fmt.Errorf("line %v is offered by an account that nobody is charged on", id)
			}
			o := p.stand.Offers[p.index]
			if o.Timed != (first == nil || l.Urgent() != nil) || first != nil && o.Head != byRank(&first.Row) {
				return fmt.Errorf("line %v is offered as %+v: its window begins otherwise", id, o)
			}
		}
	}
	return nil
}

// check compares the window's first tasks with those of a fresh one, leaving out what was passed.
func (w *window) check(fresh *window, ready int64) error {
	want := fresh.entries
	for len(want) > 0 && !w.passed.Less(w.by(&want[0].Row)) {
		want = want[1:]
	}
	if w.all && w.passed == lowest && int64(len(w.entries)) != ready {
		return fmt.Errorf("the window says it holds all, but has %d of %d", len(w.entries), ready)
	}
	for i := range min(len(w.entries), len(want)) {
		if got, row := &w.entries[i].Row, &want[i].Row; got.ID != row.ID {
			return fmt.Errorf("number %d is %x on the board, %x in the rows", i, got.ID, row.ID)
		}
	}
	return nil
}

func readyOf(l *Line) int64 {
	if l == nil {
		return 0
	}
	return l.Ready
}

func merged[K comparable, A, B any](a map[K]A, b map[K]B) map[K]bool {
	out := map[K]bool{}
	for k := range a { // any order: a set
		out[k] = true
	}
	for k := range b { // any order: a set
		out[k] = true
	}
	return out
}

func (b *Board) checkLeases(fresh *Board) error {
	for token := range merged(b.Leases, fresh.Leases) { // any order: the first difference found will do
		got, want := b.Leases[token], fresh.Leases[token]
		switch {
		case want == nil:
			return fmt.Errorf("the board holds a lease of task %x (%s) that no row carries", got.Row().ID, got.Row().State)
		case got == nil:
			return fmt.Errorf("the lease of task %x (%s) is not on the board", want.Row().ID, want.Row().State)
		case got.Row().State != want.Row().State, got.Row().ID != want.Row().ID, got.Row().Attempt != want.Row().Attempt:
			return fmt.Errorf("lease %x: %+v on the board, %+v in the row", token, *got.Row(), *want.Row())
		case !slices.Equal(got.Cards, want.Cards):
			return fmt.Errorf("task %x: cards %v on the board, %v in the row", got.Row().ID, got.Cards, want.Cards)
		}
	}
	return nil
}

func (b *Board) checkCounts(fresh *Board) error {
	if b.parked != fresh.parked || b.ready != fresh.ready {
		return fmt.Errorf("%d parked and %v ready on the board, the rows say %d and %v", b.parked, b.ready, fresh.parked, fresh.ready)
	}
	for n := range merged(b.Lanes, fresh.Lanes) { // any order: the first difference found will do
		got, want := b.Lanes[n], fresh.Lanes[n]
		if got == nil || want == nil {
			return fmt.Errorf("lane %d: on the board %v, in the rows %v", n, got != nil, want != nil)
		}
		if got.Running != want.Running || got.Depth != want.Depth || got.Parked != want.Parked {
			return fmt.Errorf("lane %s: running %d, depth %d, parked %d on the board; the rows say %d, %d, %d", got.Name, got.Running, got.Depth, got.Parked, want.Running, want.Depth, want.Parked)
		}
	}
	for id := range merged(b.Workers, fresh.Workers) { // any order: the first difference found will do
		got, want := b.Workers[id], fresh.Workers[id]
		if got == nil || want == nil {
			return fmt.Errorf("worker %x: on the board %v, in the rows %v", id, got != nil, want != nil)
		}
		if got.Session != want.Session || got.State != want.State || len(got.Leases) != len(want.Leases) || got.Use.CPUMilli != want.Use.CPUMilli || got.Use.Slots != want.Use.Slots || !slices.Equal(got.Use.VRAMMB, want.Use.VRAMMB) {
			return fmt.Errorf("worker %s: in use %+v on the board, %+v by the rows", got.Name, got.Use, want.Use)
		}
	}
	return nil
}
