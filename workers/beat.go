package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/protocol"
)

// hurryBeat asks for a beat soon, because there is news to tell.
func (w *Worker) hurryBeat() {
	select {
	case w.hurry <- struct{}{}:
	default:
	}
}

// beatLoop renews every lease at the server's pace, earlier when there is
// progress to tell (never more than once a second), sooner after a failure.
func (w *Worker) beatLoop(ctx context.Context) {
	failures := 0
	last := time.Now()
	for {
		wait := w.beatEvery()
		if failures > 0 {
			wait = min(wait, client.Backoff(failures-1, wait, nil))
		}
		if !w.untilBeat(ctx, last, wait) {
			return
		}
		last = time.Now()
		s := w.session()
		if err := w.beat(ctx, s); err != nil {
			w.recover(ctx, s, failures, err)
			w.unparkIfDead(err)
			failures++
			continue
		}
		failures = 0
	}
}

func (w *Worker) beatEvery() time.Duration {
	seconds := w.session().HeartbeatSeconds
	if seconds <= 0 {
		seconds = protocol.DefaultLeaseSeconds / 3
	}
	return time.Duration(seconds * float64(time.Second))
}

// unparkIfDead gives the parked claim up when the link that should carry its
// answer is dead: it would wait out its half minute there.
func (w *Worker) unparkIfDead(err error) {
	var dead *client.Unreachable
	if !errors.As(err, &dead) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unpark()
}

// untilBeat waits for the next beat; false when ctx ended.
func (w *Worker) untilBeat(ctx context.Context, last time.Time, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-w.hurry:
		return client.Sleep(ctx, max(0, time.Second-time.Since(last))) == nil
	}
}

// beat sends one heartbeat with all leases in hand and acts on the answer.
func (w *Worker) beat(ctx context.Context, s registration) error {
	in := protocol.HeartbeatRequest{Leases: []protocol.HeartbeatLease{}}
	if w.options.Utilization != nil {
		in.Utilization = w.options.Utilization()
	}
	told := map[*Task]json.RawMessage{}
	for _, token := range w.tokens() {
		row := protocol.HeartbeatLease{LeaseToken: token}
		if t := w.task(token); t != nil {
			t.mu.Lock()
			row.Progress = t.progress
			t.mu.Unlock()
			told[t] = row.Progress
		}
		in.Leases = append(in.Leases, row)
	}
	var answer protocol.HeartbeatAnswer
	_, err := w.client.Do(ctx, client.Call{
		Method: http.MethodPost, Path: "/v1/workers/" + s.WorkerID + "/heartbeat", Headers: sessionHeader(s),
		In: in, Out: &answer, Timeout: max(2*time.Second, w.beatEvery()),
	})
	if err != nil {
		return err
	}
	for t, progress := range told {
		t.mu.Lock()
		if bytes.Equal(t.progress, progress) {
			t.progress = nil
		}
		t.mu.Unlock()
	}
	w.heard(answer)
	return nil
}

func (w *Worker) task(token string) *Task {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held[token]
}

// heard acts on a heartbeat's answer. A finished task's lease that is lost was
// settled in between, or its result will be refused: the outbox finds out.
func (w *Worker) heard(answer protocol.HeartbeatAnswer) {
	for _, row := range answer.Leases {
		for _, s := range row.Signals {
			w.signal(row.LeaseToken, s)
		}
		if row.State != protocol.LeaseLost {
			continue
		}
		if t := w.task(row.LeaseToken); t != nil && !t.isFinished() {
			w.options.Logger.Warn("lease lost", "task_id", t.TaskID)
			t.end(ErrLeaseLost)
		}
	}
	for _, word := range answer.Signals {
		if word == protocol.SignalDrain {
			w.finish(errServerDrain)
		}
	}
}

func (t *Task) isFinished() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.finished
}
