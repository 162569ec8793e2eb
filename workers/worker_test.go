package workers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nightshift/workers"
	"nightshift/workers/client"
	"nightshift/workers/protocol"
	"nightshift/workers/workertest"
)

type sum struct{ A, B int }

// start runs a worker until the test ends and answers a function that waits
// for the end of Run.
func start(t *testing.T, s *workertest.Server, change func(*workers.Options), handle func(*workers.Worker)) (stop func() error) {
	t.Helper()
	o := workers.Options{
		Server: s.URL, ClientID: workertest.ClientID, ClientSecret: workertest.ClientSecret,
		Name: "w", InstanceID: "w-1", Slots: 2, LeaseSeconds: 3, KeepSignals: true, DrainTimeout: workertest.Patience,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if change != nil {
		change(&o)
	}
	w, err := workers.New(o)
	if err != nil {
		t.Fatal(err)
	}
	handle(w)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	var result error
	done := false
	stop = func() error {
		cancel()
		if !done {
			select {
			case result = <-ended:
			case <-time.After(2 * workertest.Patience):
				result = errors.New("Run did not end")
			}
			done = true
		}
		return result
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// received waits for what must come.
func received[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(workertest.Patience):
		t.Fatal("nothing came")
	}
	return v
}

// run runs a worker that ends by itself.
func run(t *testing.T, w *workers.Worker) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), workertest.Patience)
	defer cancel()
	err := w.Run(ctx)
	if ctx.Err() != nil {
		t.Fatal("Run did not end by itself")
	}
	return err
}

func adding(w *workers.Worker) {
	workers.HandleTyped(w, "math.add", func(_ context.Context, _ *workers.Task, in sum) (int, error) { return in.A + in.B, nil })
}

// blocking makes a handler that reports each start and waits for a go.
func blocking(started chan<- *workers.Task, release <-chan struct{}) func(*workers.Worker) {
	return func(w *workers.Worker) {
		w.Handle("slow", func(ctx context.Context, task *workers.Task) (any, error) {
			started <- task
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-release:
				return "done", nil
			}
		})
	}
}

