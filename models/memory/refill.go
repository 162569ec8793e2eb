package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"nightshift/models"
)

// Refill reads rows for the board between two batches.
func (s *Store) Refill(_ context.Context, ask *models.RefillAsk) (*models.Refill, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &models.Refill{Lines: make([][]models.Task, len(ask.Lines))}
	for i, line := range ask.Lines {
		marks := s.lines.of[line.Line]
		if line.ByStart {
			marks = s.starts.of[line.Line]
		}
		if line.Gate != "" {
			marks = s.parked.of[parkedKey{line.Line, line.Gate}]
		}
		if line.ByOrder {
			marks = s.ordered.of[orderedKey{line.Line.Env, line.Gate}]
		}
		from := marks.all()
		if line.After != (models.Mark{}) {
			from = marks.above(line.After)
		}
		out.Lines[i] = s.heads(line.Line.Env, from, line.Limit)
	}
	if t := ask.Timers; t != nil {
		for next := range s.timers.above(timer{t.After, lastRef}) {
			if next.at > t.Until || len(out.Timers) >= t.Limit {
				break
			}
			out.Timers = append(out.Timers, s.tasks[next.ref])
		}
	}
	return out, nil
}

// lastRef follows every row of one moment.
var lastRef = models.TaskRef{Env: 1<<31 - 1, ID: models.ID{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}}

// heads are the rows of the first marks.
func (s *Store) heads(env int32, marks func(func(models.Mark) bool), limit int) []models.Task {
	var rows []models.Task
	marks(func(m models.Mark) bool {
		if len(rows) < limit {
			rows = append(rows, s.tasks[models.TaskRef{Env: env, ID: m.ID}])
		}
		return len(rows) < limit
	})
	return rows
}

// Load reads what a board is rebuilt from: heads rows a line, fewer when they would pass most rows in all.
func (s *Store) Load(_ context.Context, heads, most int) (*models.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &models.Snapshot{
		Now: s.now(), Batch: s.brain.Batch, DecidedAt: s.decidedAt,
		Tenants: sorted(s.tenants, cmp.Compare[int32]), Environments: sorted(s.environments, cmp.Compare[int32]),
		Kinds: sorted(s.kinds, cmp.Compare[models.KindName]), Lanes: sorted(s.lanes, cmp.Compare[int32]), MostLane: s.mostLane,
		Classes: sorted(s.classes, cmp.Compare[int32]), Virtual: sorted(s.virtual, compareVirtual), Estimates: sorted(s.estimates, compareEstimates), Corrections: sorted(s.corrections, compareCorrections),
		Unfired: sorted(s.unfired, compareRefs), Running: s.all(s.running), Freed: s.all(s.freed),
	}
	for _, w := range sorted(s.workers, models.ID.Compare) {
		if w.State != models.WorkerGone {
			out.Workers = append(out.Workers, cloneWorker(w))
		}
	}
	for _, c := range sorted(s.cursors, models.ID.Compare) {
		if !c.Finished {
			out.Cursors = append(out.Cursors, c)
		}
	}
	for _, g := range sorted(s.stagings, models.ID.Compare) {
		if g.Flipped && s.staged.of[g.ID].size() > 0 {
			out.Flipped = append(out.Flipped, g)
		}
	}
	if n := len(s.lines.of); n > 0 {
		heads = min(heads, max(1, most/n))
	}
	out.HeldFlows = s.heldFlows()
	out.Schedules = s.scheduleSnapshot()
	out.Quota = s.quotaSnapshot()
	out.Waiting = s.waiting()
	out.Models = s.modelSnapshot()
	out.Budgets = s.budgetStates()
	out.Held = sorted(s.held, compareHeld)
	out.Signals = sorted(s.signals, models.ID.Compare)
	for _, line := range slices.SortedFunc(maps.Keys(s.lines.of), compareLines) {
		marks := s.lines.of[line]
		starts := s.starts.of[line]
		out.Lines = append(out.Lines, models.LineCount{
			Line: line, Ready: int64(marks.size()), Heads: s.heads(line.Env, marks.all(), heads),
			Timed: int64(starts.size()), Starts: s.heads(line.Env, starts.all(), heads),
		})
	}
	for _, k := range slices.SortedFunc(maps.Keys(s.parked.of), compareParked) {
		c := models.ParkedCount{Line: k.line, Gate: k.gate, Count: int64(s.parked.of[k].size())}
		for _, first := range s.heads(k.line.Env, s.parked.of[k].all(), 1) {
			c.First, c.Keys = first.AgeKey, keysOf(&first)
		}
		for m := range s.ordered.of[orderedKey{k.line.Env, k.gate}].all() {
			c.Order = m.AgeKey
			break
		}
		out.Parked = append(out.Parked, c)
	}
	out.Keys = s.wanted()
	s.loadKeys(out)
	return out, nil
}

// wanted counts the ready, ungated tasks that want a concurrency key.
func (s *Store) wanted() (out []models.KeyCount) {
	counts := map[wantedKey]models.KeyCount{}
	for line, marks := range s.lines.of { // any order: each line counts for itself
		for m := range marks.all() {
			t := s.tasks[models.TaskRef{Env: line.Env, ID: m.ID}]
			if t.LimitKey == "" {
				continue
			}
			c := counts[wantedKey{line, t.LimitKey}]
			c.Line, c.Key, c.Admitted, c.Limit = line, t.LimitKey, c.Admitted+1, max(c.Limit, t.KeyLimit)
			counts[wantedKey{line, t.LimitKey}] = c
		}
	}
	return sorted(counts, compareWanted)
}

// all are the rows of an order.
func (s *Store) all(refs *order[models.TaskRef]) []models.Task {
	rows := make([]models.Task, 0, refs.size())
	for ref := range refs.all() {
		rows = append(rows, s.tasks[ref])
	}
	return rows
}

// sorted are the values of a table in order of their keys.
func sorted[K comparable, V any](of map[K]V, compare func(a, b K) int) []V {
	out := make([]V, 0, len(of))
	for _, k := range slices.SortedFunc(maps.Keys(of), compare) {
		out = append(out, of[k])
	}
	return out
}

func compareHeld(a, b models.HeldRef) int {
	return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Pool, b.Pool))
}

func compareVirtual(a, b virtualKey) int {
	return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.kind, b.kind), cmp.Compare(a.tenant, b.tenant))
}

func compareCorrections(a, b correctionKey) int {
	return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.kind, b.kind))
}

func compareEstimates(a, b estimateKey) int {
	return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.class, b.class))
}

func compareParked(a, b parkedKey) int {
	return cmp.Or(compareLines(a.line, b.line), cmp.Compare(a.gate, b.gate))
}

func compareWanted(a, b wantedKey) int {
	return cmp.Or(compareLines(a.line, b.line), cmp.Compare(a.key, b.key))
}
