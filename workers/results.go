package workers

import (
	"context"
	"net/http"
	"sync"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/protocol"
)

// Bounds of one results call; a larger backlog takes several.
const (
	maxResultsACall     = 200
	maxResultBytesACall = 4 << 20
)

// answerTimeout is how long a call that needs no waiting may take before it is
// made again: the link may be dead, and repeating is safe.
const answerTimeout = 10 * time.Second

// outbox holds finished results until they are settled.
type outbox struct {
	mu      sync.Mutex
	waiting []protocol.Result
	news    chan struct{}
}

func newOutbox() *outbox { return &outbox{news: make(chan struct{}, 1)} }

func (o *outbox) put(results ...protocol.Result) {
	o.mu.Lock()
	o.waiting = append(o.waiting, results...)
	o.mu.Unlock()
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// take removes the next call's worth, at least one when any waits.
func (o *outbox) take() []protocol.Result {
	o.mu.Lock()
	defer o.mu.Unlock()
	bytes, n := 0, 0
	for n < len(o.waiting) && n < maxResultsACall {
		bytes += len(o.waiting[n].Result) + len(o.waiting[n].Checkpoint)
		if n > 0 && bytes > maxResultBytesACall {
			break
		}
		n++
	}
	batch := o.waiting[:n:n]
	o.waiting = o.waiting[n:]
	return batch
}

// sendLoop sends what is finished, in batches that grow by themselves while a
// call is under way.
func (w *Worker) sendLoop(ctx context.Context) {
	for {
		batch := w.outbox.take()
		if len(batch) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-w.outbox.news:
			}
			continue
		}
		if !w.settle(ctx, batch) {
			return
		}
	}
}

// settle sends a batch until the server accepts or refuses it; false when ctx
// ended first. A refusal of the whole call is narrowed down: each result goes
// alone, and one refused alone is reported as a failure that can be.
func (w *Worker) settle(ctx context.Context, batch []protocol.Result) bool {
	for n := 0; ctx.Err() == nil; n++ {
		s := w.session()
		var answer protocol.ResultsAnswer
		_, err := w.client.Do(ctx, client.Call{
			Method: http.MethodPost, Path: "/v1/workers/" + s.WorkerID + "/results", Headers: sessionHeader(s),
			In: protocol.ResultsRequest{Results: batch}, Out: &answer, Timeout: answerTimeout,
		})
		switch {
		case err == nil:
			w.settled(batch, answer)
			return true
		case badContent(err) && len(batch) > 1:
			for _, one := range batch {
				if !w.settle(ctx, []protocol.Result{one}) {
					return false
				}
			}
			return true
		case badContent(err):
			if !w.replace(batch, err) {
				return true
			}
		default:
			if client.Sleep(ctx, w.recover(ctx, s, n, err)) != nil {
				return false
			}
		}
	}
	return false
}

// badContent says that the server read the call and will never take it.
func badContent(err error) bool {
	switch client.Status(err) {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// replace turns a result the server will not take into a failure that says
// so; false when it was one already, and nothing is left to say.
func (w *Worker) replace(batch []protocol.Result, err error) bool {
	old := batch[0]
	if old.Status == protocol.StatusFailed && old.Error != nil && old.Error.ProviderResponse == nil && old.Checkpoint == nil {
		w.options.Logger.Error("the server refuses this result for good; its lease will run out", "error", err)
		w.drop(old.LeaseToken)
		return false
	}
	batch[0] = protocol.Result{
		LeaseToken: old.LeaseToken, Status: protocol.StatusFailed,
		Error: &protocol.Error{Class: protocol.ClassMalformedOutput, Message: clip("the server refused the result: "+err.Error(), 4<<10)},
	}
	return true
}

func (w *Worker) settled(batch []protocol.Result, answer protocol.ResultsAnswer) {
	for _, row := range answer.Results {
		if !row.Accepted {
			code := ""
			if row.Code != nil {
				code = *row.Code
			}
			w.options.Logger.Warn("result refused", "code", code)
		}
	}
	for _, result := range batch {
		w.drop(result.LeaseToken)
	}
}

func (w *Worker) drop(token string) {
	w.mu.Lock()
	delete(w.held, token)
	w.mu.Unlock()
}

// Unsettled is how many finished results wait for the server.
func (w *Worker) Unsettled() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held) - w.running
}
