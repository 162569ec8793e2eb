package workers

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/protocol"
)

// Task is one attempt: what was claimed, and the ways to speak about it while
// it runs. Its methods are safe for use by several goroutines of the handler.
type Task struct {
	protocol.Lease

	worker  *Worker
	soft    chan struct{}
	want    chan struct{}
	signals chan protocol.Signal

	mu         sync.Mutex
	cancel     context.CancelCauseFunc
	cancelled  bool // the server asked for a cancel
	softOnce   bool
	finished   bool            // the handler has returned; the lease lives until the result is settled
	progress   json.RawMessage // not yet told
	checkpoint json.RawMessage // last known, told with the result too
	usage      *protocol.Usage
	items      *protocol.Items
	watermark  *protocol.Watermark
}

func newTask(w *Worker, lease protocol.Lease) *Task {
	return &Task{
		Lease: lease, worker: w,
		soft: make(chan struct{}), want: make(chan struct{}, 1), signals: make(chan protocol.Signal, 32),
	}
}

// Bind decodes the payload; what does not fit is the input's fault.
func (t *Task) Bind(into any) error {
	if len(t.Payload) == 0 {
		return nil
	}
	if err := json.Unmarshal(t.Payload, into); err != nil {
		return Errorf(protocol.ClassInvalidInput, "payload: %w", err)
	}
	return nil
}

// SoftTimeout is closed when the soft timeout has passed: time to wrap up.
func (t *Task) SoftTimeout() <-chan struct{} { return t.soft }

// CheckpointWanted receives when the server would like a checkpoint now.
func (t *Task) CheckpointWanted() <-chan struct{} { return t.want }

// Signals receives what somebody sent to this task by name. A handler that
// does not read loses the oldest beyond 32.
func (t *Task) Signals() <-chan protocol.Signal { return t.signals }

// Progress tells how far the task is; the latest value goes with the next
// heartbeat, which it brings forward to within a second.
func (t *Task) Progress(value any) error {
	raw, err := bounded("progress", value, protocol.MaxProgressBytes)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.progress = raw
	t.mu.Unlock()
	t.worker.hurryBeat()
	return nil
}

// SaveCheckpoint stores where the task stands and returns once the server has
// it: the next attempt starts with it. It waits out a server that is away.
func (t *Task) SaveCheckpoint(ctx context.Context, value any) error {
	raw, err := bounded("checkpoint", value, protocol.MaxCheckpointBytes)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.checkpoint = raw
	t.mu.Unlock()
	return t.call(ctx, "checkpoint", protocol.TaskCheckpoint{Checkpoint: raw}, nil)
}

// Log appends lines to the task's log. Losing the server does not fail the
// task: the error may be ignored.
func (t *Task) Log(ctx context.Context, level, message string) error {
	line := protocol.LogLine{At: protocol.At(time.Now()), Level: level, Message: message}
	return t.call(ctx, "logs", protocol.LogsRequest{Lines: []protocol.LogLine{line}}, nil)
}

// Spans reports stretches of the attempt's time, which show in its trace. A
// span sent again stays as it was. Losing the server does not fail the task:
// the error may be ignored.
func (t *Task) Spans(ctx context.Context, spans ...protocol.Span) error {
	for i := range spans {
		spans[i].Start, spans[i].End = protocol.At(spans[i].Start), protocol.At(spans[i].End)
	}
	return t.call(ctx, "spans", protocol.SpansRequest{Spans: spans}, nil)
}

// Spawn creates children of this task. A key that exists returns the child
// that has it, so a repeated attempt spawns nothing twice.
func (t *Task) Spawn(ctx context.Context, children ...protocol.Child) ([]protocol.ChildAnswer, error) {
	var answer protocol.ChildrenAnswer
	err := t.call(ctx, "children", protocol.ChildrenRequest{Tasks: children}, &answer)
	return answer.Data, err
}

// Usage changes what will be booked for this attempt, whatever its outcome.
func (t *Task) Usage(change func(*protocol.Usage)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.usage == nil {
		t.usage = &protocol.Usage{}
	}
	change(t.usage)
}

