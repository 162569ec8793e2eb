package engine_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/board"
	"nightshift/scheduler/engine"
)

// because is how a task comes to wait for a reason, and what the sentence must name. Where nothing in the engine can make a
// task wait for it yet, later says what is missing.
type because struct {
	waits func(w *world) models.ID
	names []string
	later string
}

func (w *world) configure(c *engine.Configure) *engine.Answer {
	w.t.Helper()
	c.Version = -1
	return w.do(&engine.Command{Configure: c})
}

func (w *world) lane(change func(*models.Lane)) {
	w.t.Helper()
	row := w.engine.Board().LaneNamed(w.env, "batch").Lane
	change(&row)
	w.configure(&engine.Configure{Lane: &row, Action: "lane.edit"})
}

// two submits one that is claimed and one that waits.
func (w *world) two(change ...func(*engine.NewTask)) models.ID {
	w.t.Helper()
	worker := w.worker("one")
	ids := w.submit(w.task(change...), w.task(change...))
	w.claim(worker, 1)
	return ids[1]
}

// reasons has a row for each word of the contract.
var reasons = map[string]because{
	"dependencies": {waits: func(w *world) models.ID {
		_, ids := w.flow(nil, nil, "first", "second:first")
		return ids["second"]
	}, names: []string{"1 of the tasks", "first (task_", "is ready"}},
	"dependency_dead": {waits: func(w *world) models.ID {
		worker := w.worker("one")
		_, ids := w.flow(nil, nil, "first", "second:first")
		w.settle(worker, failed(w.claim(worker, 1)[0], "invalid_input"))
		return ids["second"]
	}, names: []string{"first (task_", "dead letter"}},
	"run_at": {waits: func(w *world) models.ID {
		return w.submit(w.task(func(t *engine.NewTask) { t.RunAt = w.now.Add(time.Hour) }))[0]
	}, names: []string{"no earlier than 2027-"}},
	"approval": {waits: func(w *world) models.ID {
		return w.submit(w.task(func(t *engine.NewTask) { t.NeedsApproval = true }))[0]
	}, names: []string{"approve"}},
	"lane_paused": {waits: func(w *world) models.ID {
		w.lane(func(l *models.Lane) { l.Paused, l.Reason = true, "repairs" })
		return w.submit(w.task())[0]
	}, names: []string{"batch", "repairs"}},
	"lane_held": {waits: func(w *world) models.ID {
		worker := w.worker("one")
		w.submit(w.realtime(), w.realtime(), w.realtime())
		w.claim(worker, 3)
		w.submit(w.long())
		w.claim(worker, 1)
		w.advance(time.Second)
		return w.submit(w.long())[0]
	}, names: []string{"pool cpu", "compute and batch yield to realtime and io", "1 run", "of 4 slots", "room for 1", "3.0 are needed", "as soon as there is room"}},
	"lane_limit": {waits: func(w *world) models.ID {
		w.lane(func(l *models.Lane) { l.MaxConcurrent = 1 })
		return w.two()
	}, names: []string{"batch", "1 of at most 1"}},
	"lane_closed": {waits: func(w *world) models.ID {
		w.lane(func(l *models.Lane) { l.OpenWindows = []models.Window{{Cron: "0 0 1 1 *", DurationSeconds: 60}} })
		return w.submit(w.task())[0]
	}, names: []string{"batch", "2028-01-01T00:00:00Z"}},
	"environment_paused": {waits: func(w *world) models.ID {
		row := *w.engine.Board().Envs[w.env]
		row.Paused, row.Reason = true, "quiet hours"
		w.configure(&engine.Configure{Environment: &row, Action: "environment.pause"})
		return w.submit(w.task())[0]
	}, names: []string{"production", "quiet hours"}},
	"tenant_suspended": {waits: func(w *world) models.ID {
		id := w.submit(w.task())[0]
		row := *w.engine.Board().Tenants[w.tenant()]
		row.Suspended = true
		w.configure(&engine.Configure{Tenant: &row, Action: "tenant.suspend"})
		return id
	}, names: []string{"acorn"}},
	"tenant_concurrency": {waits: func(w *world) models.ID {
		w.quotas(func(q *models.Quotas) { q.MaxConcurrent = most(1) })
		return w.two()
	}, names: []string{"acorn", "runs 1 tasks, of at most 1"}},
	"workflow_budget": {waits: func(w *world) models.ID {
		worker := w.worker("one")
		_, ids := w.flow(func(f *engine.NewWorkflow) { f.Budget.Tokens = 10 }, nil, "a", "b")
		spent := ok(w.claim(worker, 1)[0])
		spent.Usage = json.RawMessage(`{"tokens_in": 20}`)
		w.settle(worker, spent)
		return ids["b"]
	}, names: []string{"budget"}},
	"tenant_budget": {waits: func(w *world) models.ID {
		w.budget(func(b *models.Budget) { b.LimitMicro, b.Period = most(100_000), models.ByMonth })
		return w.two(cents(8))
	}, names: []string{"of the tenant a month (bud_", "$0.02 of $0.10 left", "$0.08 reserved", "expected to cost $0.08", "begins anew at 2027-02-01T00:00:00Z"}},
	"workflow_stopped": {waits: func(w *world) models.ID {
		flow, ids := w.flow(nil, nil, "a")
		w.must(w.steer(func(s *engine.Steer) { s.Pause = true }, flow))
		return ids["a"]
	}, names: []string{"paused"}},
	"rate_limit": {waits: func(w *world) models.ID {
		w.quotas(func(q *models.Quotas) { q.TokensPerMinute = most(60) })
		return w.two(func(t *engine.NewTask) { t.Class.Tokens, t.Tokens = true, 90 })
	}, names: []string{"acorn", "60 tokens a minute", "30 are owed"}},
	"concurrency_key": {waits: func(w *world) models.ID {
		return w.two(func(t *engine.NewTask) { t.LimitKey, t.KeyLimit = "account:42", 1 })
	}, names: []string{"account:42", "held by task_"}},
	"no_capable_worker": {waits: func(w *world) models.ID {
		w.worker("small")
		return w.submit(w.task(func(t *engine.NewTask) { t.Class.CPUMilli = 64_000 }))[0]
	}, names: []string{"small", "8 cpu of 64"}},
	"workers_busy": {waits: func(w *world) models.ID {
		w.worker("one", func(m *models.Worker) { m.Slots = 1 })
		ids := w.submit(w.task(), w.task())
		w.claim(models.Worker{ID: w.workers()[0].ID, Session: w.workers()[0].Session}, 1)
		return ids[1]
	}, names: []string{"number 1 of its line"}},
	"reserved_for": {waits: func(w *world) models.ID {
		worker := w.worker("one", func(m *models.Worker) { m.LeaseSeconds = 300 })
		small := func(t *engine.NewTask) {
			t.Class.CPUMilli, t.EstimateMS, t.HardSeconds = 4000, 7_200_000, 100_000
		}
		w.submit(w.task(small))
		w.claim(worker, 1)
		w.submit(w.task(func(t *engine.NewTask) { t.Class.CPUMilli, t.EstimateMS = 8000, 60_000 }))
		w.now = w.now.Add(time.Second)
		w.submit(w.task())
		w.claim(worker, 1) // it fills the gap that the whole one does not fit
		w.now = w.now.Add(35 * time.Minute)
		w.do(&engine.Command{Heartbeat: &engine.Heartbeat{Worker: worker.ID, Session: worker.Session, Leases: w.beats()}})
		w.advance(2 * time.Second)
		return w.submit(w.task(small))[0]
	}, names: []string{"one", "kept for task_"}},
	"permission": {waits: func(w *world) models.ID {
		w.worker("one", func(m *models.Worker) { m.Permissions = []string{"mail"} })
		w.grant("mail")
		id := w.submit(w.task(func(t *engine.NewTask) { t.Class.Permissions = []string{"mail"} }))[0]
		w.grant()
		return id
	}, names: []string{"mail", "production"}},
	"type_paused": {waits: func(w *world) models.ID {
		w.taskType(models.TaskType{Type: "work", Paused: true, Reason: "the relay is down"})
		return w.submit(w.task())[0]
	}, names: []string{"work", "the relay is down"}},
	"type_limit": {waits: func(w *world) models.ID {
		w.taskType(models.TaskType{Type: "work", MaxConcurrent: most(1)})
		return w.two()
	}, names: []string{"work", "1 tasks", "at most 1"}},

	"model_unavailable": {waits: func(w *world) models.ID {
		w.model("small", 1, 0.7)
		return w.submit(w.task(auto(0.99, "small")))[0]
	}, names: []string{"small", "0.99 is wanted"}},
}

