package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// limited is a world with two tenants whose limits change while a worker that can do everything waits for work all the time.
type limited struct {
	*world
	rng     *rand.Rand
	envs    []int32
	tenants []int32
	wide    models.Worker
	claims  *engine.Command
	leases  []engine.Lease
	starts  int
	refused int
	brains  byte
}

func newLimited(t *testing.T, seed uint64) *limited {
	cfg := engine.Config{}
	if seed%2 == 0 {
		cfg.Heads, cfg.MostEntries, cfg.Slice = 2, 20, 3
	}
	l := &limited{world: newWorld(t, cfg), rng: rand.New(rand.NewPCG(seed, 11))}
	l.do(&engine.Command{Configure: &engine.Configure{New: true, Action: "tenant.create", Tenant: &models.Tenant{ID: l.id(), Slug: "birch", Name: "Birch", Weight: 3, Timezone: "UTC"}}})
	l.do(&engine.Command{Configure: &engine.Configure{Environment: &models.Environment{ID: l.id(), Tenant: 1, Name: "staging", Kind: "staging"}, New: true, Action: "environment.create"}})
	for env, row := range l.engine.Board().Envs {
		l.envs = append(l.envs, env)
		l.tenants = append(l.tenants, row.Tenant)
	}
	slices.Sort(l.envs)
	l.tenants = slices.Compact(slices.Sorted(slices.Values(l.tenants)))
	l.wide = l.worker("wide", func(w *models.Worker) {
		w.Slots, w.CPUMilli, w.Permissions, w.Models, w.LeaseSeconds = 10_000, 1_000_000, []string{"mail"}, []string{"small"}, 300
		for range 60 {
			w.GPUs = append(w.GPUs, models.GPUCard{VRAMMB: 1 << 20})
		}
	})
	return l
}

func (l *limited) maybe(n int64) *int64 {
	if l.rng.IntN(3) == 0 {
		return nil
	}
	return most(l.rng.Int64N(n))
}

func (l *limited) some() engine.NewTask {
	return l.task(func(t *engine.NewTask) {
		t.Class.Type = []string{"a", "b"}[l.rng.IntN(2)]
		switch l.rng.IntN(6) {
		case 0, 1:
			t.Class.GPU, t.Class.VRAMMB = 1+l.rng.Int32N(3), l.rng.Int64N(3)*1000
		case 2:
			t.Class.Tokens, t.Tokens = true, 1+l.rng.Int64N(500)
		case 3:
			t.Class.Permissions = []string{"mail"}
		case 4:
			t.DelaySeconds = 1 + l.rng.Int32N(5)
		}
	})
}

// act does one thing and answers the tenant whose submit was taken, 0 where there was none.
func (l *limited) act() int32 {
	env, tenant := l.envs[l.rng.IntN(len(l.envs))], l.tenants[l.rng.IntN(len(l.tenants))]
	switch n := l.rng.IntN(20); {
	case n < 6:
		s := &engine.Submit{Env: env, InBatch: true}
		for range 1 + l.rng.IntN(4) {
			s.Tasks = append(s.Tasks, l.some())
		}
		_, err := l.try(&engine.Command{Submit: s})
		if err != nil {
			l.refused++
		}
		if err == nil {
			return l.engine.Board().TenantOf(env)
		}
	case n < 14 && len(l.leases) > 0:
		i := l.rng.IntN(len(l.leases))
		r := ok(l.leases[i])
		switch l.rng.IntN(4) {
		case 0:
			r = failed(l.leases[i], "timeout")
		case 1:
			r.Usage = json.RawMessage(`{"tokens_in": 50}`)
		}
		l.leases = slices.Delete(l.leases, i, i+1)
		l.settle(l.wide, r)
	case n < 15:
		l.do(&engine.Command{Configure: &engine.Configure{Version: -1, Action: "quotas.edit", Quotas: &engine.SetQuotas{Quotas: models.Quotas{
			Tenant: tenant, MaxConcurrent: l.maybe(8), MaxQueued: l.maybe(30), MaxGPUs: l.maybe(6), MaxVRAMMB: l.maybe(6000), TokensPerMinute: most(1 + l.rng.Int64N(2000)),
		}}}})
	case n < 16:
		l.do(&engine.Command{Configure: &engine.Configure{Version: -1, Action: "task_type.edit", TaskType: &models.TaskType{
			Env: env, Type: []string{"a", "b"}[l.rng.IntN(2)], MaxConcurrent: l.maybe(5), Paused: l.rng.IntN(4) == 0,
		}}})
	case n < 17:
		l.do(&engine.Command{Configure: &engine.Configure{Version: -1, Action: "permissions.edit", Grants: &models.Grants{Env: env, Granted: [][]string{nil, {"mail"}}[l.rng.IntN(2)]}}})
	case n < 18:
		l.rebuild()
		l.claims = nil
	case n < 19:
		l.brains++
		l.engine = engine.New(engine.Config{Seed: [32]byte{l.brains}})
		l.rebuild()
		l.claims = nil
	default:
		l.advance(time.Duration(1+l.rng.IntN(3)) * time.Second)
	}
	return 0
}

