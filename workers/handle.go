package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"nightshift/workers/protocol"
)

// Handler executes one attempt. What it returns is the task's result, encoded
// as JSON, at most 1 MB; larger things belong in a store and the result names
// them.
type Handler func(ctx context.Context, task *Task) (any, error)

// Handle sets the handler of a task type, or of all types with a prefix when
// pattern ends in "*". It must be called before Run.
func (w *Worker) Handle(pattern string, handler Handler) { w.handlers[pattern] = handler }

// HandleTyped is Handle with the payload decoded into In.
func HandleTyped[In, Out any](w *Worker, pattern string, handler func(context.Context, *Task, In) (Out, error)) {
	w.Handle(pattern, func(ctx context.Context, task *Task) (any, error) {
		var in In
		if err := task.Bind(&in); err != nil {
			return nil, err
		}
		return handler(ctx, task, in)
	})
}

func (w *Worker) handled() []string {
	patterns := make([]string, 0, len(w.handlers))
	for pattern := range w.handlers {
		patterns = append(patterns, pattern)
	}
	slices.Sort(patterns)
	return patterns
}

// handlerFor finds the exact type, else the longest prefix.
func (w *Worker) handlerFor(taskType string) Handler {
	if h := w.handlers[taskType]; h != nil {
		return h
	}
	var found Handler
	longest := -1
	for pattern, h := range w.handlers {
		prefix, open := strings.CutSuffix(pattern, "*")
		if open && strings.HasPrefix(taskType, prefix) && len(prefix) > longest {
			found, longest = h, len(prefix)
		}
	}
	return found
}

// execute runs the handler to its end and answers the result to report. The
// context it gets outlives a server that is away: nothing but a signal, a lost
// lease, the hard timeout or the end of a drain stops it.
func (w *Worker) execute(parent context.Context, t *Task) protocol.Result {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	if s := t.Timeout.HardSeconds; s != nil && *s > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, time.Duration(*s*float64(time.Second)), ErrHardTimeout)
		defer stop()
	}
	t.mu.Lock()
	t.cancel = cancel
	cancelled := t.cancelled
	t.mu.Unlock()
	if cancelled { // the signal came with the claim
		cancel(ErrCancelled)
	}
	value, err := w.guarded(ctx, t)
	return t.outcome(ctx, value, err)
}

// guarded turns a panic into an error with its stack.
func (w *Worker) guarded(ctx context.Context, t *Task) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Class: protocol.ClassInternal, Message: fmt.Sprintf("panic: %v", p), Stack: string(debug.Stack())}
		}
	}()
	handler := w.handlerFor(t.Type)
	if handler == nil {
		return nil, Errorf(protocol.ClassInternal, "this worker has no handler for %s", t.Type)
	}
	return handler(ctx, t)
}

func (t *Task) outcome(ctx context.Context, value any, err error) protocol.Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := protocol.Result{LeaseToken: t.LeaseToken, Usage: t.usage, Checkpoint: t.checkpoint}
	switch {
	case err == nil:
		raw, failure := encode(value)
		if failure != nil {
			out.Status, out.Error = protocol.StatusFailed, failure
			return out
		}
		out.Status, out.Result, out.Watermark = protocol.StatusSucceeded, raw, t.watermark
		out.Items = t.itemsReport()
	case errors.Is(err, ErrReleased), errors.Is(context.Cause(ctx), ErrDraining):
		out.Status = protocol.StatusReleased
	case errors.Is(err, ErrSuspended):
		out.Status = protocol.StatusSuspended
	case t.cancelled:
		out.Status = protocol.StatusCancelled
	default:
		own := classify(ctx, err)
		out.Status = protocol.StatusFailed
		out.Error = &protocol.Error{
			Class: own.Class, Message: clip(own.Message, 8<<10), Stack: clip(own.Stack, 32<<10),
			ProviderResponse: own.ProviderResponse,
		}
		if own.RetryAfter > 0 {
			seconds := own.RetryAfter.Seconds()
			out.RetryAfterSeconds = &seconds
		}
	}
	return out
}

func encode(value any) (json.RawMessage, *protocol.Error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, &protocol.Error{Class: protocol.ClassMalformedOutput, Message: "the result is not JSON: " + err.Error()}
	}
	if len(raw) > protocol.MaxResultBytes {
		return nil, &protocol.Error{Class: protocol.ClassMalformedOutput, Message: fmt.Sprintf(
			"the result has %d bytes, at most %d go through; store it and return a reference", len(raw), protocol.MaxResultBytes)}
	}
	return raw, nil
}

// clip keeps evidence within what a row holds, cut at a whole rune.
func clip(text string, most int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
