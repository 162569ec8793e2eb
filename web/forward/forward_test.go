package forward

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// brain is a Door that remembers what it was asked and does each id once.
type brain struct {
	mu     sync.Mutex
	asked  []engine.Command
	done   map[models.ID]int
	answer func(ctx context.Context, cmd *engine.Command) (*engine.Answer, error)
}

func (b *brain) Do(ctx context.Context, cmd *engine.Command) (*engine.Answer, error) {
	b.mu.Lock()
	b.asked = append(b.asked, *cmd)
	if b.done == nil {
		b.done = map[models.ID]int{}
	}
	if !cmd.Resent || b.done[cmd.ID] == 0 {
		b.done[cmd.ID]++
	}
	answer := b.answer
	b.mu.Unlock()
	if answer == nil {
		return &engine.Answer{Batch: 1}, nil
	}
	return answer(ctx, cmd)
}

func (b *brain) commands() []engine.Command {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]engine.Command(nil), b.asked...)
}

// replica serves a Door as another replica does; every request first passes through gate, which may spoil it.
func replica(t *testing.T, door engine.Door, gate func(w http.ResponseWriter, next func())) *httptest.Server {
	handle := Handler(door, func(token string) error {
		if token != "for the brain" {
			return errors.New("no")
		}
		return nil
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != Path {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		serve := func() {
			status, out := handle(r.Context(), body, SenderOf(r.Header.Get))
			w.WriteHeader(status)
			_, _ = w.Write(out)
		}
		if gate == nil {
			serve()
			return
		}
		gate(w, serve)
	}))
	t.Cleanup(s.Close)
	return s
}

// received waits for what must come, however slow the machine.
func received[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
	}
	return v
}

func token(context.Context) (string, error) { return "for the brain", nil }

func at(address string) func() (bool, string) {
	return func() (bool, string) { return false, address }
}

func here() (bool, string) { return true, "" }

func submit() *engine.Command {
	return &engine.Command{ID: newID(), Tenant: 3, Submit: &engine.Submit{Env: 1, Tasks: []engine.NewTask{{
		ID: newID(), Class: models.Class{Type: "text.embed", Selector: map[string]string{"zone": "a"}}, Priority: 7,
		Input: json.RawMessage(`{"type":"text.embed"}`), Payload: json.RawMessage(`{"text":"a<b & c> d","n":12345678901234567890}`),
		DependsOn: []engine.Dependency{{Task: newID(), On: models.OnFinished}}, Labels: []models.Label{{Key: "k", Value: "v"}},
	}}, Workflow: &engine.NewWorkflow{ID: newID(), Name: "night"}}}
}

func TestACommandArrivesAsItWasSent(t *testing.T) {
	b := &brain{}
	d := New(Options{Role: at(replica(t, b, nil).URL), Token: token})
	worker := models.Worker{ID: newID(), Session: newID(), KindSlots: map[string]int32{"io": 200}, GPUs: []models.GPUCard{{VRAMMB: 24000}}}
	slots := int32(2)
	sent := []*engine.Command{
		submit(),
		{ID: newID(), Actor: models.Actor{Kind: "worker", ID: "w"}, Register: &engine.Register{Worker: worker, Leases: []models.ID{newID()}}},
		{ID: newID(), Settle: &engine.Settle{Results: []engine.Result{{Token: newID(), Outcome: models.AttemptFailed, Error: &models.TaskError{Class: "timeout"}}}}},
		{ID: newID(), Configure: &engine.Configure{Lane: &models.Lane{Env: 1, Name: "io"}, Version: -1, Once: &engine.Once{Scope: "s", Key: "k"}}},
		{ID: newID(), Look: &engine.Look{Explain: &models.TaskRef{Env: 1, ID: newID()}}},
		{ID: newID(), Claim: &engine.Claim{Worker: newID(), Most: 5, Free: &engine.Free{Slots: &slots}}},
	}
	for _, cmd := range sent {
		if _, err := d.Do(t.Context(), cmd); err != nil {
			t.Fatal(err)
		}
	}
	for i, got := range b.commands() {
		if !reflect.DeepEqual(&got, sent[i]) {
			t.Errorf("sent %+v\ngot  %+v", sent[i], &got)
		}
	}
}

