package board

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/budget"
)

// purseID names the parked tasks of a line that wait for one account and ask for the same.
type purseID struct {
	gate string
	line models.LineID
}

// purseQueue is those tasks. Like the queues of keys it knows how many there are and before which place none stands.
type purseQueue struct {
	id    purseID
	of    *Account
	gate  models.BudgetGate
	n     int64
	first models.Mark
	ask   budget.Ask
	size  int64 // of the ask, by which the queues of an account are ordered
	asked bool  // the first of them are being read
	index int
}

// purseHeap is what waits for an account, what asks for the least first.
type purseHeap []*purseQueue

func (h purseHeap) Len() int { return len(h) }
func (h purseHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].size, h[j].size), h[i].compare(h[j])) < 0
}

func (h purseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *purseHeap) Push(x any) { q := x.(*purseQueue); q.index = len(*h); *h = append(*h, q) }
func (h *purseHeap) Pop() any {
	old := *h
	q := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return q
}

// compare orders queues by rank.
func (q *purseQueue) compare(o *purseQueue) int {
	return cmp.Or(compareMarks(q.first, o.first), CompareLines(q.id.line, o.id.line), cmp.Compare(q.id.gate, o.id.gate))
}

func compareMarks(a, b models.Mark) int {
	return cmp.Or(cmp.Compare(a.AgeKey, b.AgeKey), a.ID.Compare(b.ID))
}

// back is a task that has come back from behind the gate of an account and has not started.
type back struct {
	of   *Account
	line models.LineID
	ask  budget.Ask
}

func (b *Board) touchPurse(a *Account) {
	if len(a.queues) > 0 {
		b.money.touched[a.ID] = true
	}
}

// weigh says anew what a queue asks for.
func (b *Board) weigh(q *purseQueue) {
	q.ask = b.askOf(q.id.line.Env, q.id.line.Class, q.gate.Micro, q.gate.Tokens)
	q.size = q.of.Purse.Size(q.ask)
}

// requeue orders anew what waits for an account: its limits or what is expected have changed.
func (b *Board) requeue(a *Account) {
	for _, q := range a.queues {
		b.weigh(q)
	}
	heap.Init(&a.queues)
}

// parkMoney counts n tasks of a line behind the gate of an account, the first of which stands at the mark; false when the
// gate is another.
func (b *Board) parkMoney(gate string, line models.LineID, n int64, first models.Mark) bool {
	g, ok := models.ParseBudgetGate(gate)
	if !ok {
		return false
	}
	id := purseID{gate, line}
	q := b.money.queues[id]
	if q == nil {
		a := b.account(g.ID)
		if g.Workflow {
			a = b.flowAccount(line.Env, g.ID)
		}
		q = &purseQueue{id: id, of: a, gate: g, first: highest}
		b.weigh(q)
		b.money.queues[id] = q
		b.countsBy(a, b.TenantOf(line.Env), line.Class, 1)
		heap.Push(&a.queues, q)
	}
	if q.n += n; first.Less(q.first) {
		q.first = first
		heap.Fix(&q.of.queues, q.index)
	}
	if q.of.fits(q) > 0 {
		b.touchPurse(q.of)
	}
	return true
}

// unparkMoney counts one of those tasks less; false when the gate is another.
func (b *Board) unparkMoney(row *models.Task) bool {
	if !models.IsBudgetGate(row.Gate) {
		return false
	}
	q := b.money.queues[purseID{row.Gate, LineOf(row)}]
	if q == nil {
		return true
	}
	if q.n--; q.n > 0 {
		return true
	}
	a, class := q.of, q.id.line.Class
	heap.Remove(&a.queues, q.index)
	delete(b.money.queues, q.id)
	b.countsBy(a, b.TenantOf(row.Env), class, -1)
	b.forget(a)
	return true
}

