package chaos

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A worker is frozen for two leases: what it held is offered again, and what it says afterwards is refused.
func TestFrozenWorker(t *testing.T) {
	w := NewWorld(t, 1)
	frozen := w.hand(t, "frozen", "--types", "command", "--allow-command", "sleep", "--slots", "10")
	c := w.customer(w.tenant, w.Replicas[0].Front.URL())
	c.more = map[string]any{"type": "command", "payload": map[string]any{"command": "sleep", "args": []string{"4"}}}
	const tasks = 10
	c.flow(context.Background(), 4, tasks, 0)()
	w.eventually(patience, "the worker holds all", func() bool { return w.DB.count(t, `SELECT count(*) FROM tasks WHERE state = 4`) == tasks })
	frozen.process.Freeze()
	began := time.Now()
	second := w.hand(t, "second", "--types", "command", "--allow-command", "sleep", "--slots", "10", "--lease-seconds", "30")
	w.eventually(patience, "the work is offered again", func() bool {
		return w.DB.count(t, `SELECT count(*) FROM tasks WHERE attempt > 1`) == tasks
	})
	again := time.Since(began)
	time.Sleep(max(0, 6*time.Second-time.Since(began))) // two leases
	frozen.process.Thaw()
	w.eventually(patience, "the woken worker's results are refused", func() bool {
		log := string(frozen.process.said())
		return strings.Count(log, "result refused")+strings.Count(log, "lease lost") >= tasks
	})
	log := string(frozen.process.said())
	t.Logf("%d tasks offered again %s after the freeze (goal: its lease and 5 s); the woken worker heard: %d leases lost, %d results refused", tasks,
		again.Round(time.Millisecond), strings.Count(log, "lease lost"), strings.Count(log, "result refused"))
	w.Drain(patience)
	if n := w.DB.count(t, `SELECT count(*) FROM attempts WHERE outcome = 1 AND n = 2`); n != tasks {
		t.Errorf("T5: the second attempt succeeded for %d of %d tasks", n, tasks)
	}
	if !second.process.Alive() || !frozen.process.Alive() {
		t.Error("a worker has ended")
	}
	w.Finish(t)
}

// A worker that keeps its tokens to itself for two leases is told, in both forms, that they are not its own any more.
func TestSilentWorker(t *testing.T) {
	w := NewWorld(t, 1)
	front := w.Replicas[0].Front.URL()
	silent := w.puller(10, 5, time.Hour, front)
	c := w.customer(w.tenant, front)
	c.flow(context.Background(), 4, 10, 0)()
	w.eventually(patience, "it holds all", func() bool { return len(silent.starts()) >= 10 })
	link := w.Replicas[0].Front
	link.Set(BlackHole)
	time.Sleep(10 * time.Second) // two leases
	link.Set(Pass)
	w.puller(10, 30, 0, w.Replicas[0].URL)
	w.Finish(t, c) // stale tokens are tried there
	w.beyondFirst(10)
}

// Tasks that kill their worker become dead letters after three lost leases; the others are done.
func TestTasksThatKillTheirWorker(t *testing.T) {
	w := NewWorld(t, 1)
	front := w.Replicas[0].Front.URL()
	hands := []*hand{w.hand(t, "a"), w.hand(t, "b")}
	for _, h := range hands {
		h.process.Kill()
		h.args = append(h.args, "--types", "command,text.summarize", "--allow-command", "sh", "--lease-seconds", "2", "--slots", "1")
		h.start(t)
	}
	// The leases of another worker keep these deaths from looking like an outage, whose losses count against no task.
	w.puller(16, 30, 300*time.Millisecond, front)
	good, bad := w.customer(w.tenant, front), w.customer(w.tenant, front)
	bad.next.Add(1_000_000)
	bad.more = map[string]any{"type": "command", "payload": map[string]any{"command": "sh", "args": []string{"-c", "kill -9 $PPID"}}}
	const killers = 4
	bad.flow(context.Background(), 1, killers, 0)()
	ctx, stop := context.WithCancel(context.Background())
	wait := good.flow(ctx, 8, 0, 100*time.Millisecond)
	deaths := 0
	took := w.eventually(3*patience, "every killer is a dead letter", func() bool {
		for _, h := range hands {
			if !h.process.Alive() {
				deaths++
				h.start(t)
			}
		}
		return w.DB.count(t, `SELECT count(*) FROM tasks WHERE state = 7`) == killers
	})
	stop()
	wait()
	t.Logf("%d killers are dead letters after %s and %d dead workers", killers, took.Round(time.Millisecond), deaths)
	w.Finish(t, good)
	if n := w.DB.count(t, `SELECT count(*) FROM tasks WHERE state = 7 AND leases_lost % 1000 = 3 AND error_class = 'worker_lost'`); n != killers {
		t.Errorf("T13: %d of %d killers lost exactly three leases: %s", n, killers,
			w.text(`SELECT string_agg(format('%s: %s leases lost, %s', id, leases_lost, error_class), '; ') FROM tasks WHERE state = 7`))
	}
	if n, all := w.DB.count(t, `SELECT count(*) FROM tasks WHERE state = 8`), len(good.with(Acked)); n != all {
		t.Errorf("T13: %d of %d others succeeded", n, all)
	}
}
