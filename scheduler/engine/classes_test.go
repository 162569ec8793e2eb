package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// TestEveryClassUnderEveryPolicy holds what follows a failure to what was promised: by class, by policy, by what the task
// does when its attempts are spent, for the first failure and for the last.
func TestEveryClassUnderEveryPolicy(t *testing.T) {
	permanent := []string{"invalid_input", "authentication", "permission_denied", "not_found"}
	policies := map[string]models.RetryPolicy{
		"once":  {MaxAttempts: 1, Backoff: "fixed", InitialDelay: 2, MaxDelay: 10},
		"twice": {MaxAttempts: 2, Backoff: "exponential", InitialDelay: 2, MaxDelay: 10},
		"own": {MaxAttempts: 5, Backoff: "linear", InitialDelay: 2, MaxDelay: 10, Classes: map[string]models.ClassPolicy{
			"timeout": {MaxAttempts: 1}, "network": {MaxAttempts: 1}, "rate_limited": {MaxAttempts: 1},
		}},
	}
	for _, class := range append(slices.Clone(models.ErrorClasses), "unheard_of") {
		for name, policy := range policies {
			for _, fails := range []bool{false, true} {
				t.Run(fmt.Sprint(class, "/", name, "/fail=", fails), func(t *testing.T) {
					store := storetest.Lone // the policies of one class are told to both stores
					if class == "network" && !testing.Short() {
						store = storetest.NewMirror
					}
					w := worldOn(t, engine.Config{}, store)
					worker := w.worker("one", func(m *models.Worker) { m.LeaseSeconds = 300 })
					task := w.task(func(n *engine.NewTask) {
						n.MaxAttempts, n.HasPolicy, n.FailWhenSpent = policy.MaxAttempts, true, fails
						n.Input = policyText(policy)
					})
					id := w.submit(task)[0]
					most := policy.MaxAttempts
					if own, ok := policy.Classes[class]; ok {
						most = own.MaxAttempts
					}
					ends := models.DeadLetter
					if fails {
						ends = models.Failed
					}
					for n := int32(1); ; n++ {
						lease := w.claim(worker, 1)
						if len(lease) != 1 {
							t.Fatalf("attempt %d does not start", n)
						}
						w.settle(worker, failed(lease[0], class))
						row := w.row(id)
						again := !slices.Contains(permanent, class) && (n < most || class == "rate_limited")
						if known := row.ErrorClass; known != class && !(class == "unheard_of" && known == "internal") {
							t.Fatalf("its class is %q", known)
						}
						if !again {
							w.want(id, ends)
							return
						}
						w.want(id, models.RetryWait)
						uses := n
						if class == "rate_limited" {
							uses = 0
						}
						if row.AttemptsUsed != uses || row.WakeAt <= w.now || row.WakeAt > w.now.Add(10*time.Second) {
							t.Fatalf("after %d: %d used, again in %s", n, row.AttemptsUsed, row.WakeAt.Sub(w.now))
						}
						if n == 4 {
							return // a rate limit goes on for an hour
						}
						w.advance(11 * time.Second)
					}
				})
			}
		}
	}
}

func policyText(p models.RetryPolicy) []byte {
	classes := ""
	for _, class := range []string{"timeout", "network", "rate_limited"} {
		if own, ok := p.Classes[class]; ok {
			if classes != "" {
				classes += ","
			}
			classes += fmt.Sprintf("%q:{\"max_attempts\":%d}", class, own.MaxAttempts)
		}
	}
	return fmt.Appendf(nil, `{"retry_policy":{"max_attempts":%d,"backoff":%q,"initial_delay_seconds":%g,"max_delay_seconds":%g,"jitter":false,"classes":{%s}}}`,
		p.MaxAttempts, p.Backoff, p.InitialDelay, p.MaxDelay, classes)
}

// TestLossesOfManyWorkersAreNobodysFault: three workers and half of all leases lost within one lease time count for no
// task; a task alone dies of its third loss.
func TestLossesOfManyWorkersAreNobodysFault(t *testing.T) {
	w := newWorld(t, engine.Config{})
	var ids []models.ID
	for i := range 6 {
		ids = append(ids, w.submit(w.task())...)
		w.claim(w.worker(fmt.Sprint("w", i)), 1)
	}
	w.advance(35 * time.Second)
	for _, id := range ids {
		if row := w.row(id); row.State != models.Ready || row.Poisonous() != 0 || row.AllLost() != 1 || row.AttemptsUsed != 0 {
			t.Fatalf("after a mass loss it is %s with %d losses, %d of which count", row.State, row.AllLost(), row.Poisonous())
		}
	}
	alone := newWorld(t, engine.Config{})
	id := alone.submit(alone.task())[0]
	worker := alone.worker("one")
	for n := int32(1); n <= 3; n++ {
		if got := alone.claim(worker, 1); len(got) != 1 {
			t.Fatalf("life %d does not start", n)
		}
		alone.advance(35 * time.Second)
		if row := alone.row(id); row.LeasesLost != n || row.AttemptsUsed != 0 {
			t.Fatalf("after loss %d: %+v", n, row)
		}
	}
	alone.want(id, models.DeadLetter)
	if row := alone.row(id); row.ErrorClass != "worker_lost" {
		t.Errorf("it died of %s", row.ErrorClass)
	}
}

// crowd gives n workers a task each.
func (w *world) crowd(n int) (ids []models.ID, workers []models.Worker) {
	for i := range n {
		ids = append(ids, w.submit(w.task())...)
		workers = append(workers, w.worker(fmt.Sprint("w", i)))
		w.claim(workers[i], 1)
	}
	return ids, workers
}