// fits is how many tasks of a queue may come back: as many as are covered beside what came back to their line before.
func (a *Account) fits(q *purseQueue) int64 {
	if a.open() {
		return 0
	}
	purse := a.Purse
	if with := a.back[q.id.line]; with != nil {
		purse.Reserved = purse.Reserved.Plus(with.purse.Reserved)
		purse.Unknown = purse.Unknown.Plus(with.purse.Unknown)
	}
	return purse.Fits(q.ask)
}

// mostPurses is how many queues of an account are looked at in one turn: those that ask for the least.
const mostPurses = 1000

// MoneyAsks lists what may come back from behind the gates of accounts that cover it, in order of rank, at most most asks.
func (b *Board) MoneyAsks(most int) (asks []models.LineAsk) {
	for _, id := range slices.SortedFunc(maps.Keys(b.money.touched), models.ID.Compare) {
		if len(asks) >= most {
			return asks
		}
		delete(b.money.touched, id)
		a := b.money.all[id]
		if a == nil {
			continue
		}
		room := a.Purse.Room()
		var looked []*purseQueue
		for len(a.queues) > 0 && a.queues[0].size <= room && len(looked) < mostPurses {
			looked = append(looked, heap.Pop(&a.queues).(*purseQueue))
		}
		more := len(looked) == mostPurses
		slices.SortFunc(looked, (*purseQueue).compare)
		given := map[models.LineID]bool{}
		for _, q := range looked {
			n := min(a.fits(q), q.n, mostBack)
			switch {
			case n == 0 || q.asked:
			case len(asks) >= most || given[q.id.line]:
				more = true // those before it have the room of their line
			default:
				q.asked, given[q.id.line] = true, true
				asks = append(asks, models.LineAsk{Line: q.id.line, Gate: q.id.gate, Limit: int(n)})
			}
		}
		for _, q := range looked {
			heap.Push(&a.queues, q)
		}
		if more {
			b.touchPurse(a)
		}
	}
	return asks
}

// Downgrades says that a tenant has a budget that wants other models for what it does not cover.
func (b *Board) Downgrades(tenant int32) bool {
	return slices.ContainsFunc(b.TenantBudgets(tenant), func(a *Account) bool { return a.Budget.OnExhausted == models.DowngradeTask })
}

// lowers says that the tasks of a queue may get other models.
func (b *Board) lowers(q *purseQueue) bool {
	class := b.Classes[q.id.line.Class]
	return !q.of.Workflow && q.of.Budget.OnExhausted == models.DowngradeTask && class != nil && class.Chosen
}

// LookLower has the first of all tasks looked at that may get other models for a budget which does not cover them.
func (b *Board) LookLower() {
	for id, q := range b.money.queues { // any order: a set
		if b.lowers(q) {
			b.money.lower[id] = true
		}
	}
}

// Lower has those looked at that wait beside a task.
func (b *Board) Lower(row *models.Task) {
	id := purseID{row.Gate, LineOf(row)}
	if q := b.money.queues[id]; q != nil && b.lowers(q) {
		b.money.lower[id] = true
	}
}

// LowerAsks asks for the first of each queue that is to be looked at, at most most rows.
func (b *Board) LowerAsks(most int) (asks []models.LineAsk) {
	if len(b.money.lower) == 0 {
		return nil
	}
	for _, id := range slices.SortedFunc(maps.Keys(b.money.lower), func(x, y purseID) int {
		return cmp.Or(CompareLines(x.line, y.line), cmp.Compare(x.gate, y.gate))
	}) {
		q := b.money.queues[id]
		if q == nil {
			delete(b.money.lower, id)
			continue
		}
		n := int(min(q.n, mostBack, int64(most)))
		if n <= 0 {
			break
		}
		delete(b.money.lower, id)
		asks = append(asks, models.LineAsk{Line: id.line, Gate: id.gate, Limit: n, Lower: true})
		most -= n
	}
	return asks
}

// mostBack is how many tasks of a queue come back in one turn.
const mostBack = 200

