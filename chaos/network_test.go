package chaos

import (
	"context"
	"fmt"
	"testing"
	"time"
)

const recoverGoal = 5 * time.Second

// The link between the brain and its database is cut right after a COMMIT was sent: every caller is told the truth, and
// nothing is doubled.
func TestLinkCutAfterCommit(t *testing.T) {
	w := NewWorld(t, 2)
	w.puller(32, 15, 10*time.Millisecond, w.fronts()...)
	c := w.customer(w.tenant, w.fronts()...)
	ctx, stop := context.WithCancel(context.Background())
	wait := c.flow(ctx, 8, 0, 10*time.Millisecond)
	var back []time.Duration
	for range 5 {
		acked := len(c.with(Acked))
		w.eventually(patience, "work flows", func() bool { return len(c.with(Acked)) > acked+50 })
		brain, _ := w.brain()
		cuts := brain.Database.Cut()
		brain.Database.Set(Commits)
		w.eventually(patience, "a commit is cut", func() bool { return brain.Database.Cut() > cuts })
		began := time.Now()
		brain.Database.Set(Pass)
		acked = len(c.with(Acked))
		w.eventually(patience, "submits are acknowledged again", func() bool { return len(c.with(Acked)) > acked })
		back = append(back, time.Since(began).Round(time.Millisecond))
	}
	stop()
	wait()
	_, epoch := w.brain()
	t.Logf("the link was cut after a COMMIT %d times; submits were acknowledged again after %v (goal %s); the epoch is %d", len(back), back, recoverGoal, epoch)
	w.Finish(t, c)
}

// Each link fails in each of several ways for three seconds; afterwards work flows again, and no call outlived its time.
func TestFailingLinks(t *testing.T) {
	w := NewWorld(t, 2)
	workers := newLink(t, w.Replicas[0].Front.dial)
	const lease = 6 * time.Second
	w.puller(32, int(lease/time.Second), 10*time.Millisecond, workers.URL())
	c := w.customer(w.tenant, w.fronts()...)
	c.timeout = 4 * time.Second
	ctx, stop := context.WithCancel(context.Background())
	wait := c.flow(ctx, 8, 0, 10*time.Millisecond)
	cases := []struct {
		link string
		mode Mode
	}{
		{"database", BlackHole},
		{"database", Reset},
		{"database", Deaf},
		{"database", HalfClose},
		{"workers", BlackHole},
		{"workers", CutAfter},
		{"callers", Deaf},
		{"callers", Slow},
	}
	w.Rng.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	var told []string
	for _, one := range cases {
		brain, epoch := w.brain()
		link := map[string]*Link{"database": brain.Database, "workers": workers, "callers": brain.Front}[one.link]
		link.Set(one.mode)
		time.Sleep(3 * time.Second) // as long as the failure lasts
		link.Set(Pass)
		began, acked, done := time.Now(), len(c.with(Acked)), w.done(t)
		w.eventually(patience, fmt.Sprintf("work flows after %s: %s", one.link, one.mode), func() bool {
			return len(c.with(Acked)) > acked && w.done(t) > done
		})
		took := time.Since(began).Round(time.Millisecond)
		_, after := w.brain()
		goal := recoverGoal
		if one.link == "workers" { // a claim whose answer was lost is offered again within two heartbeats + 3 s
			goal = 2*lease/3 + 3*time.Second
		}
		told = append(told, fmt.Sprintf("%s %s: %s (goal %s, %d brains)", one.link, one.mode, took, goal, after-epoch))
	}
	stop()
	wait()
	for _, line := range told {
		t.Log(line)
	}
	t.Logf("the slowest call of %s took %s (goal: a second more)", c.timeout, c.slowest.Round(time.Millisecond))
	if c.slowest > c.timeout+patience/2 {
		t.Errorf("T6: a call of %s took %s", c.timeout, c.slowest)
	}
	w.Finish(t, c)
}

func (w *World) done(t testing.TB) int {
	t.Helper()
	return w.DB.count(t, `SELECT count(*) FROM tasks WHERE state = 8`)
}