func TestAnswersAndRefusalsComeBack(t *testing.T) {
	want := &engine.Answer{
		Batch: 9, Workflow: &models.Workflow{ID: newID(), Name: "w"}, Worker: &models.Worker{Name: "x"},
		Submitted: &engine.Submitted{Tasks: []engine.SubmittedTask{{Row: models.Task{ID: newID(), State: models.Running, Token: newID()}}}},
	}
	b := &brain{answer: func(context.Context, *engine.Command) (*engine.Answer, error) { return want, nil }}
	d := New(Options{Role: at(replica(t, b, nil).URL), Token: token})
	got, err := d.Do(t.Context(), submit())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	refusal := models.Invalid("body.tasks[0].priority", "at most 100")
	refusal.RetryAfterSeconds = 3
	b.answer = func(context.Context, *engine.Command) (*engine.Answer, error) { return nil, refusal }
	_, err = d.Do(t.Context(), submit())
	var e *models.Error
	if !errors.As(err, &e) || !reflect.DeepEqual(e, refusal) {
		t.Errorf("got %+v", err)
	}
	b.answer = func(context.Context, *engine.Command) (*engine.Answer, error) { return nil, errors.New("plain") }
	if _, err = d.Do(t.Context(), submit()); models.CodeOf(err) != models.Internal {
		t.Errorf("got %v", err)
	}
}