func (b *Board) answeredMoney(ask models.LineAsk) bool {
	if !models.IsBudgetGate(ask.Gate) {
		return false
	}
	if q := b.money.queues[purseID{ask.Gate, ask.Line}]; q != nil {
		q.asked = false
		b.touchPurse(q.of)
	}
	return true
}

// MayReturn says whether a task that is parked for an account may stand in its line again as far as that one goes.
func (b *Board) MayReturn(row *models.Task) bool {
	q := b.money.queues[purseID{row.Gate, LineOf(row)}]
	return q != nil && q.of.fits(q) > 0
}

// Return counts a task that has come back, until it starts or leaves its line.
func (b *Board) Return(row *models.Task, account models.ID) {
	a := b.money.all[account]
	if a == nil || a.Purse.LimitMicro == nil && a.Purse.LimitTokens == nil {
		return
	}
	line := LineOf(row)
	entry := back{a, line, b.AskOf(row)}
	b.money.backs[row.ID] = entry
	with := a.back[line]
	if with == nil {
		with = &backing{}
		a.back[line] = with
	}
	with.n++
	with.purse.Reserve(entry.ask, 1)
}

// Unreturn takes that back.
func (b *Board) Unreturn(id models.ID) {
	entry, ok := b.money.backs[id]
	if !ok {
		return
	}
	delete(b.money.backs, id)
	with := entry.of.back[entry.line]
	with.purse.Reserve(entry.ask, -1)
	if with.n--; with.n == 0 {
		delete(entry.of.back, entry.line)
	}
	b.touchPurse(entry.of)
}

// WaitingFor is how many tasks are parked for an account.
func (a *Account) WaitingFor() (n int64) {
	for _, q := range a.queues {
		n += q.n
	}
	return n
}

// restoreBudgets takes in the budgets of a snapshot, before its leases.
func (b *Board) restoreBudgets(s *models.Snapshot) {
	for i := range s.Budgets {
		g := &s.Budgets[i]
		a, _, _ := b.PutBudget(g.Budget, s.Now)
		for _, spent := range g.Spent {
			a.sums[spent.Since] = spent.Amount
		}
		a.Purse.Spent = a.sums[a.Since]
	}
}

// checkMoney compares what accounts hold with what the rows say, and says that nothing is parked behind one that covers it
// and that nobody means to look at.
func (b *Board) checkMoney(fresh *Board) error {
	fresh.Expect(b.money.expect)
	for id := range merged(b.money.all, fresh.money.all) { // any order: the first difference found will do
		got, want := b.money.all[id], fresh.money.all[id]
		if got == nil {
			got = newAccount(id)
		}
		if want == nil {
			want = newAccount(id)
		}
		if got.Since != want.Since {
			continue // a period has begun since the last batch
		}
		if got.live != want.live || got.Purse.Reserved != want.Purse.Reserved || got.Purse.Unknown != want.Purse.Unknown {
			return fmt.Errorf("account %x: %d live with %v reserved and %v unknown on the board, the rows say %d, %v and %v", id, got.live, got.Purse.Reserved, got.Purse.Unknown, want.live, want.Purse.Reserved, want.Purse.Unknown)
		}
		if got.Purse.Spent != want.Purse.Spent && !got.Workflow {
			return fmt.Errorf("budget %x: %v spent on the board, the rows say %v", id, got.Purse.Spent, want.Purse.Spent)
		}
	}
	for id := range merged(b.money.queues, fresh.money.queues) { // any order: the first difference found will do
		got, want := b.money.queues[id], fresh.money.queues[id]
		if got == nil || want == nil || got.n != want.n {
			return fmt.Errorf("gate %v: %+v on the board, %+v by the rows", id, got, want)
		}
		if n := got.of.fits(got); n > 0 && !got.asked && !b.money.touched[got.of.ID] {
			return fmt.Errorf("gate %v: %d tasks are parked behind an open gate: %d are covered", id, got.n, n)
		}
	}
	return nil
}
