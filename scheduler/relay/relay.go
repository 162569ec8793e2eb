package relay

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Read reads rows of the given environments (nil: all) whose batch is above after, in order of (batch, environment), at
// most limit of them.
type Read func(ctx context.Context, envs []int32, after int64, limit int) ([]Packed, error)

// Options say what a relay reads and when.
type Options struct {
	Read Read
	// Oldest is the first batch whose events are all kept; nil: everything is kept.
	Oldest func(ctx context.Context) (int64, error)
	// Tail is the last committed batch: following begins there, and goes on from there while nobody listens. Without it
	// the relay begins with the first batch, and learns of commits from Wakes alone.
	Tail func(ctx context.Context) (int64, error)
	// Wakes say which batch was committed last; the relay looks by itself at every Poll (0: 1 s).
	Wakes  []<-chan int64
	Poll   time.Duration
	Buffer int // events a listener may fall behind; 0: 1,024
	Logger *slog.Logger
}

const (
	pollEvery = time.Second
	buffer    = 1024
	page      = 64 // a row may hold the thousands of events of one batch
	readLimit = 5 * time.Second
)

// Relay follows the events and hands them out.
type Relay struct {
	options Options
	log     *slog.Logger

	committed atomic.Int64 // the last batch heard of

	mu        sync.Mutex
	tail      int64 // handed out up to here
	started   bool
	stopped   bool
	listeners map[*listener]struct{}
	joined    int           // how often one was added
	begun     chan struct{} // closed once tail is known
}

// listener is one subscription that has caught up.
type listener struct {
	filter Filter
	out    chan Event
	at     Position // of the last event handed to it or passed over
}

// New makes a relay. It follows while Run runs.
func New(o Options) *Relay {
	if o.Poll == 0 {
		o.Poll = pollEvery
	}
	if o.Buffer == 0 {
		o.Buffer = buffer
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Relay{options: o, log: o.Logger, listeners: map[*listener]struct{}{}, begun: make(chan struct{})}
}

// Run follows until ctx ends, then closes every subscription.
func (r *Relay) Run(ctx context.Context) error {
	defer r.stop()
	wake := make(chan struct{}, 1)
	for _, w := range r.options.Wakes {
		go func() {
			for batch := range w { // ends when its sender closes it
				r.heard(batch)
				select {
				case wake <- struct{}{}:
				default:
				}
			}
		}()
	}
	poll := time.NewTicker(r.options.Poll)
	defer poll.Stop()
	for ask := true; ; {
		if err := r.look(ctx, ask); err != nil && ctx.Err() == nil {
			r.log.Warn("events can't be read", "after", r.tail, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
			ask = false
		case <-poll.C:
			ask = true
		}
	}
}

func (r *Relay) heard(batch int64) {
	for {
		last := r.committed.Load()
		if batch <= last || r.committed.CompareAndSwap(last, batch) {
			return
		}
	}
}

// look hands out everything that was committed since; ask says that the last commit is not known from a wake.
func (r *Relay) look(ctx context.Context, ask bool) error {
	if (ask || !r.started) && r.options.Tail != nil {
		tail, err := r.options.Tail(ctx)
		if err != nil {
			return err
		}
		r.heard(tail)
	}
	if !r.started {
		r.begin()
	}
	for ctx.Err() == nil {
		if again, err := r.follow(ctx); err != nil || !again {
			return err
		}
	}
	return nil
}

// begin lets listeners join.
func (r *Relay) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = true
	if r.options.Tail != nil {
		r.tail = r.committed.Load()
	}
	close(r.begun)
}

// follow reads one page for those who listen now and hands it out; while nobody does, nothing is read. again says that
// there may be more.
func (r *Relay) follow(ctx context.Context) (again bool, err error) {
	committed := r.committed.Load() // before the read, which then sees all of it
	envs, joined, nobody := r.wanted()
	if nobody && r.options.Tail != nil {
		return !r.hand(nil, committed, joined), nil
	}
	rows, more, err := r.read(ctx, envs, r.tail)
	if err != nil {
		return false, err
	}
	upTo := committed
	if more {
		upTo = rows[len(rows)-1].Batch
	}
	return !r.hand(rows, upTo, joined) || more, nil
}

// wanted is the union of what the listeners may see, nil for all, and how often one has joined so far.
func (r *Relay) wanted() (envs []int32, joined int, nobody bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[int32]bool{}
	for l := range r.listeners {
		if l.filter.Envs == nil {
			return nil, r.joined, false
		}
		for _, env := range l.filter.Envs {
			if !seen[env] {
				seen[env] = true
				envs = append(envs, env)
			}
		}
	}
	return envs, r.joined, len(r.listeners) == 0
}

// read gives rows of whole batches only: a page that may end inside its last batch leaves that batch to the next page.
func (r *Relay) read(ctx context.Context, envs []int32, after int64) (rows []Packed, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	for limit := page; ; limit *= 4 {
		rows, err = r.options.Read(ctx, envs, after, limit)
		if err != nil || len(rows) < limit {
			return rows, false, err
		}
		last := rows[len(rows)-1].Batch
		whole := len(rows)
		for whole > 0 && rows[whole-1].Batch == last {
			whole--
		}
		if whole > 0 {
			return rows[:whole], true, nil
		}
		if limit > math.MaxInt32/4 {
			return rows, false, nil
		}
	}
}

// hand gives the rows up to a batch to who wants them. A listener whose buffer is full is cut. False: somebody has joined
// since the rows were asked for, perhaps for others, and nothing was handed out.
func (r *Relay) hand(rows []Packed, upTo int64, joined int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.joined != joined {
		return false
	}
	for l := range r.listeners {
		events, last := l.filter.pick(rows, l.at)
		l.at = last
		if len(events) > cap(l.out)-len(l.out) {
			r.cut(l)
			continue
		}
		for _, e := range events {
			l.out <- e
		}
	}
	if len(rows) > 0 {
		upTo = max(upTo, rows[len(rows)-1].Batch)
	}
	r.tail = max(r.tail, upTo)
	return true
}

// cut ends a subscription; its listener resumes by position.
func (r *Relay) cut(l *listener) {
	if _, ok := r.listeners[l]; ok {
		delete(r.listeners, l)
		close(l.out)
	}
}

func (r *Relay) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	for l := range r.listeners {
		r.cut(l)
	}
	if !r.started {
		r.started = true
		close(r.begun)
	}
}
