package engine_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

func (w *world) refuses(code models.Code, cmd *engine.Command) {
	w.t.Helper()
	if _, err := w.try(cmd); models.CodeOf(err) != code {
		w.t.Fatalf("answered %v, want %s", err, code)
	}
}

func (w *world) why(id models.ID) []string {
	w.t.Helper()
	var out []string
	for _, b := range w.do(&engine.Command{Look: &engine.Look{Explain: &models.TaskRef{Env: w.env, ID: id}}}).Looked.Explain.BlockedBy {
		out = append(out, b.Reason)
	}
	return out
}

func TestATaskWaitsForApproval(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	needs := func(n *engine.NewTask) { n.NeedsApproval = true }
	ids := w.submit(w.task(needs), w.task(needs), w.task())
	if leases := w.claim(worker, 5); len(leases) != 1 || leases[0].Row.ID != ids[2] {
		t.Fatalf("claimed %d", len(leases))
	}
	if why := w.why(ids[0]); !slices.Contains(why, "approval") {
		t.Errorf("explained by %v", why)
	}
	word := func(id models.ID, no bool) *engine.Command {
		return &engine.Command{Approve: &engine.Approve{Env: w.env, Task: id, Reject: no, Reason: "because"}}
	}
	w.rebuild()
	w.do(word(ids[0], false))
	w.do(word(ids[0], false)) // twice is once
	w.do(word(ids[1], true))
	w.do(word(ids[1], true))
	w.want(ids[1], models.Cancelled)
	w.refuses(models.StateConflict, word(ids[1], false))
	w.refuses(models.StateConflict, word(ids[0], true))
	w.refuses(models.StateConflict, word(ids[2], false))
	w.refuses(models.NotFound, word(w.id(), false))
	if leases := w.claim(worker, 5); len(leases) != 1 || leases[0].Row.ID != ids[0] {
		t.Fatalf("after the yes claimed %d", len(leases))
	}
}

func TestApprovalComesBeforeItsMomentAndBeforeItsKey(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	holder := w.submit(w.task(func(n *engine.NewTask) { n.LimitKey, n.KeyLimit = "k", 1 }))[0]
	w.claim(worker, 1)
	ids := w.submit(
		w.task(func(n *engine.NewTask) { n.NeedsApproval, n.LimitKey, n.KeyLimit = true, "k", 1 }),
		w.task(func(n *engine.NewTask) { n.NeedsApproval, n.RunAt = true, w.now.Add(time.Minute) }),
		w.task(func(n *engine.NewTask) { n.NeedsApproval, n.ExpiresInSeconds = true, 5 }))
	for _, id := range ids[:2] {
		w.do(&engine.Command{Approve: &engine.Approve{Env: w.env, Task: id}})
	}
	if row := w.row(ids[0]); row.Gate != "key:k" {
		t.Errorf("its gate is %q", row.Gate)
	}
	w.advance(10 * time.Second)
	w.want(ids[2], models.Expired)
	w.want(holder, models.Running)
	w.advance(time.Minute)
	w.want(ids[1], models.Ready)
	if w.row(ids[1]).Gate != "" {
		t.Errorf("it was approved, but stands behind %q", w.row(ids[1]).Gate)
	}
}

func TestASignalIsToldOnce(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	ids := w.submit(w.task(), w.task())
	lease := w.claim(worker, 1)[0]
	signal := func(id models.ID, name string) *engine.Command {
		return &engine.Command{ID: w.id(), Signal: &engine.Signal{Env: w.env, Task: id, Name: name, Data: json.RawMessage(`{"n":1}`)}}
	}
	w.refuses(models.StateConflict, signal(ids[1], "early"))
	w.do(signal(ids[0], "one"))
	w.rebuild() // a brain that comes anew still knows it
	beat := func() []engine.ToldSignal {
		return w.do(&engine.Command{Heartbeat: &engine.Heartbeat{
			Worker: worker.ID, Session: worker.Session, All: true,
			Leases: []engine.Beat{{Token: lease.Row.Token}},
		}}).Beaten.Leases[0].Sent
	}
	if sent := beat(); len(sent) != 1 || sent[0].Name != "one" || string(sent[0].Data) != `{"n":1}` {
		t.Errorf("the beat told %+v", sent)
	}
	if sent := beat(); len(sent) != 0 {
		t.Errorf("and again %+v", sent)
	}
	w.do(signal(ids[0], "two"))
	claimed := w.do(&engine.Command{Claim: &engine.Claim{Worker: worker.ID, Session: worker.Session, Most: 1}}).Claimed
	if len(claimed.Signals) != 1 || claimed.Signals[0].Name != "two" || claimed.Signals[0].Token != lease.Row.Token {
		t.Errorf("the claim told %+v", claimed.Signals)
	}
	w.do(signal(ids[0], "three"))
	w.settle(worker, ok(lease))
	if _, _, left := w.left(); left != 0 {
		t.Errorf("%d signals outlive their attempt", left)
	}
}

