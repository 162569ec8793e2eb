package engine

import (
	"fmt"
	"maps"
	"slices"

	"nightshift/models"
)

// gathered is what waits for a schedule of kind event, or in a queue: how much, and of which moments. The messages themselves
// are read when they are taken, so a hundred thousand of them cost no memory here.
type gathered struct {
	count       int64
	first, last models.Instant
}

func (g *gathered) add(at models.Instant) {
	if g.count == 0 {
		g.first = at
	}
	g.count++
	g.last = at
}

// feeds are who reads what.
type feeds struct {
	listeners map[models.Feed][]*schedule // of a trigger's name or a queue (Schedule zero), by their ids
	queues    map[models.Feed]*gathered   // that hold something
	filled    map[int32]int               // how many of them an environment has
}

func newFeeds() feeds {
	return feeds{listeners: map[models.Feed][]*schedule{}, queues: map[models.Feed]*gathered{}, filled: map[int32]int{}}
}

// feed is what the schedule reads, the zero one when it follows the calendar.
func (s *schedule) feed() models.Feed {
	switch {
	case s.Rule.Event != nil:
		return models.Feed{Env: s.Env, Source: models.FromTrigger, Name: s.Rule.Event.Name, Schedule: s.ID}
	case s.Rule.Drain != nil:
		return models.Feed{Env: s.Env, Source: models.FromQueue, Name: s.Rule.Drain.Queue}
	}
	return models.Feed{}
}

// streamOf is where the messages of a feed come in.
func streamOf(f models.Feed) models.Feed {
	f.Schedule = models.ID{}
	return f
}

// over says that nothing will come of the schedule any more.
func (s *schedule) over(now models.Instant) bool { return s.Rule.EndAt > 0 && s.Rule.EndAt < now }

// matching counts the schedules that a message is for.
func (f *feeds) matching(stream models.Feed, now models.Instant) (n int32) {
	for _, s := range f.listeners[stream] {
		if !s.over(now) {
			n++
		}
	}
	return n
}

// queue is what waits in one, from now on at least.
func (f *feeds) queue(stream models.Feed) *gathered {
	g := f.queues[stream]
	if g == nil {
		g = &gathered{}
		f.queues[stream] = g
		f.filled[stream.Env]++
	}
	return g
}

// empty forgets a queue that holds nothing.
func (f *feeds) empty(stream models.Feed) {
	if f.queues[stream] != nil {
		delete(f.queues, stream)
		if f.filled[stream.Env]--; f.filled[stream.Env] == 0 {
			delete(f.filled, stream.Env)
		}
	}
}

func byID(a, b *schedule) int { return a.ID.Compare(b.ID) }

func (f *feeds) listen(s *schedule) {
	if stream := streamOf(s.feed()); stream.Name != "" {
		at, there := slices.BinarySearchFunc(f.listeners[stream], s, byID)
		if !there {
			f.listeners[stream] = slices.Insert(f.listeners[stream], at, s)
		}
	}
}

func (f *feeds) unlisten(s *schedule, from models.Feed) {
	stream := streamOf(from)
	left := slices.DeleteFunc(f.listeners[stream], func(o *schedule) bool { return o == s })
	if len(left) == 0 {
		delete(f.listeners, stream)
		return
	}
	f.listeners[stream] = left
}

// checkFeed refuses one schedule too many on a name: each costs every message something.
func (e *Engine) checkFeed(row *models.Schedule) error {
	s := &schedule{Schedule: *row}
	others := e.plans.listeners[streamOf(s.feed())]
	if len(others) >= MostListeners && !slices.ContainsFunc(others, func(o *schedule) bool { return o.ID == row.ID }) {
		return models.Errorf(models.StateConflict, "%d schedules are for %s already, which is the most", MostListeners, s.feed().Name)
	}
	return nil
}

// refeed lets a schedule that was made or edited read what its rule says now. A trigger's feed begins with what comes from
// now on; with the same name as before it goes on where it was.
func (e *Engine) refeed(s *schedule, before models.Feed) {
	now := s.feed()
	if now == before {
		return
	}
	e.unfeed(s, before)
	if now.Source == models.FromTrigger && now.Name != "" {
		s.gathered = gathered{}
		e.moveMarkOf(now, e.nextSeq()-1)
		e.setUntaken(now, nil) // whatever was read of it
	}
	e.plans.listen(s)
}

// unfeed ends a schedule's reading.
func (e *Engine) unfeed(s *schedule, before models.Feed) {
	if before.Name == "" {
		return
	}
	e.plans.unlisten(s, before)
	if before.Source == models.FromTrigger {
		p := &e.b.plan.Feeds
		p.Marks = slices.DeleteFunc(p.Marks, func(m models.FeedMark) bool { return m.Feed == before })
		p.MarksGone = append(p.MarksGone, before)
	}
}

