package loop

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/scheduler/engine"
)

// beside starts a second loop over the same rows, through faults of its own.
func (w *world) beside(address string) (*Loop, *shaky) {
	s := &shaky{Store: w.store.Store}
	l, _ := runs(w.T, s, Options{Address: address, Logger: quiet()})
	return l, s
}

func TestOnlyOneDecidesAndOthersSayWho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		other, _ := w.beside("https://two")
		time.Sleep(20 * time.Second)
		role := other.Role()
		if !w.loop.Role().Brain || role.Brain || role.Address != "https://one" || role.Epoch != 1 {
			t.Errorf("one %+v, two %+v", w.loop.Role(), role)
		}
		made := w.must(w.loop, w.task(payloadOf(1)))
		if _, err := w.do(other, w.task(payloadOf(2))); models.CodeOf(err) != models.Unavailable {
			t.Errorf("the standby answered %v", err)
		}
		time.Sleep(time.Second)
		if got := other.Role().Batch; got < made.Batch {
			t.Errorf("the standby knows batch %d, not %d", got, made.Batch)
		}
	})
}

// Two replicas under one address: the one that does not decide can't forward, and says why.
func TestAnAddressThatIsTakenIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		other, _ := w.beside("https://one")
		apart, _ := w.beside("https://two")
		time.Sleep(20 * time.Second)
		if n := other.Figures().AddressTaken; n != 1 || other.Role().Address != "" {
			t.Errorf("told %d times; %+v", n, other.Role())
		}
		if n := apart.Figures().AddressTaken + w.loop.Figures().AddressTaken; n != 0 {
			t.Errorf("%d false alarms", n)
		}
		w.stop()
		synctest.Wait()
		time.Sleep(10 * time.Second) // one of the others decides now, under whichever address
		if n := other.Figures().AddressTaken + apart.Figures().AddressTaken; n != 1 {
			t.Errorf("told %d times after the hand-over", n)
		}
	})
}

func TestHandOverTakesLessThanASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		other, _ := w.beside("https://two")
		time.Sleep(5 * time.Second)
		told := make(chan error)
		go func() {
			_, err := w.do(w.loop, w.claim(1, 30*time.Second))
			told <- err
		}()
		time.Sleep(time.Second)
		began := time.Now()
		w.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the old brain took %v to stop", took)
		}
		if err := <-told; models.CodeOf(err) != models.Unavailable {
			t.Errorf("the parked claim was told %v", err)
		}
		awaitBrain(t, other)
		if took := time.Since(began); took > time.Second {
			t.Errorf("the next brain came after %v", took)
		}
		cmd := w.task(payloadOf(1))
		w.must(other, cmd)
		if _, err := w.do(w.loop, w.task(payloadOf(2))); models.CodeOf(err) != models.Unavailable {
			t.Errorf("the old brain answered %v", err)
		}
	})
}

func TestAKilledBrainIsFollowedWithinTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		other, _ := w.beside("https://two")
		time.Sleep(7 * time.Second)
		began := time.Now()
		w.store.set(func(s *shaky) { s.down = true }) // nothing of it reaches the database any more
		awaitBrain(t, other)
		if took := time.Since(began); took < 3*time.Second || took > 7*time.Second {
			t.Errorf("the next brain came after %v", took)
		}
		w.must(other, w.task(payloadOf(1)))
	})
}

func TestAFrozenBrainAnswersNothingWhenItWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		other, _ := w.beside("https://two")
		time.Sleep(2 * time.Second)
		freeze := make(chan struct{})
		w.store.set(func(s *shaky) { s.freeze = freeze })
		looked, submitted := make(chan error), make(chan error)
		lost := w.task(payloadOf(1))
		go func() { _, err := w.do(w.loop, w.look()); looked <- err }()
		go func() { _, err := w.do(w.loop, lost); submitted <- err }()
		awaitBrain(t, other)
		kept := w.task(payloadOf(2))
		w.must(other, kept)
		time.Sleep(20 * time.Second)
		w.store.set(func(s *shaky) { s.freeze = nil })
		close(freeze)
		if err := <-looked; models.CodeOf(err) != models.Unavailable {
			t.Errorf("a look was answered %v", err)
		}
		if err := <-submitted; models.CodeOf(err) != models.Unavailable {
			t.Errorf("a submit was answered %v", err)
		}
		if w.stands(lost) != "absent" || w.stands(kept) != "ready" {
			t.Errorf("the old brain's task is %s, the new one's %s", w.stands(lost), w.stands(kept))
		}
		time.Sleep(time.Second)
		if role := w.loop.Role(); role.Brain || role.Address != "https://two" {
			t.Errorf("the old brain believes %+v", role)
		}
	})
}