func (w *world) workers() (out []*board.Worker) {
	for _, m := range w.engine.Board().Workers {
		out = append(out, m)
	}
	return out
}

// beats are those of all that runs.
func (w *world) beats() (out []engine.Beat) {
	for token, l := range w.engine.Board().Leases {
		out = append(out, engine.Beat{Token: token, Task: models.TaskRef{Env: l.Row().Env, ID: l.Row().ID}})
	}
	return out
}

// TestEveryReasonIsExplained makes a task wait for each reason of the contract that the engine can give: the sentence
// names who holds it or what the limit is, before and after a rebuild. What can't be reached yet must not be a gate.
func TestEveryReasonIsExplained(t *testing.T) {
	for name, r := range reasons {
		if r.later != "" {
			if slices.Contains(board.Reasons(), name) {
				t.Errorf("%s is a gate now: make a task wait for it here (%s)", name, r.later)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := worldOn(t, engine.Config{}, storetest.Lone)
			id := r.waits(w)
			for _, when := range []string{"at first", "after a rebuild"} {
				got := w.detail(id, name)
				for _, word := range r.names {
					if !strings.Contains(got, word) {
						t.Errorf("%s it says %q, without %q", when, got, word)
					}
				}
				if name == "reserved_for" {
					break // who is kept for whom is decided anew by each brain
				}
				w.rebuild()
			}
		})
	}
	for _, name := range board.Reasons() {
		if _, known := reasons[name]; !known && name != "quarantine" {
			t.Errorf("the gate %s has no row here, nor a word of the contract", name)
		}
	}
}

// All gates that are shut are told at once, the widest first.
func TestSeveralReasonsAreToldTogether(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.taskType(models.TaskType{Type: "work", Paused: true})
	w.lane(func(l *models.Lane) { l.Paused = true })
	w.quotas(func(q *models.Quotas) { q.MaxConcurrent = most(0) })
	id := w.submit(w.task())[0]
	if got := w.why(id); !slices.Equal(got, []string{"lane_paused", "type_paused", "tenant_concurrency", "no_capable_worker"}) {
		t.Errorf("explained by %v", got)
	}
}