// moveMarkOf notes how far a feed was read.
func (e *Engine) moveMarkOf(feed models.Feed, after int64) {
	p := &e.b.plan.Feeds
	for i := range p.Marks {
		if p.Marks[i].Feed == feed {
			p.Marks[i].After, p.Marks[i].At = after, e.now
			return
		}
	}
	p.Marks = append(p.Marks, models.FeedMark{Feed: feed, After: after, At: e.now})
}

// restoreFeeds makes anew from a snapshot what waits.
func (e *Engine) restoreFeeds(rows []models.Waiting) {
	for _, row := range rows {
		g := gathered{row.Count, row.FirstAt, row.LastAt}
		if row.Source == models.FromQueue {
			*e.plans.queue(row.Feed) = g
		} else if s := e.plans.all[row.Schedule]; s != nil && s.feed() == row.Feed {
			s.gathered = g
		}
	}
}

// checkFeeds says where what waits differs from the rows.
func (e *Engine) checkFeeds(rows []models.Waiting) error {
	queues, listening := 0, 0
	for _, row := range rows {
		g := e.plans.queues[row.Feed]
		if row.Source == models.FromTrigger {
			listening++
			s := e.plans.all[row.Schedule]
			if s == nil || s.feed() != row.Feed {
				return fmt.Errorf("nobody reads the feed %+v", row.Feed)
			}
			g = &s.gathered
		} else {
			queues++
		}
		if want := (gathered{row.Count, row.FirstAt, row.LastAt}); g == nil || *g != want {
			return fmt.Errorf("of the feed %+v waits %+v, the rows say %+v", row.Feed, g, want)
		}
	}
	if queues != len(e.plans.queues) {
		return fmt.Errorf("%d queues hold something, the rows say %d", len(e.plans.queues), queues)
	}
	for _, s := range e.plans.all { // any order: each on its own
		feed := s.feed()
		if feed.Name == "" {
			continue
		}
		if feed.Source == models.FromTrigger {
			listening--
		}
		if !slices.Contains(e.plans.listeners[streamOf(feed)], s) {
			return fmt.Errorf("the schedule %s hears nothing of %s", s.Name, feed.Name)
		}
	}
	if listening != 0 {
		return fmt.Errorf("there are %d marks of triggers too many", listening)
	}
	return nil
}

// messageCounts count messages since this brain began.
type messageCounts struct{ received, repeated, taken int64 }

func (c *messageCounts) add(more *messageCounts) {
	c.received, c.repeated, c.taken = c.received+more.received, c.repeated+more.repeated, c.taken+more.taken
}

// MessageFigures are those of triggers, or of items of queues. What waits for several schedules is counted for each.
type MessageFigures struct {
	Source       string  `json:"source"` // trigger, queue
	Received     int64   `json:"received"`
	Deduplicated int64   `json:"deduplicated"`
	Taken        int64   `json:"taken"`
	Waiting      int64   `json:"waiting"`
	Oldest       float64 `json:"oldest_seconds"` // how long the oldest has waited
}

// messageFigures are what was counted and what waits: one pass over the queues that hold something and over the schedules that
// gather.
func (e *Engine) messageFigures() []MessageFigures {
	out := []MessageFigures{{Source: "trigger"}, {Source: "queue"}}
	for source := range out {
		c := &e.counters.schedules.messages[source]
		out[source].Received, out[source].Deduplicated, out[source].Taken = c.received, c.repeated, c.taken
	}
	holds := func(f *MessageFigures, g *gathered) {
		if g.count > 0 {
			f.Waiting += g.count
			f.Oldest = max(f.Oldest, e.now.Sub(g.first).Seconds())
		}
	}
	for _, g := range e.plans.queues { // any order: a sum and a maximum
		holds(&out[models.FromQueue], g)
	}
	for stream, list := range e.plans.listeners { // any order: likewise
		for _, s := range list {
			if stream.Source == models.FromTrigger {
				holds(&out[models.FromTrigger], &s.gathered)
			}
		}
	}
	return out
}

// QueueStats is a queue that holds something, or that a schedule drains.
type QueueStats struct {
	Name      string         `json:"name"`
	Depth     int64          `json:"depth"`
	OldestAt  models.Instant `json:"oldest_at,omitempty"` // 0: it holds nothing
	NewestAt  models.Instant `json:"newest_at,omitempty"`
	Schedules []models.ID    `json:"schedules,omitempty"`
}

// queueStats are those of an environment, by name.
func (e *Engine) queueStats(env int32) []QueueStats {
	of := map[string]*QueueStats{}
	for stream, g := range e.plans.queues { // any order: sorted below
		if stream.Env == env {
			of[stream.Name] = &QueueStats{Name: stream.Name, Depth: g.count, OldestAt: g.first, NewestAt: g.last}
		}
	}
	for stream, list := range e.plans.listeners { // any order: sorted below
		if stream.Env != env || stream.Source != models.FromQueue {
			continue
		}
		q := of[stream.Name]
		if q == nil {
			q = &QueueStats{Name: stream.Name}
			of[stream.Name] = q
		}
		for _, s := range list {
			q.Schedules = append(q.Schedules, s.ID)
		}
	}
	out := make([]QueueStats, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, *of[name])
	}
	return out
}