// left says how many tasks run, how many are parked, and how many signals wait.
func (w *world) left() (running int, parked int64, signals int) {
	w.t.Helper()
	s, err := w.store.Load(w.ctx, 4, 100)
	w.must(err)
	for _, p := range s.Parked {
		parked += p.Count
	}
	return len(s.Running), parked, len(s.Signals)
}

func TestAParkedClaimHearsOfSignalsAtOnce(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id := w.submit(w.task())[0]
	lease := w.claim(worker, 1)[0]
	claim := func() *engine.Command {
		cmd := &engine.Command{ID: w.id(), Claim: &engine.Claim{Worker: worker.ID, Session: worker.Session, Most: 1, Until: w.now.Add(30 * time.Second)}}
		w.turn(cmd)
		if _, answered := w.late[cmd]; answered {
			t.Fatal("the claim did not wait")
		}
		return cmd
	}
	waits := claim()
	w.do(&engine.Command{ID: w.id(), Signal: &engine.Signal{Env: w.env, Task: id, Name: "hurry"}})
	if got := w.late[waits].Answer; got == nil || len(got.Claimed.Signals) != 1 || got.Claimed.Signals[0].Name != "hurry" {
		t.Fatalf("the parked claim heard %+v", got)
	}
	waits = claim()
	w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Task: id}})
	if got := w.late[waits].Answer; got == nil || len(got.Claimed.Signals) != 1 || got.Claimed.Signals[0].Word != "cancel" || got.Claimed.Signals[0].Token != lease.Row.Token {
		t.Fatalf("the parked claim heard %+v", got)
	}
	claim() // it has been told: this one waits
}

func TestAWaitingTaskIsEdited(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	ids := w.submit(w.task(), w.task(func(n *engine.NewTask) {
		n.Labels = []models.Label{{Env: w.env, Task: n.ID, Key: "team", Value: "red"}}
	}), w.task())
	edit := func(id models.ID, change func(*engine.Edit)) *engine.Command {
		e := &engine.Edit{Env: w.env, Task: id, Seen: w.row(id).UpdatedAt}
		change(e)
		return &engine.Command{ID: w.id(), Edit: e}
	}
	high, lane, moment := int16(90), "realtime", w.now.Add(time.Hour)
	w.do(edit(ids[2], func(e *engine.Edit) { e.Priority = &high }))
	w.do(edit(ids[1], func(e *engine.Edit) {
		e.Lane, e.Relabel, e.Input = &lane, true, json.RawMessage(`{"labels":{"team":"blue"}}`)
		e.Before = []models.Label{{Env: w.env, Task: ids[1], Key: "team", Value: "red"}}
		e.Labels = []models.Label{{Env: w.env, Task: ids[1], Key: "team", Value: "blue"}}
	}))
	if row, labels := w.row(ids[1]), w.store.Labels(models.TaskRef{Env: w.env, ID: ids[1]}); row.Lane != w.engine.Board().LaneNamed(w.env, lane).Number || len(labels) != 1 || labels[0].Value != "blue" {
		t.Errorf("after the move: lane %d, labels %v", row.Lane, labels)
	}
	w.do(edit(ids[0], func(e *engine.Edit) { e.RunAt = &moment }))
	w.want(ids[0], models.Scheduled)
	leases := w.claim(worker, 2)
	if len(leases) != 2 || leases[0].Row.ID != ids[1] || leases[1].Row.ID != ids[2] {
		t.Fatalf("claimed %d in another order", len(leases))
	}
	w.refuses(models.StateConflict, edit(ids[1], func(e *engine.Edit) { e.Priority = &high }))
	w.refuses(models.Stale, &engine.Command{Edit: &engine.Edit{Env: w.env, Task: ids[0], Seen: 1, Priority: &high}})
	nowhere := "nowhere"
	w.refuses(models.ValidationFailed, edit(ids[0], func(e *engine.Edit) { e.Lane = &nowhere }))
	soon, now := w.now.Add(3*time.Second), models.Instant(0)
	w.do(edit(ids[0], func(e *engine.Edit) { e.ExpiresAt = &soon }))
	w.do(edit(ids[0], func(e *engine.Edit) { e.RunAt = &now }))
	w.want(ids[0], models.Ready)
	w.advance(5 * time.Second)
	if s := w.state(ids[0]); s != models.Expired {
		t.Errorf("it is %s", s)
	}
}