// held is what the rows say that each tenant holds.
type held struct{ live, cards, vramMB, queued int64 }

func (l *limited) held() map[int32]held {
	out := map[int32]held{}
	b := l.engine.Board()
	for _, row := range l.store.Tasks() {
		h := out[b.TenantOf(row.Env)]
		switch {
		case row.State.Live():
			class := b.Classes[row.Class]
			h.live++
			h.cards += int64(class.GPU)
			h.vramMB += int64(class.GPU) * class.VRAMMB
		case row.State.Waiting():
			h.queued++
		}
		out[b.TenantOf(row.Env)] = h
	}
	return out
}

func over(n int64, limit *int64) bool { return limit != nil && n > *limit }

// check holds what the turn did against the limits: whatever started must have fitted, and what fits must have started.
func (l *limited) check(before map[models.ID]bool, took int32) {
	l.t.Helper()
	b := l.engine.Board()
	rows := l.held()
	for _, tenant := range l.tenants {
		use, h := b.UseOf(tenant), rows[tenant]
		if use == nil {
			continue
		}
		if use.Live != h.live || use.Cards != h.cards || use.VRAMMB != h.vramMB || use.Queued != h.queued {
			l.t.Fatalf("tenant %d holds %+v on the board, by its rows %+v", tenant, use, h)
		}
		if took == tenant && over(h.queued, use.Quotas.MaxQueued) && !l.grew(before, tenant, false) {
			l.t.Fatalf("tenant %d took a submit and has %d queued of %d", tenant, h.queued, *use.Quotas.MaxQueued)
		}
		if l.grew(before, tenant, false) && over(h.live, use.Quotas.MaxConcurrent) {
			l.t.Fatalf("tenant %d started something and runs %d of %d", tenant, h.live, *use.Quotas.MaxConcurrent)
		}
		if l.grew(before, tenant, true) && (over(h.cards, use.Quotas.MaxGPUs) || over(h.vramMB, use.Quotas.MaxVRAMMB)) {
			l.t.Fatalf("tenant %d started something and holds %d cards, %d MB: %+v", tenant, h.cards, h.vramMB, use.Quotas)
		}
	}
	var looks []*engine.Command
	for _, row := range l.store.Tasks() {
		if row.State == models.Ready {
			looks = append(looks, &engine.Command{Look: &engine.Look{Explain: &models.TaskRef{Env: row.Env, ID: row.ID}}})
		}
	}
	for _, r := range l.once(looks) {
		l.must(r.Err)
		if why := r.Answer.Looked.Explain.BlockedBy; len(why) == 0 || why[0].Reason == "workers_busy" {
			l.t.Fatalf("a task waits beside a worker that has room: %v", why)
		}
	}
}

// grew says whether a lease of the tenant is new; with cards, one that holds any.
func (l *limited) grew(before map[models.ID]bool, tenant int32, cards bool) bool {
	b := l.engine.Board()
	for token, lease := range b.Leases {
		if !before[token] && b.TenantOf(lease.Row().Env) == tenant && (!cards || b.Classes[lease.Row().Class].GPU > 0) {
			return true
		}
	}
	return false
}

// waits parks a claim of the wide worker, taking what it gets until it gets nothing.
func (l *limited) waits() {
	l.t.Helper()
	for range 10_000 {
		if l.claims != nil {
			r, answered := l.late[l.claims]
			if !answered {
				return
			}
			l.must(r.Err)
			l.leases = append(l.leases, r.Answer.Claimed.Leases...)
			l.starts += len(r.Answer.Claimed.Leases)
		}
		l.claims = &engine.Command{Claim: &engine.Claim{Worker: l.wide.ID, Session: l.wide.Session, Most: 3, WaitMS: 1_000_000}}
		l.turn(l.claims)
	}
	l.t.Fatal("the worker never has to wait")
}

// TestQuotasHoldWhateverHappens changes limits while work comes, runs, fails and is read anew. After each step what started
// fitted its tenant's quotas, what fits has started, and the counters are what the rows say.
func TestQuotasHoldWhateverHappens(t *testing.T) {
	starts, refused := 0, 0
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			l := newLimited(t, seed)
			for range 60 {
				before := map[models.ID]bool{}
				for token := range l.engine.Board().Leases {
					before[token] = true
				}
				took := l.act()
				l.waits()
				l.check(before, took)
				beats := &engine.Heartbeat{Worker: l.wide.ID, Session: l.wide.Session, Leases: l.beats()}
				l.do(&engine.Command{Heartbeat: beats})
			}
			starts, refused = starts+l.starts, refused+l.refused
		})
	}
	if starts < 100 || refused < 10 {
		t.Errorf("only %d starts and %d refusals: it shows little", starts, refused)
	}
	t.Logf("%d starts, %d refusals", starts, refused)
}
