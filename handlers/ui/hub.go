package ui

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nightshift/models"
)

// Bounds of what the hub keeps.
const (
	hintIDs    = 50 // objects a hint names one by one
	recentMost = 40 // last events of an environment
	hintEnvs   = 500
	lookBack   = 15 * time.Second // a page may have been drawn so long before its stream begins
)

// Hub turns events into hints for browsers: what moved, never the data. It keeps the last events of each environment
// for the first page.
type Hub struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
	recent    map[int32][]models.Event
	moved     map[int32]map[string]time.Time // when something of a topic moved last
	joined    chan struct{}                  // told when a browser's stream begins
}

// Hint says what moved in one environment, so that pages draw the regions that show it again.
type Hint struct {
	Scope  string   `json:"scope,omitempty"` // number of the environment; empty: for all
	Topics []string `json:"topics"`
	IDs    []string `json:"ids,omitempty"`
	More   bool     `json:"more,omitempty"` // further objects moved
}

// listener is one browser's stream with what it has not been told yet.
type listener struct {
	envs    []int32 // nil: all
	wake    chan struct{}
	pending map[int32]*Hint
	reset   bool
}

// NewHub makes a hub; whoever follows the events hands them to Take.
func NewHub() *Hub {
	return &Hub{listeners: map[*listener]struct{}{}, recent: map[int32][]models.Event{}, moved: map[int32]map[string]time.Time{}, joined: make(chan struct{}, 1)}
}

// Follow takes every event of a channel until it closes or ctx ends, then has all browsers draw everything again: the
// events between this channel and the next are not known.
func (h *Hub) Follow(ctx context.Context, events <-chan models.Event) {
	h.forget()
	defer h.Reset()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			h.Take(e)
		}
	}
}

// Take notes one event.
func (h *Hub) Take(e models.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if toldOf(e) {
		h.remember(e)
	}
	topics := topicsOf(e.Name)
	if h.moved[e.Env] == nil {
		h.moved[e.Env] = map[string]time.Time{}
	}
	for _, topic := range topics {
		h.moved[e.Env][topic] = time.Now()
	}
	for l := range h.listeners {
		if l.hears(e.Env) {
			l.note(e, topics)
		}
	}
}

// toldOf says that the first page tells of an event. That a paused schedule skips is no news.
func toldOf(e models.Event) bool {
	if strings.HasPrefix(e.Reason, "skipped_paused") {
		return false
	}
	return !e.Task.IsZero() || !e.Workflow.IsZero() || !e.Schedule.IsZero()
}

func (h *Hub) remember(e models.Event) {
	kept := append(h.recent[e.Env], e)
	if len(kept) > 2*recentMost {
		kept = slices.Clone(kept[len(kept)-recentMost:])
	}
	h.recent[e.Env] = kept
}

// Recent gives the last events of an environment, newest first.
func (h *Hub) Recent(env int32, most int) []models.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.recent[env]
	out := slices.Clone(kept[max(0, len(kept)-most):])
	slices.Reverse(out)
	return out
}

// Reset has every browser draw everything again.
func (h *Hub) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		l.reset = true
		l.rouse()
	}
}

// join begins a stream. What moved since its page was drawn, or might have, is told at once.
func (h *Hub) join(envs []int32) *listener {
	l := &listener{envs: envs, wake: make(chan struct{}, 1), pending: map[int32]*Hint{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners[l] = struct{}{}
	for env, moved := range h.moved {
		if l.hears(env) {
			l.catchUp(env, moved)
		}
	}
	select {
	case h.joined <- struct{}{}:
	default:
	}
	return l
}

// Joined tells that a browser looks. While none does, nobody need follow the events.
func (h *Hub) Joined() <-chan struct{} { return h.joined }

// Watched says whether any browser looks now.
func (h *Hub) Watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.listeners) > 0
}

// forget drops the events noted, before a follower begins with some of them again.
func (h *Hub) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.recent)
	clear(h.moved)
}

func (h *Hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
}

// take gives what a listener has not been told yet.
func (h *Hub) take(l *listener) (hints []*Hint, reset bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, hint := range l.pending {
		hints = append(hints, hint)
	}
	slices.SortFunc(hints, func(a, b *Hint) int { return strings.Compare(a.Scope, b.Scope) })
	l.pending, reset, l.reset = map[int32]*Hint{}, l.reset, false
	return hints, reset
}

func (l *listener) hears(env int32) bool {
	return env == 0 || l.envs == nil || slices.Contains(l.envs, env)
}

// catchUp notes what moved of late.
func (l *listener) catchUp(env int32, moved map[string]time.Time) {
	for topic, at := range moved {
		if time.Since(at) > lookBack {
			continue
		}
		hint := l.hint(env)
		if hint == nil {
			break
		}
		hint.Topics, hint.More = append(hint.Topics, topic), true
		slices.Sort(hint.Topics)
	}
	if len(l.pending) > 0 || l.reset {
		l.rouse()
	}
}

// hint is what an environment's hint has so far; nil when too many moved, and all is to be drawn again.
func (l *listener) hint(env int32) *Hint {
	hint := l.pending[env]
	if hint == nil {
		if len(l.pending) >= hintEnvs {
			l.reset = true
			l.rouse()
			return nil
		}
		hint = &Hint{}
		if env != 0 {
			hint.Scope = strconv.Itoa(int(env))
		}
		l.pending[env] = hint
	}
	return hint
}

func (l *listener) note(e models.Event, topics []string) {
	hint := l.hint(e.Env)
	if hint == nil {
		return
	}
	for _, topic := range topics {
		if !slices.Contains(hint.Topics, topic) {
			hint.Topics = append(hint.Topics, topic)
		}
	}
	hint.name(e.Task.Text(models.TaskPrefix))
	hint.name(e.Workflow.Text(models.WorkflowPrefix))
	l.rouse()
}

func (h *Hint) name(id string) {
	switch {
	case id == "" || h.More || slices.Contains(h.IDs, id):
	case len(h.IDs) == hintIDs:
		h.IDs, h.More = nil, true
	default:
		h.IDs = append(h.IDs, id)
	}
}

func (l *listener) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// topicsOf says which regions show what an event changes.
func topicsOf(name string) []string {
	noun, verb, _ := strings.Cut(name, ".")
	switch noun {
	case "task":
		if verb == "dead_lettered" || verb == "redriven" || verb == "failed" || verb == "cancelled" {
			return []string{"tasks", "lanes", "dead"}
		}
		return []string{"tasks", "lanes"}
	case "workflow":
		return []string{"workflows"}
	case "worker":
		return []string{"workers"}
	case "schedule":
		return []string{"schedules"}
	case "lane":
		return []string{"lanes"}
	case "brain":
		return []string{"system"}
	default:
		return []string{noun}
	}
}