// ItemsDone counts items of a slice that are done; the server finds fault with
// a count that leaves some of them out. Without it all are done that were not
// reported as failed. It tells the server only for a task that was claimed
// with items.
func (t *Task) ItemsDone(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.itemsLocked().Done += n
}

// FailItem reports one item as failed, by its index within the claimed items;
// it is tried again alone while the task itself succeeds.
func (t *Task) FailItem(index int, err error) {
	own := classify(context.Background(), err)
	t.mu.Lock()
	defer t.mu.Unlock()
	items := t.itemsLocked()
	items.Failed = append(items.Failed, protocol.FailedItem{Index: index, Class: own.Class, Message: own.Message})
}

// itemsReport is what the server is told of the items, nil where there is
// nothing to say. The caller holds the lock.
func (t *Task) itemsReport() *protocol.Items {
	if len(t.Items) == 0 || t.items == nil {
		return nil
	}
	if t.items.Done == 0 {
		t.items.Done = len(t.Items) - len(t.items.Failed)
	}
	return t.items
}

// BindItems decodes the items that this attempt carries: of a first attempt all
// of the slice, of a later one those that are left.
func BindItems[T any](t *Task) ([]T, error) {
	items := make([]T, len(t.Items))
	for i, raw := range t.Items {
		if err := json.Unmarshal(raw, &items[i]); err != nil {
			return nil, Errorf(protocol.ClassInvalidInput, "items[%d]: %w", i, err)
		}
	}
	return items, nil
}

// EachItem runs a handler on the items of the attempt one after another, and
// reports each that fails by itself. It stops when ctx ends.
func EachItem[T any](ctx context.Context, t *Task, handler func(context.Context, T) error) error {
	for i, raw := range t.Items {
		if err := ctx.Err(); err != nil {
			return err
		}
		var item T
		if err := json.Unmarshal(raw, &item); err != nil {
			t.FailItem(i, Errorf(protocol.ClassInvalidInput, "items[%d]: %w", i, err))
			continue
		}
		if err := handler(ctx, item); err != nil {
			t.FailItem(i, err)
		}
	}
	return nil
}

func (t *Task) itemsLocked() *protocol.Items {
	if t.items == nil {
		t.items = &protocol.Items{Failed: []protocol.FailedItem{}}
	}
	return t.items
}

// MoveWatermark sets the watermark's value with the result, in the same
// commit, under the version this attempt was given.
func (t *Task) MoveWatermark(value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watermark = &protocol.Watermark{Value: raw}
	if t.Lease.Watermark != nil {
		t.watermark.Version = t.Lease.Watermark.Version
	}
	return nil
}

// call speaks in the single form, under this attempt's lease; it needs no
// session, so a change of session in between does not matter.
func (t *Task) call(ctx context.Context, verb string, in, out any) error {
	_, err := t.worker.client.Persist(ctx, client.Call{
		Method: http.MethodPost, Path: "/v1/tasks/" + t.TaskID + "/" + verb, In: in, Out: out,
		Headers: map[string]string{protocol.HeaderLease: t.LeaseToken}, Timeout: answerTimeout,
	})
	if client.Code(err) == protocol.CodeLeaseLost {
		t.end(ErrLeaseLost)
		return ErrLeaseLost
	}
	return err
}

// end ends the handler's context with the reason.
func (t *Task) end(reason error) {
	t.mu.Lock()
	cancel := t.cancel
	if reason == ErrCancelled {
		t.cancelled = true
	}
	t.mu.Unlock()
	if cancel != nil {
		cancel(reason)
	}
}

func bounded(what string, value any, most int) (json.RawMessage, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, Errorf(protocol.ClassInternal, "%s: %w", what, err)
	}
	if len(raw) > most {
		return nil, Errorf(protocol.ClassInternal, "%s has %d bytes, at most %d go through", what, len(raw), most)
	}
	return raw, nil
}
