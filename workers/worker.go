package workers

import (
	"context"
	"errors"
	"net/http"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/protocol"
)

// Worker is one registered process. Make it with New, give it handlers, Run it
// once.
type Worker struct {
	options  Options
	client   *client.Client
	handlers map[string]Handler

	mu      sync.Mutex
	current registration
	held    map[string]*Task // by lease token, until settled
	running int
	freed   chan struct{} // a slot came free
	hurry   chan struct{} // a beat is wanted early
	unpark  func()        // gives the parked claim up, so that it is made anew

	registering sync.Mutex
	outbox      *outbox
	finish      context.CancelCauseFunc // stops claims; the cause says why
}

// registration is a session with its running number, by which two loops that
// find it gone together register once.
type registration struct {
	protocol.RegisterAnswer
	number int
}

// New checks the options; it does not call the server.
func New(o Options) (*Worker, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := o.client()
	if err != nil {
		return nil, err
	}
	return &Worker{
		options: o, client: c, handlers: map[string]Handler{}, held: map[string]*Task{},
		freed: make(chan struct{}, 1), hurry: make(chan struct{}, 1), outbox: newOutbox(), unpark: func() {},
	}, nil
}

var errServerDrain = errors.New("the server asked this worker to drain")

// Run registers, claims and executes until ctx ends, SIGTERM or SIGINT comes,
// or the server asks for a drain; then it drains and returns nil. It returns
// an error when the first registration is refused or the session was replaced.
func (w *Worker) Run(ctx context.Context) error {
	if len(w.handlers) == 0 {
		return errors.New("a worker needs at least one handler")
	}
	if !w.options.KeepSignals {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
		// Once draining has begun a second signal ends the process at once.
		context.AfterFunc(ctx, stop)
		defer stop()
	}
	claiming, finish := context.WithCancelCause(ctx)
	defer finish(nil)
	w.finish = finish
	if err := w.register(claiming, 0); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	// What runs must outlive the end of ctx by the drain, so it has its own.
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	beating, stopBeating := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBeating()

	var loops sync.WaitGroup
	loops.Go(func() { w.beatLoop(beating) })
	loops.Go(func() { w.sendLoop(beating) })
	w.claimLoop(claiming, life)
	err := fatal(context.Cause(claiming))
	if err == nil {
		w.drain(end)
	} else {
		end(err)
	}
	stopBeating()
	loops.Wait()
	if err == nil {
		w.deregister()
	}
	return err
}

// fatal picks the ends that no drain mends.
func fatal(cause error) error {
	if errors.Is(cause, ErrSessionReplaced) || errors.Is(cause, ErrInstanceConflict) {
		return cause
	}
	return nil
}

// drain lets what runs finish, then gives the rest back, and waits until every
// result is settled or time is up.
func (w *Worker) drain(end context.CancelCauseFunc) {
	w.options.Logger.Info("draining", "running", w.heldCount())
	ctx, cancel := context.WithTimeout(context.Background(), w.options.DrainTimeout)
	defer cancel()
	w.tell(ctx, http.MethodPost, "/drain")
	if w.waitIdle(ctx) {
		return
	}
	end(ErrDraining)
	late, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	if !w.waitIdle(late) {
		w.options.Logger.Warn("stopped with work unsettled; its leases will run out", "held", w.heldCount())
	}
}

// waitIdle waits until nothing is held.
func (w *Worker) waitIdle(ctx context.Context) bool {
	for w.heldCount() > 0 {
		if client.Sleep(ctx, 20*time.Millisecond) != nil {
			return w.heldCount() == 0
		}
	}
	return true
}

func (w *Worker) heldCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held)
}

// deregister says goodbye, so that the server need not wait for a silence.
func (w *Worker) deregister() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	w.tell(ctx, http.MethodDelete, "")
}

func (w *Worker) tell(ctx context.Context, method, verb string) {
	s := w.session()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	_, err := w.client.Do(ctx, client.Call{
		Method: method, Path: "/v1/workers/" + s.WorkerID + verb, Headers: sessionHeader(s),
	})
	if err != nil {
		w.options.Logger.Debug("goodbye not heard", "error", err)
	}
}