// Half of all leases is a mass, and less is not: those that live are no part of what was lost.
func TestHalfOfAllLeasesAreAMass(t *testing.T) {
	for _, c := range []struct{ dead, living, counts int }{{3, 3, 0}, {4, 4, 0}, {3, 4, 1}, {2, 2, 1}} {
		w := newWorld(t, engine.Config{})
		ids, workers := w.crowd(c.dead + c.living)
		for range 4 {
			w.advance(10 * time.Second)
			for _, id := range ids[c.dead:] {
				row := w.row(id)
				w.do(&engine.Command{Heartbeat: &engine.Heartbeat{Env: w.env, Task: id, Leases: []engine.Beat{{Token: row.Token, Task: models.TaskRef{Env: w.env, ID: id}}}}})
			}
		}
		for i, id := range ids {
			if row := w.row(id); i < c.dead && int(row.Poisonous()) != c.counts || i >= c.dead && row.State != models.Running {
				t.Errorf("%d of %d lost: number %d is %s with %d losses that count, want %d", c.dead, len(workers), i, row.State, row.Poisonous(), c.counts)
			}
		}
	}
}

// Ten losses count whatever else was lost. Suspensions, releases and what a redrive left behind are none.
func TestTenLossesCountWhateverElseWasLost(t *testing.T) {
	w := newWorld(t, engine.Config{})
	id := w.submit(w.task(func(t *engine.NewTask) { t.Priority = 90 }))[0]
	one := w.worker("one")
	for range 12 {
		r := ok(w.claim(one, 1)[0])
		r.Outcome = models.AttemptReleased
		w.settle(one, r)
	}
	w.do(&engine.Command{Retire: &engine.Retire{Worker: one.ID, Session: one.Session, Gone: true}})
	w.submit(w.task(), w.task())
	for n := int32(1); n <= 10; n++ {
		if row := w.row(id); row.State != models.Ready || row.AllLost() != n-1 {
			t.Fatalf("before mass loss %d it is %s with %d losses", n, row.State, row.AllLost())
		}
		for i := range 3 {
			if got := w.claim(w.worker(fmt.Sprint(n, i)), 1); len(got) != 1 {
				t.Fatalf("mass loss %d: worker %d got nothing", n, i)
			}
		}
		w.advance(70 * time.Second)
	}
	if row := w.row(id); row.State != models.DeadLetter || row.Poisonous() != 0 || row.ErrorClass != "worker_lost" {
		t.Fatalf("after ten losses it is %s with %d that count, of class %q", row.State, row.Poisonous(), row.ErrorClass)
	}
	w.do(&engine.Command{Redrive: &engine.Redrive{Env: w.env, Task: id, Reason: "again"}})
	if row := w.row(id); row.LeasesLost != 0 {
		t.Errorf("another life begins with %d losses", row.LeasesLost)
	}
}

// A worker that is started anew each time its task ends it says nothing of its lease, which is lost: the third time the task is
// a dead letter. What it lists goes on.
func TestATaskThatEndsItsWorkerIsPoisonHoweverSoonThatComesAgain(t *testing.T) {
	w := newWorld(t, engine.Config{})
	id := w.submit(w.task())[0]
	worker := w.worker("one")
	for n := int32(1); n <= 3; n++ {
		leases := w.claim(worker, 1)
		if len(leases) != 1 {
			t.Fatalf("life %d does not start", n)
		}
		again := worker
		again.Session = w.id()
		w.do(&engine.Command{Register: &engine.Register{Worker: again, Leases: []models.ID{leases[0].Row.Token}}})
		w.want(id, models.Running)
		w.advance(65 * time.Second / 3) // no more than two in a minute
		again.Session = w.id()
		worker = *w.do(&engine.Command{Register: &engine.Register{Worker: again}}).Worker
		if row := w.row(id); row.Poisonous() != n || row.AttemptsUsed != 0 {
			t.Fatalf("after loss %d: %d count, %d attempts used", n, row.Poisonous(), row.AttemptsUsed)
		}
		if late := w.settle(worker, ok(leases[0]))[0]; late.Accepted || late.Code != models.LeaseLost {
			t.Fatalf("a report of what was lost: %+v", late)
		}
		w.advance(65 * time.Second)
	}
	w.want(id, models.DeadLetter)
	if row := w.row(id); row.ErrorClass != "worker_lost" {
		t.Errorf("it died of %s", row.ErrorClass)
	}
	if lost := w.stats().LeasesLost; lost["replaced"] != 3 || lost["silent"] != 0 {
		t.Errorf("lost leases by cause: %v", lost)
	}
}

// TestTheLawAsProperties: a row of the Law leaves no final state, only live states are left by fenced rows alone, and what
// a walk of the Law reaches never comes back from its end.
func TestTheLawAsProperties(t *testing.T) {
	for _, row := range models.Law {
		for _, from := range row.From {
			if from.Final() {
				t.Errorf("%s leaves %s", row.On, from)
			}
			if row.Fenced && !from.Live() || from.Live() && !row.Fenced {
				t.Errorf("%s from %s: fenced is %v", row.On, from, row.Fenced)
			}
			if row.To == models.Running && from != models.Ready {
				t.Errorf("%s starts what is %s", row.On, from)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		state := rapid.SampledFrom([]models.State{models.Scheduled, models.Pending, models.Ready}).Draw(t, "born")
		for range 40 {
			cause := rapid.SampledFrom(models.Law).Draw(t, "cause")
			_, ok := models.Step(cause.On, state, cause.To)
			listed := slices.Contains(cause.From, state)
			if listed && !ok {
				t.Fatalf("the Law lists %s from %s to %s, the step function does not", cause.On, state, cause.To)
			}
			if !ok {
				continue
			}
			if state.Final() {
				t.Fatalf("%s left %s", cause.On, state)
			}
			state = cause.To
		}
	})
}
