package engine

import (
	"cmp"
	"slices"

	"nightshift/models"
)

// look answers from the board; nothing is committed.
func (e *Engine) look(l *Look) (*Answer, error) {
	out := &Looked{Now: e.now}
	var err error
	switch {
	case l.Explain != nil:
		out.Explain, err = e.explain(*l.Explain)
	case l.Live != nil:
		out.Live = e.live(l.Live)
	case l.Lanes != 0:
		out.Lanes = e.laneStats(l.Lanes)
	case l.Heads != 0:
		out.Heads, err = e.heads(l.Heads)
	case l.Workers:
		out.Workers = e.workerStats()
	case l.Stats:
		out.Stats = e.stats()
	case l.Shares:
		out.Shares = e.shares()
	case l.Locks != 0:
		out.Locks = e.locks(l.Locks)
	case l.Queues != 0:
		out.Queues = e.queueStats(l.Queues)
	case l.Budgets != nil:
		out.Budgets, err = e.budgetFigures(l.Budgets)
	case l.Ahead != nil:
		out.Ahead, err = e.lookAhead(l.Ahead)
	case l.Models != nil:
		out.Models = e.lookModels(*l.Models)
	case l.Route != nil:
		out.Routed, err = e.routed(l.Route)
	default:
		err = models.Errorf(models.InvalidRequest, "the command looks at nothing")
	}
	if err != nil {
		return nil, err
	}
	return &Answer{Looked: out}, nil
}

func (e *Engine) live(refs []models.TaskRef) []LiveTask {
	out := []LiveTask{}
	for _, ref := range refs {
		if held := e.board.Held(ref.ID); held != nil && held.Row.Env == ref.Env && held.Lease != nil {
			out = append(out, LiveTask{Ref: ref, LeaseUntil: held.Lease.Until, Progress: held.Lease.Progress})
			continue
		}
		if row := e.peek(ref); row != nil && row.State == models.Ready && row.Gate == "" {
			if until := e.leavesAt(row); until > 0 {
				out = append(out, LiveTask{Ref: ref, HeldUntil: until})
			}
		}
	}
	return out
}

func (e *Engine) laneStats(env int32) []LaneStats {
	oldest := map[int32]models.Instant{}
	for _, kind := range models.Kinds() {
		for _, q := range e.board.Queues(kind) {
			for _, line := range q.Lines {
				head := line.Head()
				if line.ID.Env != env || head == nil {
					continue
				}
				if at := oldest[line.ID.Lane]; at == 0 || head.Row.ReadyAt < at {
					oldest[line.ID.Lane] = head.Row.ReadyAt
				}
			}
		}
	}
	out := []LaneStats{}
	for _, lane := range e.board.LanesOf(env) {
		out = append(out, LaneStats{
			Lane: lane.Number, Env: env, Depth: lane.Depth + lane.Parked, Parked: lane.Parked, Running: int64(lane.Running),
			OldestReady: int64(oldest[lane.Number]), InPerSecond: lane.In.PerSecond(e.now), OutPerSecond: lane.Out.PerSecond(e.now), Held: e.laneHolds(lane),
		})
	}
	return out
}

func (e *Engine) workerStats() []WorkerStats {
	parked := map[models.ID]bool{}
	for _, p := range e.claims {
		parked[p.worker] = true
	}
	out := []WorkerStats{}
	for _, w := range e.workers() {
		slots := w.Slots
		for _, n := range w.KindSlots { // any order: a sum
			slots += n
		}
		out = append(out, WorkerStats{
			Worker: w.ID, LastSeen: w.LastSeen, Leases: int32(len(w.Leases)), Slots: slots, CPUMilli: w.Use.CPUMilli, MemoryMB: w.Use.MemoryMB,
			VRAMMB: slices.Clone(w.Use.VRAMMB), Parked: parked[w.ID],
		})
	}
	return out
}

func (e *Engine) stats() *Stats {
	s := &Stats{
		Entries: int64(e.board.Entries()), Lines: int64(e.board.Lines()), Running: int64(len(e.board.Leases)), Parked: e.board.ParkedTasks(),
		Claims: int64(len(e.claims)), Ready: map[string]int64{}, Counters: map[string]int64{},
	}
	for _, k := range models.Kinds() {
		s.Ready[k.String()] = e.board.ReadyOf(k)
	}
	e.figures(s)
	e.counters.show(s, e.now)
	c := e.board.Counted
	for name, n := range map[string]int64{"refills": c.Refills, "shrinks": c.Shrinks, "parkings": c.Parkings, "unparkings": c.Unparkings, "rebuilds": c.Rebuilds} { // any order: a copy
		s.Counters[name] = n
	}
	return s
}

// shares says what each tenant was charged of each pool and kind, and what its weight deserves among those charged.
func (e *Engine) shares() []TenantShare {
	out := []TenantShare{}
	for _, v := range e.board.Virtuals() {
		if v.Tenant == 0 {
			continue
		}
		out = append(out, TenantShare{
			Tenant: v.Tenant, Pool: v.Pool, Kind: v.Kind.String(), Weight: e.board.Weight(v.Tenant), Virtual: v.Time,
			Charged: e.board.Clock(v.Pool, v.Kind).Charged(v.Tenant),
		})
	}
	for i := range out {
		weights := 0.0
		for j := range out {
			if out[j].Pool == out[i].Pool && out[j].Kind == out[i].Kind {
				weights += out[j].Weight
			}
		}
		out[i].Deserved = out[i].Weight / weights
	}
	slices.SortFunc(out, func(a, b TenantShare) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Tenant, b.Tenant))
	})
	return out
}