func TestWhatCommitsNothingIsOnlyAnsweredWhileThisIsSurelyTheBrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.must(w.loop, w.look())
		// Reads still come through, renewals do not: as when only writes are blocked.
		blocked := &unrenewed{shaky: w.store}
		w.stop()
		l, _ := runs(t, blocked, Options{Address: "https://two", Logger: quiet()})
		awaitBrain(t, l)
		blocked.set(func(*shaky) { blocked.fail = true })
		time.Sleep(3 * time.Second)
		if _, err := w.do(l, w.look()); err != nil {
			t.Errorf("within four seconds: %v", err)
		}
		time.Sleep(3 * time.Second)
		if _, err := w.do(l, w.look()); models.CodeOf(err) != models.Unavailable {
			t.Errorf("after four seconds: %v", err)
		}
		// A commit proves it too.
		w.must(l, w.task(payloadOf(1)))
		if _, err := w.do(l, w.look()); err != nil {
			t.Errorf("after a commit: %v", err)
		}
		blocked.set(func(*shaky) { blocked.fail = false })
		if _, err := w.do(l, w.look()); err != nil {
			t.Errorf("once it can renew: %v", err)
		}
	})
}

// unrenewed can be kept from renewing.
type unrenewed struct {
	*shaky
	fail bool
}

func (s *unrenewed) Renew(ctx context.Context, epoch int64) error {
	s.mu.Lock()
	fail := s.fail
	s.mu.Unlock()
	if fail {
		return models.Errorf(models.Rollback, "locked")
	}
	return s.shaky.Renew(ctx, epoch)
}

func TestTheBrainStaysThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.store.set(func(s *shaky) { s.down = true })
		began := time.Now()
		if _, err := w.do(w.loop, w.task(payloadOf(1))); models.CodeOf(err) != models.Unavailable || time.Since(began) > 12*time.Second {
			t.Errorf("during the outage: %v after %v", err, time.Since(began))
		}
		time.Sleep(30 * time.Second)
		w.store.set(func(s *shaky) { s.down = false })
		began = time.Now()
		for {
			if _, err := w.do(w.loop, w.task(payloadOf(2))); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v after the outage", took)
		}
	})
}

// The database goes away during a commit, and for so long that nobody can say what became of it: callers are told so.
// When it is back, the same replica decides at once, and what had happened is known.
// A database that refuses at once is not asked again at once: each question may be a new connection of it.
func TestADatabaseThatRefusesIsNotFlooded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.must(w.loop, w.task(payloadOf(1)))
		var asked int
		w.store.set(func(s *shaky) { s.refuses = &asked })
		time.Sleep(10 * time.Second)
		w.store.set(func(s *shaky) { s.refuses = nil })
		if asked < 40 || asked > 120 {
			t.Errorf("it was asked %d times in ten seconds", asked)
		}
		time.Sleep(retryEvery)
		began := time.Now()
		w.must(w.loop, w.task(payloadOf(2)))
		if took := time.Since(began); took > retryFirst {
			t.Errorf("when it answers again, a submit takes %v", took)
		}
	})
}

func TestAnUnclearCommitWithoutADatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		cmd := w.task(payloadOf(1))
		w.store.set(func(s *shaky) {
			s.apply = append(s.apply, func(_ *models.Plan, do func() error) error {
				err := do()
				s.set(func(s *shaky) { s.down = true })
				return models.Errorf(models.Unclear, "cut: %v", err)
			})
		})
		began := time.Now()
		if _, err := w.do(w.loop, cmd); models.CodeOf(err) != models.Unavailable || time.Since(began) > 10*time.Second {
			t.Errorf("told %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Minute)
		w.store.set(func(s *shaky) { s.down = false })
		began = time.Now()
		awaitBrain(t, w.loop)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v after the outage", took)
		}
		cmd.Resent = true
		answer, err := w.do(w.loop, cmd)
		if err != nil || len(answer.Made) != 1 || len(w.store.Tasks()) != 1 {
			t.Errorf("asked again: %+v, %v; %d tasks", answer, err, len(w.store.Tasks()))
		}
	})
}

// An outage of the database for all is no reason to change the brain.
func TestAnOutageForAllChangesNoBrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		other, theirs := w.beside("https://two")
		time.Sleep(4 * time.Second) // the standby has seen the last renewal
		for _, s := range []*shaky{w.store, theirs} {
			s.set(func(s *shaky) { s.down = true })
		}
		time.Sleep(20 * time.Second)
		theirs.set(func(s *shaky) { s.down = false }) // the standby sees it first
		time.Sleep(4 * time.Second)
		w.store.set(func(s *shaky) { s.down = false })
		time.Sleep(20 * time.Second)
		if one, two := w.loop.Role(), other.Role(); !one.Brain || two.Brain || one.Epoch != 1 {
			t.Errorf("one %+v, two %+v", one, two)
		}
	})
}

// A promotion that lost acknowledged batches is an alert.
func TestLostHistoryIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		for i := range 5 {
			w.must(w.loop, w.task(payloadOf(i)))
		}
		before := w.loop.Role().Batch
		w.store.set(func(s *shaky) { s.Store = memory.New(func() models.Instant { return models.InstantOf(time.Now()) }) })
		time.Sleep(10 * time.Second)
		awaitBrain(t, w.loop)
		if f := w.loop.Figures(); f.HistoryLost != 1 || f.Batch >= before {
			t.Errorf("figures %+v", f)
		}
		var door engine.Door = w.loop
		w.furnish(door)
	})
}