func TestALostAnswerIsAskedAgainAndDoneOnce(t *testing.T) {
	b, lost := &brain{}, 0
	s := replica(t, b, func(w http.ResponseWriter, next func()) {
		if lost < 2 {
			lost++
			next()
			panic(http.ErrAbortHandler) // the connection breaks after the command was done
		}
		next()
	})
	d := New(Options{Role: at(s.URL), Token: token})
	cmd := submit()
	if _, err := d.Do(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	asked := b.commands()
	if len(asked) != 3 || asked[0].Resent || !asked[1].Resent || !asked[2].Resent || asked[2].ID != cmd.ID || b.done[cmd.ID] != 1 {
		t.Errorf("asked %+v, done %d times", asked, b.done[cmd.ID])
	}
	if cmd.Resent {
		t.Error("the caller's command was changed")
	}
}

func TestAChangeOfBrainIsFollowed(t *testing.T) {
	next := &brain{}
	to := replica(t, next, nil).URL
	var mu sync.Mutex
	address := ""
	old := &brain{answer: func(context.Context, *engine.Command) (*engine.Answer, error) {
		mu.Lock()
		address = ""
		mu.Unlock()
		time.AfterFunc(50*time.Millisecond, func() { mu.Lock(); address = to; mu.Unlock() })
		return nil, unavailable("this replica does not decide")
	}}
	address = replica(t, old, nil).URL
	d := New(Options{Token: token, Role: func() (bool, string) { mu.Lock(); defer mu.Unlock(); return false, address }})
	cmd := &engine.Command{ID: newID(), Claim: &engine.Claim{Worker: newID(), Most: 1, WaitMS: 600_000}}
	if _, err := d.Do(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
	first, second := old.commands(), next.commands()
	if len(first) != 1 || len(second) != 1 {
		t.Fatalf("asked %d and %d times", len(first), len(second))
	}
	if first[0].ID == second[0].ID || second[0].Claim.WaitMS >= first[0].Claim.WaitMS || second[0].Claim.WaitMS < 300_000 || second[0].Resent {
		t.Errorf("parked as %+v, again as %+v", first[0].Claim, second[0].Claim)
	}
}

func TestTheLocalLoopIsAskedWhenItDecides(t *testing.T) {
	local := &brain{}
	d := New(Options{Local: local, Role: here})
	if _, err := d.Do(t.Context(), submit()); err != nil || len(local.commands()) != 1 {
		t.Errorf("%v after %d", err, len(local.commands()))
	}
}

func TestWithoutABrainTheCallerIsToldInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Options{Role: at(""), Token: token, Patience: 200 * time.Millisecond})
		began := time.Now()
		_, err := d.Do(t.Context(), submit())
		if models.CodeOf(err) != models.Unavailable || time.Since(began) != 200*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began = time.Now()
		_, err = New(Options{Role: at(""), Token: token}).Do(ctx, submit())
		if models.CodeOf(err) != models.Unavailable || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 50*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A brain that takes commands and never answers, as behind a black hole: the caller is told in time.
func TestAMuteBrainIsGivenUp(t *testing.T) {
	mute := make(chan struct{})
	b := &brain{answer: func(ctx context.Context, _ *engine.Command) (*engine.Answer, error) {
		<-mute
		return nil, ctx.Err()
	}}
	s := replica(t, b, nil)
	defer close(mute)
	d := New(Options{Role: at(s.URL), Token: token, Patience: 300 * time.Millisecond})
	told := make(chan error, 1)
	go func() { _, err := d.Do(t.Context(), submit()); told <- err }()
	if err := received(t, told); models.CodeOf(err) != models.Unavailable {
		t.Errorf("told %v", err)
	}
}

func TestACallerThatLeavesTakesItsClaimOff(t *testing.T) {
	parked, off := make(chan struct{}), make(chan struct{})
	b := &brain{answer: func(ctx context.Context, _ *engine.Command) (*engine.Answer, error) {
		close(parked)
		<-ctx.Done()
		close(off)
		return nil, ctx.Err()
	}}
	d := New(Options{Role: at(replica(t, b, nil).URL), Token: token})
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-parked; leave() }()
	_, err := d.Do(ctx, &engine.Command{ID: newID(), Claim: &engine.Claim{Most: 1, WaitMS: 30_000}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	received(t, off)
}

func TestLeasesForACallerThatHasLeftGoBack(t *testing.T) {
	lease := engine.Lease{Row: models.Task{Token: newID()}}
	back := make(chan []models.ID, 1)
	ctx, leave := context.WithCancel(t.Context())
	local := &brain{answer: func(_ context.Context, cmd *engine.Command) (*engine.Answer, error) {
		if cmd.Return != nil {
			back <- cmd.Return.Tokens
			return &engine.Answer{}, nil
		}
		leave()
		return &engine.Answer{Claimed: &engine.Claimed{Leases: []engine.Lease{lease}}}, nil
	}}
	d := New(Options{Local: local, Role: here})
	answer, err := d.Do(ctx, &engine.Command{ID: newID(), Claim: &engine.Claim{Most: 1}})
	if err == nil {
		t.Errorf("got %+v", answer)
	}
	if got := received(t, back); len(got) != 1 || got[0] != lease.Row.Token {
		t.Errorf("returned %v", got)
	}
}

func TestOnlyReplicasAreServed(t *testing.T) {
	handle := Handler(&brain{}, func(string) error { return errors.New("no") })
	if status, body := handle(t.Context(), []byte(`{}`), Sender{Token: "x", Protocol: Protocol()}); status != http.StatusUnauthorized || !strings.Contains(string(body), "unauthenticated") {
		t.Errorf("%d %s", status, body)
	}
	handle = Handler(&brain{}, func(string) error { return nil })
	if status, _ := handle(t.Context(), []byte(`{"id":`), Sender{Token: "x", Protocol: Protocol()}); status != http.StatusBadRequest {
		t.Errorf("%d", status)
	}
	d := New(Options{Role: at(replica(t, &brain{}, nil).URL), Token: func(context.Context) (string, error) { return "stale", nil }})
	if _, err := d.Do(t.Context(), submit()); models.CodeOf(err) != models.Internal {
		t.Errorf("got %v", err)
	}
}
