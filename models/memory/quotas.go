package memory

import (
	"cmp"
	"slices"

	"nightshift/models"
)

// quotaRows are limits, and what stands behind them.
type quotaRows struct {
	quotas map[int32]models.Quotas
	grants map[int32]models.Grants
	types  map[models.IdemRef]models.TaskType // by environment and name
	levels map[int32]models.TokenLevel
	later  map[int32]int64 // queued tasks of an environment that are not ready
}

func newQuotaRows() quotaRows {
	return quotaRows{
		quotas: map[int32]models.Quotas{}, grants: map[int32]models.Grants{}, types: map[models.IdemRef]models.TaskType{},
		levels: map[int32]models.TokenLevel{}, later: map[int32]int64{},
	}
}

// limit writes what a plan changes of limits.
func (s *Store) limit(p *models.QuotaPlan) {
	for _, q := range p.Quotas {
		s.quotas[q.Tenant] = q
	}
	for _, g := range p.Grants {
		g.Granted = slices.Clone(g.Granted)
		s.grants[g.Env] = g
	}
	for _, t := range p.Types {
		s.types[models.IdemRef{Env: t.Env, Key: t.Type}] = t
	}
	for _, l := range p.Levels {
		s.levels[l.Tenant] = l
	}
}

func (s *Store) quotaSnapshot() models.QuotaSnapshot {
	out := models.QuotaSnapshot{
		Quotas: sorted(s.quotas, cmp.Compare[int32]), Grants: sorted(s.grants, cmp.Compare[int32]), Types: sorted(s.types, compareIdem),
		Levels: sorted(s.levels, cmp.Compare[int32]),
	}
	for i := range out.Types {
		out.Types[i].InputSchema = nil
	}
	counts := map[int32]int64{}
	for env, n := range s.later { // any order: a sum
		counts[env] += n
	}
	for id, g := range s.stagings { // any order: a sum
		if g.Flipped {
			counts[g.Env] += int64(s.staged.of[id].size())
		}
	}
	for env, n := range counts { // any order: sorted below
		if n != 0 {
			out.Queued = append(out.Queued, models.QueuedCount{Env: env, Count: n})
		}
	}
	slices.SortFunc(out.Queued, func(a, b models.QueuedCount) int { return cmp.Compare(a.Env, b.Env) })
	return out
}

func compareIdem(a, b models.IdemRef) int {
	return cmp.Or(cmp.Compare(a.Env, b.Env), cmp.Compare(a.Key, b.Key))
}

// blockers are the dependencies that a task still waits for, dead ones first, at most as many as are named to somebody.
func (s *Store) blockers(ref models.TaskRef) (out []models.Blocker) {
	seen := map[models.ID]bool{}
	for _, from := range s.waitsFor[ref] {
		source := models.TaskRef{Env: ref.Env, ID: from}
		row, there := s.tasks[source]
		for _, e := range s.edges[source] {
			if there && !seen[from] && e.To == ref.ID && e.State == models.EdgeOpen && e.On != models.OnChild {
				seen[from] = true
				out = append(out, models.Blocker{Task: from, Key: row.Key, State: row.State})
			}
		}
	}
	slices.SortFunc(out, func(a, b models.Blocker) int {
		return cmp.Or(-cmp.Compare(dead(a), dead(b)), a.Task.Compare(b.Task))
	})
	return out[:min(len(out), models.MostBlockers)]
}

func dead(b models.Blocker) int {
	if b.State == models.DeadLetter {
		return 1
	}
	return 0
}
