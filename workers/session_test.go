package workers

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"nightshift/workers/client"
	"nightshift/workers/protocol"
	"nightshift/workers/workertest"
)

// A call sent under the old session may arrive after another loop of the same
// worker has registered anew: its refusal is not another process.
func TestOwnRegistrationIsNotAnotherProcess(t *testing.T) {
	s := workertest.New(t)
	w, err := New(Options{
		Server: s.URL, ClientID: workertest.ClientID, ClientSecret: workertest.ClientSecret, Name: "w", InstanceID: "w-1",
		KeepSignals: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Handle("slow", func(context.Context, *Task) (any, error) { return nil, nil })
	ctx, finish := context.WithCancelCause(context.Background())
	defer finish(nil)
	w.finish = finish
	if err := w.register(ctx, 0); err != nil {
		t.Fatal(err)
	}
	old := w.session()
	s.Forget()
	if err := w.register(ctx, old.number); err != nil {
		t.Fatal(err)
	}
	beat := func(as registration) error {
		_, err := w.client.Do(ctx, client.Call{
			Method: http.MethodPost, Path: "/v1/workers/" + as.WorkerID + "/heartbeat", Headers: sessionHeader(as),
			In: protocol.HeartbeatRequest{Leases: []protocol.HeartbeatLease{}},
		})
		return err
	}
	late := beat(old)
	if client.Code(late) != protocol.CodeSessionReplaced {
		t.Fatalf("the old session was answered %v", late)
	}
	w.recover(ctx, old, 0, late)
	if ctx.Err() != nil {
		t.Fatalf("the worker gave up: %v", context.Cause(ctx))
	}

	s.Replace("w-1")
	current := w.session()
	w.recover(ctx, current, 0, beat(current))
	if cause := context.Cause(ctx); !errors.Is(cause, ErrSessionReplaced) {
		t.Errorf("another process has taken the place, and the worker ends with %v", cause)
	}
}

// Left out, a list means all: a worker that was told of no models and permissions says that it has none.
func TestListsAreSaidEvenWhenEmpty(t *testing.T) {
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{}, `"models":[],"permissions":[]`},
		{Options{Models: []string{"small"}, Permissions: []string{"mail"}}, `"models":["small"],"permissions":["mail"]`},
	} {
		text, err := json.Marshal(c.options.registration([]string{"a"}))
		if err != nil || !strings.Contains(string(text), c.want) {
			t.Errorf("%s, %v", text, err)
		}
	}
}
