package relay

import (
	"context"
	"time"
)

// patience is how long a listener that catches up may leave one event unread.
const patience = 30 * time.Second

// Subscribe gives the events after a position, first what is kept, then what happens, until ctx ends. Live begins with
// what is still to come. The channel is closed when ctx ends, when the relay stops, when history can't be read, or when
// the listener falls behind: it then subscribes again after the last position it got.
func (r *Relay) Subscribe(ctx context.Context, filter Filter, after Position) <-chan Event {
	l := &listener{filter: filter, out: make(chan Event, r.options.Buffer), at: after}
	go func() {
		if !r.catchUp(ctx, l) {
			close(l.out)
			return
		}
		context.AfterFunc(ctx, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.cut(l)
		})
	}()
	return l.out
}

// catchUp brings a listener to the tail and makes it one of those that follow; false when that can't be.
func (r *Relay) catchUp(ctx context.Context, l *listener) bool {
	select {
	case <-r.begun:
	case <-ctx.Done():
		return false
	}
	if l.at != Live && !r.reset(ctx, l) {
		return false
	}
	read := l.at.Batch - 1 // its own batch again: it may have more
	for {
		if r.join(l, read) {
			return true
		}
		if r.gone() {
			return false
		}
		tail := r.at() // before the read, which then sees all of it
		rows, _, err := r.read(ctx, l.filter.Envs, read)
		if err != nil {
			r.log.Warn("history can't be read", "after", read, "error", err)
			return false
		}
		if len(rows) == 0 {
			read = tail // it missed nothing of its environments
			continue
		}
		events, last := l.filter.pick(rows, l.at)
		for _, e := range events {
			if !send(ctx, l.out, e) {
				return false
			}
		}
		l.at, read = last, rows[len(rows)-1].Batch
	}
}

// join makes l follow if it has read all that was handed out.
func (r *Relay) join(l *listener, read int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopped:
		return false
	case l.at == Live:
		l.at = Position{Batch: r.tail + 1, Index: -1}
	case read < r.tail:
		return false
	}
	r.listeners[l] = struct{}{}
	r.joined++
	return true
}

// reset tells a listener that what it asked for is no longer kept, and lets it begin with the oldest that is.
func (r *Relay) reset(ctx context.Context, l *listener) bool {
	if r.options.Oldest == nil {
		return true
	}
	oldest, err := r.options.Oldest(ctx)
	if err != nil {
		r.log.Warn("the oldest event can't be read", "error", err)
		return false
	}
	if l.at.Batch+1 >= oldest || l.at.Batch == 0 {
		return true
	}
	l.at = Position{Batch: oldest, Index: -1}
	return send(ctx, l.out, Event{Position: Position{Batch: oldest}, Reset: true})
}

func (r *Relay) at() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tail
}

func (r *Relay) gone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

func send(ctx context.Context, out chan<- Event, e Event) bool {
	select {
	case out <- e:
		return true
	default:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case out <- e:
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}
