package relay

import (
	"context"
	"log/slog"
	"math"
	"sync"
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
	// Tail is the last committed batch, where following begins; nil: from the first batch on.
	Tail func(ctx context.Context) (int64, error)
	// Wakes say that batches were committed; the relay looks by itself at every Poll (0: 1 s).
	Wakes  []<-chan int64
	Poll   time.Duration
	Buffer int // events a listener may fall behind; 0: 1,024
	Logger *slog.Logger
}

const (
	pollEvery = time.Second
	buffer    = 1024
	page      = 500
	readLimit = 5 * time.Second
)

// Relay follows the events and hands them out.
type Relay struct {
	options Options
	log     *slog.Logger

	mu        sync.Mutex
	tail      int64 // handed out up to here
	started   bool
	stopped   bool
	listeners map[*listener]struct{}
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
			for range w { // ends when its sender closes it
				select {
				case wake <- struct{}{}:
				default:
				}
			}
		}()
	}
	poll := time.NewTicker(r.options.Poll)
	defer poll.Stop()
	for {
		if err := r.follow(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("events can't be read", "after", r.tail, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-poll.C:
		}
	}
}

// follow hands out everything that was committed since.
func (r *Relay) follow(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		rows, more, err := r.read(ctx, nil, r.tail)
		if err != nil || len(rows) == 0 {
			return err
		}
		r.hand(rows)
		if !more {
			return nil
		}
	}
	return nil
}

// begin finds where following starts.
func (r *Relay) begin(ctx context.Context) error {
	if r.started {
		return nil
	}
	var tail int64
	if r.options.Tail != nil {
		var err error
		if tail, err = r.options.Tail(ctx); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tail, r.started = tail, true
	close(r.begun)
	return nil
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

// hand gives rows to who wants them. A listener whose buffer is full is cut.
func (r *Relay) hand(rows []Packed) {
	r.mu.Lock()
	defer r.mu.Unlock()
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
	r.tail = rows[len(rows)-1].Batch
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