func TestTheTotalTimeoutSpansAttemptsAndWaits(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.LeaseSeconds = 300 })
	total := func(n *engine.NewTask) { n.TotalSeconds, n.MaxAttempts = 20, 50 }
	ids := w.submit(w.task(total), w.task(total), w.task(total, func(n *engine.NewTask) { n.FailWhenSpent = true }))
	w.advance(time.Minute) // waiting for the first start does not count
	leases := w.claim(worker, 3)
	w.settle(worker, engine.Result{
		Token: leases[1].Row.Token, Task: models.TaskRef{Env: w.env, ID: ids[1]}, Outcome: models.AttemptFailed,
		Error: &models.TaskError{Class: "rate_limited"}, RetryAfter: 120,
	})
	w.do(&engine.Command{Return: &engine.Return{Tokens: []models.ID{leases[2].Row.Token}}})
	w.want(ids[1], models.RetryWait)
	w.advance(19 * time.Second)
	w.want(ids[0], models.Running)
	w.advance(3 * time.Second)
	w.want(ids[0], models.DeadLetter)
	w.want(ids[1], models.DeadLetter)
	w.want(ids[2], models.Failed)
	for _, id := range ids {
		if row := w.row(id); row.ErrorClass != "timeout" || row.ExpiresAt != 0 {
			t.Errorf("it ended by %q and expires at %d", row.ErrorClass, row.ExpiresAt)
		}
	}
	w.do(&engine.Command{ID: w.id(), Redrive: &engine.Redrive{Env: w.env, Task: ids[0]}})
	w.advance(time.Minute)
	if lease := w.claim(worker, 1); len(lease) != 1 || lease[0].Row.TotalUntil != w.now.Add(20*time.Second) {
		t.Errorf("its next life has the time %+v", lease)
	}
}

func TestADedupeKeyLetsOneBeAtATime(t *testing.T) {
	for _, c := range []struct {
		while                                  models.While
		queued, running, succeeded, later, bad bool // whether a second submit gets the first
	}{
		{while: models.WhileQueued, queued: true},
		{while: models.WhileLive, queued: true, running: true},
		{while: models.WhileSucceeded, queued: true, running: true, succeeded: true},
	} {
		t.Run(c.while.String(), func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			worker := w.worker("one")
			with := func(n *engine.NewTask) { n.Dedupe = &models.Dedupe{Key: "sync", While: c.while, TTLSeconds: 60} }
			first := w.submit(w.task(with))[0]
			same := func(want bool) {
				t.Helper()
				task := w.task(with)
				if got := w.submit(task)[0]; (got == first) != want {
					t.Fatalf("the second is the first: %v, want %v", got == first, want)
				} else if got != first { // its own key: end it and begin anew
					w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Task: got}})
				}
			}
			same(c.queued)
			lease := w.claim(worker, 1)[0]
			same(c.running)
			if !c.running {
				return
			}
			w.settle(worker, ok(lease))
			same(c.succeeded)
			if c.succeeded {
				w.advance(61 * time.Second)
				same(false)
			}
		})
	}
	w := newWorld(t, engine.Config{})
	with := func(n *engine.NewTask) { n.Dedupe = &models.Dedupe{Key: "sync", While: models.WhileLive} }
	one, two := w.task(with), w.task(with)
	w.refuses(models.ValidationFailed, &engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{one, two}, InBatch: true}})
	replies := w.turn(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{one}, InBatch: true}},
		&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{two}, InBatch: true}})
	if a, b := replies[0].Answer.Submitted.Tasks[0], replies[1].Answer.Submitted.Tasks[0]; a.Row.ID != b.Row.ID || !b.Deduplicated {
		t.Errorf("two submits of one batch made %x and %x", a.Row.ID, b.Row.ID)
	}
}

func TestALateJudgementIsKept(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id := w.submit(w.task())[0]
	judge := func(score float64) *engine.Command {
		return &engine.Command{Judge: &engine.Judge{Env: w.env, Task: id, Score: score, Source: "people"}}
	}
	w.refuses(models.StateConflict, judge(1))
	w.settle(worker, ok(w.claim(worker, 1)[0]))
	w.turn(judge(0.5), judge(0.75))
	if q := w.store.Qualities(models.TaskRef{Env: w.env, ID: id}); len(q) != 1 || q[0].Score != 0.75 {
		t.Errorf("kept %+v", q)
	}
}
