package loop

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

func TestAnAnswerMeansItIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		cmd := w.task(payloadOf(1))
		answer := w.must(w.loop, cmd)
		if got := w.stands(cmd); got != "ready" {
			t.Errorf("the task is %s", got)
		}
		if role := w.loop.Role(); answer.Batch == 0 || role.Batch < answer.Batch || role.Epoch != 1 || role.Address != "https://one" {
			t.Errorf("answered with batch %d under %+v", answer.Batch, role)
		}
		claimed := w.must(w.loop, w.claim(5, 0))
		if leases := claimed.Claimed.Leases; len(leases) != 1 || leases[0].Row.ID != cmd.Submit.Tasks[0].ID || w.stands(cmd) != "running" {
			t.Errorf("claimed %+v", leases)
		}
	})
}

func TestCallersTogetherShareABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		before := w.loop.Figures()
		batches := map[int64]int{}
		answers := make(chan int64)
		freeze := make(chan struct{})
		w.store.set(func(s *shaky) { s.freeze = freeze })
		for i := range 300 {
			go func() { answers <- w.must(w.loop, w.task(payloadOf(i))).Batch }()
		}
		synctest.Wait() // all wait while the store stands still
		w.store.set(func(s *shaky) { s.freeze = nil })
		close(freeze)
		for range 300 {
			batches[<-answers]++
		}
		synctest.Wait() // the loop counts after it has answered
		after := w.loop.Figures()
		if len(batches) > 3 || after.Batches-before.Batches > 4 || after.Commands-before.Commands < 300 {
			t.Errorf("300 commands took %d batches (%v)", after.Batches-before.Batches, batches)
		}
	})
}

func TestAParkedClaimIsAnsweredByALaterSubmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		got := make(chan *engine.Answer)
		began := time.Now()
		go func() { got <- w.must(w.loop, w.claim(1, 20*time.Second)) }()
		time.Sleep(3 * time.Second)
		if n := w.loop.Figures().Parked; n != 1 {
			t.Fatalf("%d claims are parked", n)
		}
		cmd := w.task(payloadOf(1))
		made := w.must(w.loop, cmd)
		if a := <-got; len(a.Claimed.Leases) != 1 || a.Batch != made.Batch {
			t.Errorf("claimed %+v in batch %d, submitted in %d", a.Claimed, a.Batch, made.Batch)
		}
		if took := time.Since(began); took > 3100*time.Millisecond {
			t.Errorf("it waited %v", took)
		}
		began = time.Now()
		if a := w.must(w.loop, w.claim(1, 5*time.Second)); len(a.Claimed.Leases) != 0 {
			t.Errorf("claimed %+v out of nothing", a.Claimed)
		}
		if took := time.Since(began); took < 5*time.Second || took > 5100*time.Millisecond {
			t.Errorf("an empty wait of 5 s took %v", took)
		}
	})
}

func TestAClaimerThatLeavesLosesNoTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := w.loop.Do(ctx, w.claim(1, 20*time.Second))
			ended <- err
		}()
		time.Sleep(time.Second)
		leave()
		if err := <-ended; models.CodeOf(err) != models.Unavailable {
			t.Errorf("told %v", err)
		}
		synctest.Wait()
		if n := w.loop.Figures().Parked; n != 0 {
			t.Errorf("%d claims are still parked", n)
		}
		if n := w.held(); n != 0 {
			t.Errorf("the engine still holds %d claims", n)
		}
		cmd := w.task(payloadOf(1))
		w.must(w.loop, cmd)
		if got := w.stands(cmd); got != "ready" {
			t.Errorf("the task is %s: it went to who had left", got)
		}
	})
}

// The caller leaves while the batch that grants it leases is being committed.
func TestLeasesGrantedToWhoHasLeftGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		cmd := w.task(payloadOf(1))
		w.must(w.loop, cmd)
		ctx, leave := context.WithCancel(t.Context())
		w.store.set(func(s *shaky) {
			s.apply = append(s.apply, func(*models.Plan, func() error) error {
				leave()
				synctest.Wait() // the caller is gone before the commit returns
				return nil
			})
		})
		if _, err := w.loop.Do(ctx, w.claim(1, 0)); err == nil {
			t.Fatal("the caller got an answer")
		}
		time.Sleep(10 * time.Millisecond)
		if got := w.stands(cmd); got != "ready" {
			t.Errorf("the task is %s", got)
		}
		again := w.must(w.loop, w.claim(1, 0))
		if len(again.Claimed.Leases) != 1 || again.Claimed.Leases[0].Row.AttemptsUsed > 1 {
			t.Errorf("claimed again: %+v", again.Claimed)
		}
	})
}

// The caller leaves at the very moment its leases are granted: either it has them, or they go back.
func TestNoLeaseIsLostBetweenAnswerAndDeparture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		for i := range 60 {
			cmd := w.task(payloadOf(i))
			w.must(w.loop, cmd)
			ctx, leave := context.WithCancel(t.Context())
			w.store.set(func(s *shaky) {
				s.apply = append(s.apply, func(*models.Plan, func() error) error { leave(); return nil })
			})
			answer, err := w.loop.Do(ctx, w.claim(1, 0))
			time.Sleep(10 * time.Millisecond)
			want := "ready"
			if err == nil && len(answer.Claimed.Leases) == 1 {
				want = "running"
			}
			if got := w.stands(cmd); got != want {
				t.Fatalf("told %v, the task is %s", err, got)
			}
			w.must(w.loop, &engine.Command{Cancel: &engine.Cancel{Env: w.env, Task: cmd.Submit.Tasks[0].ID}})
		}
	})
}

func TestSubscribersHearTheNewestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		ctx, leave := context.WithCancel(t.Context())
		heard := w.loop.Subscribe(ctx)
		<-heard
		var last int64
		for i := range 5 {
			last = w.must(w.loop, w.task(payloadOf(i))).Batch
		}
		synctest.Wait()
		if got := <-heard; got < last {
			t.Errorf("heard of batch %d, the last is %d", got, last)
		}
		leave()
		for range heard {
		}
	})
}

func TestTheBoardsFiguresAreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.must(w.loop, w.task(payloadOf(1)))
		time.Sleep(2 * sampleEvery)
		f := w.loop.Figures()
		if f.Board == nil || f.Board.Entries != 1 {
			t.Errorf("the board: %+v", f.Board)
		}
		if f.BatchCommands.Count != f.Batches || f.CommitSeconds.Count != f.Batches || f.Batches == 0 || f.Takeovers != 1 || f.Rebuilds != 1 {
			t.Errorf("figures %+v", f)
		}
	})
}
