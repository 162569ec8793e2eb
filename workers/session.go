package workers

import (
	"context"
	"net/http"
	"slices"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/protocol"
)

// WorkerID is the id the server gave at registration.
func (w *Worker) WorkerID() string { return w.session().WorkerID }

func (w *Worker) session() registration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current
}

func sessionHeader(s registration) map[string]string {
	return map[string]string{protocol.HeaderSession: s.Session}
}

// register gets a session. seen is the number of the session that was found
// gone: when another loop has replaced it already, there is nothing to do. The
// first registration (seen 0) returns what refuses it; a later one keeps
// trying, because work is in hand.
func (w *Worker) register(ctx context.Context, seen int) error {
	w.registering.Lock()
	defer w.registering.Unlock()
	if w.session().number != seen {
		return nil
	}
	for n := 0; ; n++ {
		in := w.options.registration(w.handled())
		in.Leases = w.tokens()
		var answer protocol.RegisterAnswer
		_, err := w.client.Do(ctx, client.Call{Method: http.MethodPost, Path: "/v1/workers", In: in, Out: &answer})
		if err == nil {
			w.accept(answer)
			return nil
		}
		if client.Code(err) == protocol.CodeInstanceConflict {
			w.finish(ErrInstanceConflict)
			return ErrInstanceConflict
		}
		if seen == 0 && !client.Temporary(err) {
			return err
		}
		w.options.Logger.Warn("not registered yet", "error", err)
		if stop := client.Sleep(ctx, client.Backoff(n, 5*time.Second, err)); stop != nil {
			return stop
		}
	}
}

// isCurrent says whether no loop of this worker has put another session in the
// place of s. It waits for a registration under way, whose session the server
// may know before its answer is here.
func (w *Worker) isCurrent(s registration) bool {
	w.registering.Lock()
	defer w.registering.Unlock()
	return w.session().number == s.number
}

func (w *Worker) accept(answer protocol.RegisterAnswer) {
	w.mu.Lock()
	w.current = registration{answer, w.current.number + 1}
	w.mu.Unlock()
	w.options.Logger.Info("registered", "worker_id", answer.WorkerID, "lease_seconds", answer.LeaseSeconds)
}

// tokens lists every lease in hand, in a fixed order.
func (w *Worker) tokens() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	tokens := make([]string, 0, len(w.held))
	for token := range w.held {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	return tokens
}

// recover does what a failed worker call asks for and answers how long to
// wait before the next try: registers again when the server does not know
// this worker, stops when the session was replaced.
func (w *Worker) recover(ctx context.Context, s registration, n int, err error) time.Duration {
	switch client.Code(err) {
	case protocol.CodeSessionReplaced:
		if w.isCurrent(s) {
			w.finish(ErrSessionReplaced)
		}
		return 0
	case protocol.CodeNotFound:
		w.options.Logger.Warn("the server does not know this worker; registering again")
		if w.register(ctx, s.number) == nil && n == 0 {
			return 0
		}
	default:
		if ctx.Err() == nil {
			w.options.Logger.Warn("call failed", "error", err, "try", n+1)
		}
	}
	return client.Backoff(n, 5*time.Second, err)
}