func TestTasksAreExecutedAndSettled(t *testing.T) {
	s := workertest.New(t)
	stop := start(t, s, nil, adding)
	var tasks []*workertest.Task
	for i := range 50 {
		tasks = append(tasks, s.Submit("math.add", sum{i, 1}))
	}
	for i, task := range tasks {
		s.AwaitState(task, "succeeded")
		if got := string(task.Outcomes[0].Result); got != fmt.Sprint(i+1) || len(task.Outcomes) != 1 {
			t.Errorf("%d + 1 gave %s in %d outcomes", i, got, len(task.Outcomes))
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if s.Calls("delete") != 1 {
		t.Error("the worker left without a goodbye")
	}
}

func TestFailuresCarryClassAndStack(t *testing.T) {
	s := workertest.New(t)
	start(t, s, nil, func(w *workers.Worker) {
		workers.HandleTyped(w, "typed", func(context.Context, *workers.Task, sum) (int, error) { return 0, nil })
		w.Handle("fail.class", func(context.Context, *workers.Task) (any, error) {
			err := workers.Errorf(protocol.ClassRateLimited, "come back: %w", io.EOF)
			err.RetryAfter = 7 * time.Second
			return nil, fmt.Errorf("asking: %w", err)
		})
		w.Handle("fail.panic", func(context.Context, *workers.Task) (any, error) { panic("lost my head") })
		w.Handle("fail.huge", func(context.Context, *workers.Task) (any, error) { return make([]byte, 2<<20), nil })
		w.Handle("fail.hard", func(ctx context.Context, _ *workers.Task) (any, error) { <-ctx.Done(); return nil, ctx.Err() })
	})
	hard := 0.05
	for _, c := range []struct {
		task  *workertest.Task
		class string
	}{
		{s.Submit("typed", "not an object"), protocol.ClassInvalidInput},
		{s.Submit("fail.class", nil), protocol.ClassRateLimited},
		{s.Submit("fail.panic", nil), protocol.ClassInternal},
		{s.Submit("fail.huge", nil), protocol.ClassMalformedOutput},
		{s.Submit("fail.hard", nil, func(l *protocol.Lease) { l.Timeout.HardSeconds = &hard }), protocol.ClassTimeout},
	} {
		s.AwaitState(c.task, "dead_letter")
		result := c.task.Outcomes[0]
		if result.Error.Class != c.class {
			t.Errorf("%s: class %s, want %s (%s)", c.task.Lease.Type, result.Error.Class, c.class, result.Error.Message)
		}
		if c.task.Lease.Type == "fail.panic" && result.Error.Stack == "" {
			t.Error("a panic came without its stack")
		}
		if c.task.Lease.Type == "fail.class" && (result.RetryAfterSeconds == nil || *result.RetryAfterSeconds != 7) {
			t.Error("the provider's wait was lost")
		}
	}
}

func TestFinishedResultSurvivesServerRestart(t *testing.T) {
	s := workertest.New(t)
	started, release := make(chan *workers.Task, 1), make(chan struct{})
	start(t, s, func(o *workers.Options) { o.LeaseSeconds = 30 }, blocking(started, release))
	task := s.Submit("slow", nil)
	received(t, started)
	s.Stop()
	close(release) // finishes while nobody listens
	time.AfterFunc(700*time.Millisecond, func() { s.Start(); s.Answer(503, 500, 503) })
	s.AwaitState(task, "succeeded")
	if task.Attempts != 1 || len(task.Outcomes) != 1 {
		t.Errorf("%d attempts, %d outcomes", task.Attempts, len(task.Outcomes))
	}
}

func TestUnknownWorkerRegistersAgainWithItsLeases(t *testing.T) {
	s := workertest.New(t)
	started, release := make(chan *workers.Task, 1), make(chan struct{})
	start(t, s, nil, blocking(started, release))
	task := s.Submit("slow", nil)
	received(t, started)
	s.Forget()
	s.Await("a second registration", func() bool { return task.Expires.After(time.Now()) && s.Registered("w-1") })
	close(release)
	s.AwaitState(task, "succeeded")
	if task.Attempts != 1 {
		t.Errorf("the lease was lost on the way: %d attempts", task.Attempts)
	}
}

func TestReplacedSessionStopsWithAClearError(t *testing.T) {
	s := workertest.New(t)
	started, cause := make(chan *workers.Task, 1), make(chan error, 1)
	w, err := workers.New(workers.Options{
		Server: s.URL, ClientID: workertest.ClientID, ClientSecret: workertest.ClientSecret, Name: "w", InstanceID: "w-1",
		LeaseSeconds: 2, KeepSignals: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Handle("slow", func(ctx context.Context, task *workers.Task) (any, error) {
		started <- task
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	s.Submit("slow", nil)
	go func() { <-started; s.Replace("w-1") }()
	if err := run(t, w); !errors.Is(err, workers.ErrSessionReplaced) {
		t.Errorf("Run ended with %v", err)
	}
	if got := received(t, cause); !errors.Is(got, workers.ErrSessionReplaced) {
		t.Errorf("the handler's context ended with %v", got)
	}
}

func TestRefusedRegistrationIsReturned(t *testing.T) {
	s := workertest.New(t)
	w, err := workers.New(workers.Options{
		Server: s.URL, ClientID: workertest.ClientID, ClientSecret: "wrong", Name: "w", KeepSignals: true,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	adding(w)
	if err := run(t, w); client.Code(err) != protocol.CodeInvalidClient {
		t.Errorf("Run ended with %v", err)
	}
}

func TestInstanceConflictIsReturned(t *testing.T) {
	s := workertest.New(t)
	s.Conflict("w-1")
	w, err := workers.New(workers.Options{
		Server: s.URL, ClientID: workertest.ClientID, ClientSecret: workertest.ClientSecret, Name: "w", InstanceID: "w-1",
		LeaseSeconds: 2, KeepSignals: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	adding(w)
	if err := run(t, w); !errors.Is(err, workers.ErrInstanceConflict) {
		t.Errorf("Run ended with %v", err)
	}
}

func TestTokensAreRenewed(t *testing.T) {
	s := workertest.New(t)
	s.TokenLife = time.Second
	start(t, s, nil, adding)
	s.AwaitState(s.Submit("math.add", sum{1, 1}), "succeeded")
	s.ExpireTokens() // revoked before its time
	s.AwaitState(s.Submit("math.add", sum{1, 2}), "succeeded")
	s.Await("a renewal by age", func() bool { return s.CallsLocked("token") >= 3 })
}

func TestLeasesAreRenewedWhileTasksRun(t *testing.T) {
	s := workertest.New(t)
	started, release := make(chan *workers.Task, 1), make(chan struct{})
	start(t, s, func(o *workers.Options) { o.LeaseSeconds = 2 }, blocking(started, release))
	task := s.Submit("slow", nil)
	received(t, started)
	before := s.Calls("heartbeat")
	s.Lock()
	first := task.Expires
	s.Unlock()
	s.Await("more beats than one lease holds", func() bool { return s.CallsLocked("heartbeat") > before+4 })
	s.Await("the lease to be renewed", func() bool { return task.Expires.After(first) })
	close(release)
	s.AwaitState(task, "succeeded")
	if task.Attempts != 1 {
		t.Errorf("the lease ran out: %d attempts", task.Attempts)
	}
}

func TestLeaseLostEndsTheHandler(t *testing.T) {
	s := workertest.New(t)
	started := make(chan *workers.Task, 2)
	cause := make(chan error, 2)
	start(t, s, nil, func(w *workers.Worker) {
		w.Handle("slow", func(ctx context.Context, task *workers.Task) (any, error) {
			started <- task
			if task.Attempt > 1 {
				return "second", nil
			}
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil, ctx.Err()
		})
	})
	task := s.Submit("slow", nil)
	received(t, started)
	s.Steal(task)
	if got := received(t, cause); !errors.Is(got, workers.ErrLeaseLost) {
		t.Errorf("the context ended with %v", got)
	}
	s.AwaitState(task, "succeeded")
	s.Await("the stale result to be refused", func() bool { return task.Refused == 1 })
}

func TestSignalsReachTheHandler(t *testing.T) {
	s := workertest.New(t)
	heard := make(chan string, 4)
	start(t, s, nil, func(w *workers.Worker) {
		w.Handle("slow", func(ctx context.Context, task *workers.Task) (any, error) {
			heard <- "start"
			<-task.SoftTimeout()
			<-task.CheckpointWanted()
			named := <-task.Signals()
			heard <- named.Name + string(named.Data)
			<-ctx.Done()
			return nil, ctx.Err()
		})
	})
	task := s.Submit("slow", nil)
	received(t, heard)
	s.Signal(task, protocol.WordSignal(protocol.SignalSoftTimeout))
	s.Signal(task, protocol.WordSignal(protocol.SignalCheckpoint))
	s.Signal(task, protocol.Signal{Name: "note", Data: []byte(`{"n":1}`)})
	if got := received(t, heard); got != `note{"n":1}` {
		t.Errorf("heard %s", got)
	}
	s.Signal(task, protocol.WordSignal(protocol.SignalCancel))
	s.AwaitState(task, "cancelled")
}

func TestCheckpointProgressLogsAndChildren(t *testing.T) {
	s := workertest.New(t)
	start(t, s, nil, func(w *workers.Worker) {
		w.Handle("long", func(ctx context.Context, task *workers.Task) (any, error) {
			if task.Attempt == 1 {
				if err := task.SaveCheckpoint(ctx, map[string]int{"at": 40}); err != nil {
					return nil, err
				}
				if err := task.Log(ctx, "info", "half way"); err != nil {
					return nil, err
				}
				if err := task.Spans(ctx, protocol.Span{Name: "first half", Start: time.Now(), End: time.Now()}); err != nil {
					return nil, err
				}
				if _, err := task.Spawn(ctx, protocol.Child{Key: "a", TaskSpec: protocol.TaskSpec{Type: "math.add"}}); err != nil {
					return nil, err
				}
				return nil, workers.ErrReleased
			}
			if err := task.Progress(map[string]int{"percent": 90}); err != nil {
				return nil, err
			}
			if len(task.Checkpoint) == 0 {
				return nil, errors.New("no checkpoint came with the claim")
			}
			task.ItemsDone(2)
			task.FailItem(1, workers.Errorf(protocol.ClassNotFound, "gone"))
			task.Usage(func(u *protocol.Usage) { n := int64(9); u.TokensIn = &n })
			select {
			case <-task.Signals():
			case <-ctx.Done():
			}
			return task.Checkpoint, nil
		})
	})
	task := s.Submit("long", nil, func(l *protocol.Lease) { l.Items = []json.RawMessage{[]byte(`1`), []byte(`2`)} })
	s.Await("progress", func() bool { return string(task.Progress) == `{"percent":90}` })
	s.Signal(task, protocol.Signal{Name: "go"})
	s.AwaitState(task, "succeeded")
	last := task.Outcomes[len(task.Outcomes)-1]
	if string(last.Result) != `{"at":40}` || last.Items.Done != 2 || last.Items.Failed[0].Class != protocol.ClassNotFound || *last.Usage.TokensIn != 9 {
		t.Errorf("reported %+v", last)
	}
	if len(task.Children) != 1 || len(task.Logs) != 1 || len(task.Spans) != 1 {
		t.Errorf("%d children, %d log lines, %d spans", len(task.Children), len(task.Logs), len(task.Spans))
	}
}

func TestItemsAreReportedOneByOne(t *testing.T) {
	s := workertest.New(t)
	start(t, s, nil, func(w *workers.Worker) {
		w.Handle("each", func(ctx context.Context, task *workers.Task) (any, error) {
			return nil, workers.EachItem(ctx, task, func(_ context.Context, n int) error {
				if n == 2 {
					return workers.Errorf(protocol.ClassNetwork, "two is away")
				}
				return nil
			})
		})
		w.Handle("all", func(_ context.Context, task *workers.Task) (any, error) { return workers.BindItems[int](task) })
	})
	three := func(l *protocol.Lease) {
		l.Items = []json.RawMessage{[]byte(`1`), []byte(`2`), []byte(`"three"`)}
	}
	each, all := s.Submit("each", nil, three), s.Submit("all", nil, func(l *protocol.Lease) { l.Items = []json.RawMessage{[]byte(`4`), []byte(`5`)} })
	s.AwaitState(each, "succeeded")
	if got := each.Outcomes[0].Items; got.Done != 1 || len(got.Failed) != 2 || got.Failed[0].Index != 1 || got.Failed[0].Class != protocol.ClassNetwork ||
		got.Failed[1].Index != 2 || got.Failed[1].Class != protocol.ClassInvalidInput {
		t.Errorf("reported %+v", got)
	}
	s.AwaitState(all, "succeeded")
	if got := all.Outcomes[0]; string(got.Result) != `[4,5]` || got.Items != nil {
		t.Errorf("reported %+v", got)
	}
}

func TestDrainLetsWorkFinish(t *testing.T) {
	s := workertest.New(t)
	started, release := make(chan *workers.Task, 1), make(chan struct{})
	stop := start(t, s, nil, blocking(started, release))
	task, waiting := s.Submit("slow", nil), s.Submit("math.add", sum{})
	received(t, started)
	time.AfterFunc(300*time.Millisecond, func() { close(release) })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if task.State != "succeeded" || waiting.Attempts != 0 {
		t.Errorf("running one: %s; waiting one was started %d times", task.State, waiting.Attempts)
	}
}

func TestDrainGivesBackWhatDoesNotFinish(t *testing.T) {
	s := workertest.New(t)
	started := make(chan *workers.Task, 1)
	stop := start(t, s, func(o *workers.Options) { o.DrainTimeout = 200 * time.Millisecond }, blocking(started, nil))
	task := s.Submit("slow", nil)
	received(t, started)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if task.State != "ready" || task.Outcomes[0].Status != protocol.StatusReleased {
		t.Errorf("task %s, outcomes %+v", task.State, task.Outcomes)
	}
}

func TestServerDrainEndsRun(t *testing.T) {
	s := workertest.New(t)
	w, err := workers.New(workers.Options{
		Server: s.URL, ClientID: workertest.ClientID, ClientSecret: workertest.ClientSecret, Name: "w", LeaseSeconds: 2,
		KeepSignals: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	adding(w)
	s.Drain()
	if err := run(t, w); err != nil {
		t.Error(err)
	}
}

func TestSIGTERMDrains(t *testing.T) {
	s := workertest.New(t)
	started, release := make(chan *workers.Task, 1), make(chan struct{})
	stop := start(t, s, func(o *workers.Options) { o.KeepSignals = false }, blocking(started, release))
	task := s.Submit("slow", nil)
	received(t, started)
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.Await("drain is announced", func() bool { return s.CallsLocked("drain") == 1 })
	close(release)
	s.AwaitState(task, "succeeded")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// One result the server will never take must not hold up the others.
func TestRefusedResultDoesNotBlockTheRest(t *testing.T) {
	s := workertest.New(t)
	var n atomic.Int32
	start(t, s, nil, func(w *workers.Worker) {
		w.Handle("one", func(context.Context, *workers.Task) (any, error) { return n.Add(1), nil })
	})
	first := s.Submit("one", nil)
	s.AwaitState(first, "succeeded")
	s.RefuseResults(http.StatusUnprocessableEntity, "2")
	second, third := s.Submit("one", nil), s.Submit("one", nil)
	s.Await("both to end", func() bool {
		return second.State != "ready" && second.State != "running" && third.State != "ready" && third.State != "running"
	})
	states := map[string]int{second.State: 1}
	states[third.State]++
	if states["succeeded"] != 1 || states["dead_letter"] != 1 {
		t.Errorf("ended as %v", states)
	}
}
