package workertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"nightshift/workers/protocol"
)

// ClientID and ClientSecret are the credentials the server takes.
const (
	ClientID     = "key_test"
	ClientSecret = "a-secret-for-tests"
)

// Server is the control plane. Its fields may be changed between calls under
// Lock.
type Server struct {
	sync.Mutex
	TokenLife time.Duration // default 15 min
	// Changed, when set before the first task, is told of each change of a
	// task's state, under Lock.
	Changed func(*Task)
	URL     string

	t        testing.TB
	gate     *gate
	live     *httptest.Server
	changed  *sync.Cond
	tasks    []*Task
	leases   map[string]*Task
	issued   map[string]*Task  // every token there ever was
	settled  map[string]string // tokens whose result was accepted, and the state after it
	workers  map[string]*worker
	tokens   map[string]time.Time
	answers  []int // statuses to answer instead, one a call
	calls    map[string]int
	numbered int
	drain    bool
	conflict map[string]bool
	refuse   map[string]int // result text → status of a call that holds it
}

// Task is a task as the server sees it.
type Task struct {
	ID         string
	Lease      protocol.Lease // what a claim will carry
	State      string
	Attempts   int
	Outcomes   []protocol.Result // accepted ones
	Refused    int               // stale results
	Progress   json.RawMessage
	Checkpoint json.RawMessage
	Logs       []string
	Spans      []protocol.Span
	Children   []protocol.Child
	Expires    time.Time

	token   string
	worker  string
	granted time.Time
	missing time.Time
	signals []protocol.Signal
}

type worker struct {
	id, session  string
	registration protocol.RegisterRequest
	leaseSeconds int
	gone         bool
}

// New starts a server that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{
		t: t, TokenLife: 15 * time.Minute, leases: map[string]*Task{}, issued: map[string]*Task{}, settled: map[string]string{},
		workers: map[string]*worker{}, tokens: map[string]time.Time{}, calls: map[string]int{},
		conflict: map[string]bool{}, refuse: map[string]int{},
	}
	s.changed = sync.NewCond(&s.Mutex)
	var err error
	if s.gate, err = newGate(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.gate.Close() })
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Start listens, on the address it had before, with everything it knew.
func (s *Server) Start() {
	s.t.Helper()
	live := &httptest.Server{Listener: s.gate.pass(), Config: &http.Server{Handler: s.routes()}}
	live.Start()
	s.Lock()
	defer s.Unlock()
	s.live, s.URL = live, live.URL
}

// Stop closes every connection, as a kill would.
func (s *Server) Stop() {
	s.Lock()
	live := s.live
	s.live = nil
	s.changed.Broadcast()
	s.Unlock()
	if live != nil {
		live.CloseClientConnections()
		live.Close()
	}
}

// Forget drops every worker, as a server does that lost its rows. Leases stay.
func (s *Server) Forget() {
	s.Lock()
	defer s.Unlock()
	s.workers = map[string]*worker{}
	s.changed.Broadcast()
}

// ExpireTokens makes every access token stale.
func (s *Server) ExpireTokens() {
	s.Lock()
	defer s.Unlock()
	clear(s.tokens)
}

// Answer makes the next worker calls answer these statuses instead.
func (s *Server) Answer(statuses ...int) {
	s.Lock()
	defer s.Unlock()
	s.answers = append(s.answers, statuses...)
}

// Drain tells every worker to drain with its next heartbeat.
func (s *Server) Drain() {
	s.Lock()
	defer s.Unlock()
	s.drain = true
}

// Calls counts the calls of a verb: register, claim, heartbeat, results, …
func (s *Server) Calls(verb string) int {
	s.Lock()
	defer s.Unlock()
	return s.calls[verb]
}

// CallsLocked is Calls for the conditions of Await.
func (s *Server) CallsLocked(verb string) int { return s.calls[verb] }

// Registered says, under Lock, whether an instance has a session.
func (s *Server) Registered(instance string) bool { return s.workers["wrk_"+instance] != nil }

