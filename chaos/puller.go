package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/protocol"
)

// start is one attempt in a worker's journal.
type start struct {
	task     string
	attempt  int
	token    string
	at       time.Time
	answered bool // the server said what became of its result
	accepted bool
	code     string
}

// Puller is a worker of this process that speaks the protocol by hand, so that it can keep a journal, die and lie. It
// calls the addresses in turn: when one does not answer, it goes on with the next.
type Puller struct {
	world   *World
	name    string
	callers []*client.Client
	slots   int
	lease   int // seconds
	hold    time.Duration

	life context.Context
	die  context.CancelFunc
	ends sync.WaitGroup

	mu      sync.Mutex
	at      int // the address in use
	worker  string
	session string
	held    map[string]*start
	journal []*start
	outbox  []*start
	trouble map[string]int
	freed   chan struct{}
	news    chan struct{}
}

// puller starts a worker of so many slots that holds each task for a while.
func (w *World) puller(slots, leaseSeconds int, hold time.Duration, urls ...string) *Puller {
	w.t.Helper()
	w.last++
	p := &Puller{
		world: w, name: fmt.Sprintf("puller-%d", w.last), slots: slots, lease: leaseSeconds, hold: hold,
		held: map[string]*start{}, trouble: map[string]int{}, freed: make(chan struct{}, 1), news: make(chan struct{}, 1),
	}
	for _, url := range urls {
		p.callers = append(p.callers, w.caller(url, w.workers))
	}
	p.life, p.die = context.WithCancel(context.Background())
	if err := p.register(); err != nil {
		w.t.Fatalf("%s: %v", p.name, err)
	}
	w.pullers = append(w.pullers, p)
	for _, loop := range []func(){p.claims, p.beats, p.results} {
		p.ends.Go(loop)
	}
	w.t.Cleanup(p.Die)
	return p
}

// Die ends the worker as a crash would: no word to the server. Its leases run out.
func (p *Puller) Die() {
	p.die()
	p.ends.Wait()
}

func (p *Puller) call(path string, in, out any, timeout time.Duration) error {
	p.mu.Lock()
	c, session, turn := p.callers[p.at], p.session, p.at
	p.mu.Unlock()
	headers := map[string]string{}
	if session != "" {
		headers[protocol.HeaderSession] = session
	}
	_, err := c.Do(p.life, client.Call{Method: http.MethodPost, Path: path, In: in, Out: out, Headers: headers, Timeout: timeout})
	if err != nil && p.life.Err() == nil {
		p.mu.Lock()
		word := client.Code(err)
		if word == "" {
			word = "no answer"
		}
		p.trouble[word]++
		if client.Temporary(err) && p.at == turn {
			p.at = (p.at + 1) % len(p.callers)
		}
		p.mu.Unlock()
	}
	return err
}

func (p *Puller) register() error {
	in := protocol.RegisterRequest{
		Name: p.name, InstanceID: p.name, TaskTypes: []string{"text.*"},
		Slots: &protocol.Slots{All: p.slots}, LeaseSeconds: p.lease, Leases: p.tokens(),
	}
	var answer protocol.RegisterAnswer
	for n := 0; ; n++ {
		err := p.call("/v1/workers", in, &answer, 5*time.Second)
		if err == nil {
			break
		}
		if !client.Temporary(err) {
			return err
		}
		if err := client.Sleep(p.life, client.Backoff(n, time.Second, nil)); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worker, p.session = answer.WorkerID, answer.Session
	return nil
}

func (p *Puller) path(verb string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "/v1/workers/" + p.worker + "/" + verb
}

func (p *Puller) tokens() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for token := range p.held {
		all = append(all, token)
	}
	return all
}

// rest waits a little after a call that failed.
func (p *Puller) rest() { _ = client.Sleep(p.life, 100*time.Millisecond) }

func (p *Puller) claims() {
	wait := 2
	for p.life.Err() == nil {
		room := p.slots - len(p.tokens())
		if room <= 0 {
			select {
			case <-p.life.Done():
			case <-p.freed:
			}
			continue
		}
		var answer protocol.ClaimAnswer
		if p.call(p.path("claim"), protocol.ClaimRequest{MaxTasks: &room, WaitSeconds: &wait}, &answer, 6*time.Second) != nil {
			p.rest()
			continue
		}
		for _, lease := range answer.Tasks {
			s := &start{task: lease.TaskID, attempt: lease.Attempt, token: lease.LeaseToken, at: time.Now()}
			p.mu.Lock()
			p.held[s.token] = s
			p.journal = append(p.journal, s)
			p.mu.Unlock()
			time.AfterFunc(p.hold, func() { p.finish(s) })
		}
	}
}

func (p *Puller) finish(s *start) {
	p.mu.Lock()
	p.outbox = append(p.outbox, s)
	p.mu.Unlock()
	knock(p.news)
}

func knock(door chan struct{}) {
	select {
	case door <- struct{}{}:
	default:
	}
}

func (p *Puller) beats() {
	for client.Sleep(p.life, time.Duration(p.lease)*time.Second/3) == nil {
		in := protocol.HeartbeatRequest{Leases: []protocol.HeartbeatLease{}}
		for _, token := range p.tokens() {
			in.Leases = append(in.Leases, protocol.HeartbeatLease{LeaseToken: token})
		}
		for p.call(p.path("heartbeat"), in, nil, 2*time.Second) != nil && p.life.Err() == nil {
			p.rest()
		}
	}
}

func (p *Puller) results() {
	for {
		p.mu.Lock()
		batch := p.outbox[:min(len(p.outbox), 200)]
		p.outbox = p.outbox[len(batch):]
		p.mu.Unlock()
		if len(batch) == 0 {
			select {
			case <-p.life.Done():
				return
			case <-p.news:
			}
			continue
		}
		for p.report(batch) != nil && p.life.Err() == nil {
			p.rest()
		}
		knock(p.freed)
	}
}

// report says how attempts ended and notes what the server made of it.
func (p *Puller) report(batch []*start) error {
	in := protocol.ResultsRequest{}
	for _, s := range batch {
		in.Results = append(in.Results, protocol.Result{LeaseToken: s.token, Status: protocol.StatusSucceeded, Result: json.RawMessage(`{"done":true}`)})
	}
	var answer protocol.ResultsAnswer
	if err := p.call(p.path("results"), in, &answer, 6*time.Second); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, row := range answer.Results {
		s := batch[i]
		s.answered, s.accepted = true, row.Accepted
		if row.Code != nil {
			s.code = *row.Code
		}
		delete(p.held, s.token)
	}
	return nil
}

// starts copies the journal.
func (p *Puller) starts() []start {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]start, len(p.journal))
	for i, s := range p.journal {
		all[i] = *s
	}
	return all
}
