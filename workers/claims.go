package workers

import (
	"context"
	"net/http"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/protocol"
)

// claimLoop keeps one claim parked at the server while there is room. It ends
// with ctx; what it claimed runs on under life.
func (w *Worker) claimLoop(ctx, life context.Context) {
	failures := 0
	for ctx.Err() == nil {
		room := w.room()
		if room == 0 {
			select {
			case <-ctx.Done():
			case <-w.freed:
			}
			continue
		}
		s := w.session()
		answer, err := w.claim(ctx, s, room)
		if err != nil {
			wait := w.recover(ctx, s, failures, err)
			failures++
			if client.Sleep(ctx, wait) != nil {
				return
			}
			continue
		}
		failures = 0
		w.take(ctx, life, answer)
	}
}

func (w *Worker) room() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, min(protocol.MaxClaimTasks, w.options.slots().Total()-w.running))
}

func (w *Worker) claim(ctx context.Context, s registration, room int) (protocol.ClaimAnswer, error) {
	wait := int(w.options.ClaimWait / time.Second)
	ctx, give := context.WithCancel(ctx)
	defer give()
	w.mu.Lock()
	w.unpark = give
	w.mu.Unlock()
	var answer protocol.ClaimAnswer
	_, err := w.client.Do(ctx, client.Call{
		Method: http.MethodPost, Path: "/v1/workers/" + s.WorkerID + "/claim", Headers: sessionHeader(s),
		In:  protocol.ClaimRequest{MaxTasks: &room, WaitSeconds: &wait},
		Out: &answer, Timeout: w.options.ClaimWait + 10*time.Second,
	})
	return answer, err
}

// take starts what was claimed. A claim that arrives while stopping is given
// back untouched.
func (w *Worker) take(ctx, life context.Context, answer protocol.ClaimAnswer) {
	tasks := make([]*Task, 0, len(answer.Tasks))
	w.mu.Lock()
	for _, lease := range answer.Tasks {
		if w.held[lease.LeaseToken] != nil {
			continue
		}
		t := newTask(w, lease)
		w.held[lease.LeaseToken] = t
		w.running++
		tasks = append(tasks, t)
	}
	w.mu.Unlock()
	for _, signal := range answer.Signals {
		w.signal(signal.LeaseToken, signal.Signal)
	}
	for _, t := range tasks {
		if ctx.Err() != nil {
			w.finished(t, protocol.Result{LeaseToken: t.LeaseToken, Status: protocol.StatusReleased})
			continue
		}
		go func() { w.finished(t, w.execute(life, t)) }()
	}
}

// finished frees the slot and hands the result to the outbox. The lease stays
// in hand, and is renewed, until the result is settled.
func (w *Worker) finished(t *Task, result protocol.Result) {
	t.mu.Lock()
	t.finished = true
	t.mu.Unlock()
	w.outbox.put(result)
	w.mu.Lock()
	w.running--
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

// signal delivers one signal to the task that holds the lease.
func (w *Worker) signal(token string, s protocol.Signal) {
	w.mu.Lock()
	t := w.held[token]
	w.mu.Unlock()
	if t == nil {
		return
	}
	if !s.Word {
		t.deliver(s)
		return
	}
	switch s.Name {
	case protocol.SignalCancel:
		t.end(ErrCancelled)
	case protocol.SignalSoftTimeout:
		t.mu.Lock()
		if !t.softOnce {
			t.softOnce = true
			close(t.soft)
		}
		t.mu.Unlock()
	case protocol.SignalCheckpoint:
		select {
		case t.want <- struct{}{}:
		default:
		}
	}
}

// deliver drops the oldest when the handler does not read.
func (t *Task) deliver(s protocol.Signal) {
	for {
		select {
		case t.signals <- s:
			return
		default:
		}
		select {
		case <-t.signals:
		default:
		}
	}
}