// Replace gives an instance a new session, as a second process would.
func (s *Server) Replace(instance string) {
	s.Lock()
	defer s.Unlock()
	s.workers["wrk_"+instance] = &worker{id: "wrk_" + instance, session: "another", leaseSeconds: 30}
	s.changed.Broadcast()
}

// Conflict makes registrations of an instance fail as contested.
func (s *Server) Conflict(instance string) {
	s.Lock()
	defer s.Unlock()
	s.conflict[instance] = true
}

// RefuseResults answers a status to every results call that holds a result
// with this JSON text.
func (s *Server) RefuseResults(status int, result string) {
	s.Lock()
	defer s.Unlock()
	s.refuse[result] = status
}

// Submit adds a ready task. Change, when given, edits what a claim will carry.
func (s *Server) Submit(taskType string, payload any, change ...func(*protocol.Lease)) *Task {
	s.t.Helper()
	raw, err := json.Marshal(payload)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Lock()
	defer s.Unlock()
	t := s.Add(taskType, raw, "ready")
	for _, c := range change {
		c(&t.Lease)
	}
	return t
}

// Add adds a task in a state, under Lock.
func (s *Server) Add(taskType string, payload json.RawMessage, state string) *Task {
	s.numbered++
	t := &Task{ID: fmt.Sprintf("task_%04d", s.numbered), State: state}
	t.Lease = protocol.Lease{TaskID: t.ID, Type: taskType, Payload: payload, IdempotencyKey: t.ID}
	s.tasks = append(s.tasks, t)
	s.changed.Broadcast()
	return t
}

// Free makes a waiting task ready, under Lock.
func (s *Server) Free(t *Task) {
	t.State = "ready"
	s.changed.Broadcast()
}

// Signal sends a signal to a running task with the next heartbeat.
func (s *Server) Signal(t *Task, signal protocol.Signal) {
	s.Lock()
	defer s.Unlock()
	t.signals = append(t.signals, signal)
}

// Steal ends a task's lease, as an expiry would.
func (s *Server) Steal(t *Task) {
	s.Lock()
	defer s.Unlock()
	s.unlease(t, "ready")
}

// Patience is how long tests wait for what must come, however slow the machine.
const Patience = time.Minute

// grace is how long a lease outlives its end: a machine that stands still for a moment loses none. Steal ends one at once.
const grace = 30 * time.Second

// Await waits until the condition holds of the state under Lock.
func (s *Server) Await(what string, holds func() bool) {
	s.t.Helper()
	give := time.AfterFunc(Patience, func() { s.Lock(); s.changed.Broadcast(); s.Unlock() })
	defer give.Stop()
	until := time.Now().Add(Patience)
	s.Lock()
	defer s.Unlock()
	for !holds() {
		if !time.Now().Before(until) {
			s.t.Fatalf("waited in vain for: %s", what)
		}
		s.changed.Wait()
	}
}

// AwaitState waits until a task is in a state.
func (s *Server) AwaitState(t *Task, state string) {
	s.t.Helper()
	s.Await(t.ID+" becomes "+state, func() bool { return t.State == state })
}

func (s *Server) unlease(t *Task, state string) {
	delete(s.leases, t.token)
	t.token, t.State = "", state
	if s.Changed != nil {
		s.Changed(t)
	}
	s.changed.Broadcast()
}

// sweep gives back what ran out; under Lock.
func (s *Server) sweep() {
	now := time.Now()
	for _, t := range s.tasks {
		if t.State == "running" && now.After(t.Expires.Add(grace)) {
			s.unlease(t, "ready")
		}
	}
}

func fits(patterns []string, taskType string) bool {
	for _, p := range patterns {
		prefix, open := strings.CutSuffix(p, "*")
		if p == taskType || open && strings.HasPrefix(taskType, prefix) {
			return true
		}
	}
	return len(patterns) == 0
}
