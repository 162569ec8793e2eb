package engine

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"nightshift/models"
	"nightshift/scheduler/calendar"
)

// Bounds of what one run takes. What is over waits for the next.
const (
	MostEvents   = 1_000     // triggers of a run
	eventsBytes  = 128 << 10 // of them in its payload
	eventBeside  = 300       // bytes of one in the payload beside its data, at most
	MostFed      = 32        // tasks of a run that get its events, each in its own payload
	MostPortions = 500       // of a run that drains a queue: the work is made once for each
	itemsBytes   = 256 << 10 // of the items of one of them, or one larger item
	feedsAtOnce  = 20        // schedules of such kinds that one batch looks at: each may bring its payload
)

// reads is what a schedule's next run may take at most.
func (s *schedule) reads() models.FeedNeed {
	n := models.FeedNeed{Feed: s.feed(), Most: MostEvents + 1, Bytes: eventsBytes, Beside: eventBeside}
	switch r := &s.Rule; {
	case r.Drain != nil:
		n.Most, n.Bytes, n.Beside = min(r.Drain.MaxItems, int32(Portions(r))*r.Drain.BatchSize)+1, math.MaxInt64/2, 0
	case r.Event != nil && r.Event.MaxEvents > 0:
		n.Most = min(n.Most, r.Event.MaxEvents+1)
	}
	return n
}

// needGathered asks for what the schedule's run would take.
func needGathered(n *models.Need, s *schedule) {
	want := s.reads()
	for i := range n.Feeds {
		if n.Feeds[i].Feed == want.Feed {
			n.Feeds[i].Most = max(n.Feeds[i].Most, want.Most)
			return
		}
	}
	n.Feeds = append(n.Feeds, want)
}

// gathered is what waits for a schedule.
func (e *Engine) gatheredFor(s *schedule) *gathered {
	if s.Rule.Drain == nil {
		return &s.gathered
	}
	if g := e.plans.queues[s.feed()]; g != nil {
		return g
	}
	return &gathered{}
}

// hindered says that what has gathered waits: for the run before, or until the schedule may go on.
func (e *Engine) hindered(s *schedule) bool {
	if s.waiting != nil || e.standsStill(s) != "" {
		return true
	}
	switch calendar.Overlapping(s.Rule.Overlap) {
	case calendar.Allow, calendar.CancelPrevious:
		return false
	}
	return s.running() > 0
}

// dueGathered is when what has gathered for the schedule becomes a run, 0 when nothing makes it one for now; anew says that it
// is overdue, because its occurrence was skipped or left something over: it comes as soon as it can.
func (e *Engine) dueGathered(s *schedule) (at models.Instant, anew bool) {
	g, table := e.gatheredFor(s), e.timetable(s)
	if g.count == 0 || table == nil {
		return 0, false
	}
	hindered, skipped := e.hindered(s), s.skipped()
	var when time.Time
	if r := s.Rule.Event; r != nil {
		when = calendar.DebounceOf(r).FireAt(g.first.Time(), g.last.Time(), int(g.count))
		closed := models.InstantOf(when)
		anew = closed <= s.state.Mark || skipped && closed <= e.now
	} else { // a full queue makes no occurrences: it is drained when that can be
		when = calendar.DrainOf(&s.Rule).FireAt(s.state.LastFor.Time(), g.first.Time())
		anew = true
	}
	switch {
	case hindered && (anew || skipped || s.waiting != nil):
		return 0, false // one row that says so is enough
	case anew && s.Rule.Event != nil:
		when = e.now.Time()
	}
	when, open := table.OpenFrom(when)
	if !open {
		return 0, false
	}
	return models.InstantOf(when), anew
}

// skipped says that the last occurrence was: what had gathered for it still waits.
func (s *schedule) skipped() bool {
	return s.state.LastOutcome == string(calendar.SkippedOverlap) || s.state.LastOutcome == string(calendar.SkippedPaused)
}

// reappoint looks again at the schedules of environments that were let go on.
func (e *Engine) reappoint(of func(env int32) bool) {
	for stream, list := range e.plans.listeners { // any order: each on its own
		if of(stream.Env) {
			for _, s := range list {
				e.appoint(s)
			}
		}
	}
}

// fireGathered makes a run of what has gathered, where its moment has come.
func (e *Engine) fireGathered(s *schedule, work *models.ScheduleWork) int {
	at, anew := e.dueGathered(s)
	if at == 0 || at > e.now {
		return 0
	}
	if len(e.untaken(s.feed())) == 0 { // the rows know better
		e.settleGathered(s.feed(), e.gatheredFor(s), nil, 0)
		return 0
	}
	if anew {
		at = e.now
	}
	at = max(at, s.state.Mark+1) // no two of one moment
	s.state.Mark = at
	f := calendar.Fire{Occurrence: calendar.Occurrence{At: at.Time()}, Outcome: calendar.Dispatched, Late: max(0, e.now.Sub(at))}
	m := calendar.MisfireOf(&s.Rule)
	switch why := e.standsStill(s); {
	case why != "":
		f.Outcome, f.Cause = calendar.SkippedPaused, why
	case m.Expires > 0 && f.Late > m.Expires:
		f.Outcome, f.Cause = calendar.Expired, fmt.Sprintf("it came %s too late", (f.Late-m.Expires).Round(time.Second))
	case m.Policy == calendar.SkipMissed && f.Late > m.Grace:
		f.Outcome, f.Cause = calendar.Misfired, "it was missed, and the policy is skip"
	}
	r := e.occur(s, work, &f, s.Rule.Kind, e.runID())
	if f.Outcome == calendar.Expired || f.Outcome == calendar.Misfired {
		e.load(s, r)
		e.unload(r)
	}
	return 1
}

// untaken are the messages that the facts have of a feed and this batch has not given to a run.
func (e *Engine) untaken(feed models.Feed) []models.Message {
	if list, began := e.b.untaken[feed]; began {
		return list
	}
	return e.b.facts.Feeds[feed]
}

func (e *Engine) setUntaken(feed models.Feed, list []models.Message) {
	if e.b.untaken == nil {
		e.b.untaken = map[models.Feed][]models.Message{}
	}
	e.b.untaken[feed] = list
}

// Portions is how many times over a run may make its work for what it takes from a queue.
func Portions(r *models.ScheduleRule) int {
	d := r.Drain
	if d == nil || d.BatchSize < 1 {
		return 1
	}
	n := min(MostPortions, MostRunTasks/max(1, int(r.FanOut)), int(d.MaxItems+d.BatchSize-1)/int(d.BatchSize))
	if r.Partitions > 0 {
		n = min(n, int(r.Partitions))
	}
	return max(1, n)
}

// FedTasks is how many tasks of a run get its events.
func FedTasks(r *models.ScheduleRule) int { return max(1, int(r.Fed)) * max(1, int(r.Partitions)) }

// load gives a run what waits for it: the events it is about, or items, in portions for which its work is made once each.
func (e *Engine) load(s *schedule, r *scheduleRun) {
	r.taken = e.offered(s)
	n := 0
	for _, part := range r.taken {
		n += len(part)
	}
	if n > 0 {
		e.takeFirst(s.feed(), e.gatheredFor(s), n)
	}
}

// offered are the messages that a run of the schedule would take now.
func (e *Engine) offered(s *schedule) (parts [][]models.Message) {
	switch {
	case s.Rule.Event != nil:
		return [][]models.Message{e.oldest(s)}
	case s.Rule.Drain != nil:
		list := e.untaken(s.feed())
		sizes := make([]int32, len(list))
		for i := range list {
			sizes[i] = list[i].Size
		}
		portions := calendar.DrainOf(&s.Rule).Split(sizes, itemsBytes)
		for _, n := range portions[:min(len(portions), Portions(&s.Rule))] {
			parts, list = append(parts, list[:n]), list[n:]
		}
	}
	return parts
}

// unload writes down what a run took, whether or not its work could be made: events are the whole run's, items those of a
// portion's tasks, of which one is named.
func (e *Engine) unload(r *scheduleRun) {
	for i, taken := range r.taken {
		task := models.ID{}
		if len(taken) > 0 && taken[0].Source == models.FromQueue && i < len(r.made) {
			task = r.made[i]
		}
		e.bookTake(r, i, taken, task)
	}
	r.taken, r.made = nil, nil
}

// events are what a run is about.
func (r *scheduleRun) events() []models.Message {
	if len(r.taken) == 0 {
		return nil
	}
	return r.taken[0]
}

// oldest are the messages that wait longest for a schedule, as many as one run may have.
func (e *Engine) oldest(s *schedule) []models.Message {
	want := s.reads()
	list := e.untaken(s.feed())
	var bytes int64
	n := 0
	for n < len(list) && n < int(want.Most)-1 {
		if bytes += int64(list[n].Size) + int64(want.Beside); n > 0 && bytes > want.Bytes {
			break
		}
		n++
	}
	return list[:n]
}

// takeFirst takes the first n of what the facts have of a feed, at least one.
func (e *Engine) takeFirst(feed models.Feed, g *gathered, n int) {
	list := e.untaken(feed)
	e.setUntaken(feed, list[n:])
	e.moveMarkOf(feed, list[n-1].Seq)
	e.settleGathered(feed, g, list[n:], g.count-int64(n))
}

// settleGathered notes what is left of a feed. What the facts don't know came in this very batch.
func (e *Engine) settleGathered(feed models.Feed, g *gathered, rest []models.Message, left int64) {
	switch {
	case left <= 0:
		*g = gathered{}
		if feed.Source == models.FromQueue {
			e.plans.empty(feed)
		}
	case len(rest) > 0:
		g.count, g.first = left, rest[0].At
	default:
		g.count, g.first = left, e.now
	}
}

// bookTake writes down which messages a run took, or the nth task of it.
func (e *Engine) bookTake(r *scheduleRun, n int, taken []models.Message, task models.ID) {
	if len(taken) == 0 {
		return
	}
	first, last := &taken[0], &taken[len(taken)-1]
	var bytes int64
	for i := range taken {
		bytes += int64(taken[i].Size)
	}
	e.b.notes.messages[first.Source].taken += int64(len(taken))
	e.b.plan.Feeds.Takes = append(e.b.plan.Feeds.Takes, models.Take{
		Env: r.Env, Run: r.ID, N: int32(n), Source: first.Source, Name: first.Name, First: first.Seq, Last: last.Seq, Count: int32(len(taken)), Bytes: bytes,
		Task: task,
	})
}

// EventPayload is one trigger as a run's payload and a claim have it.
type EventPayload struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Data json.RawMessage `json:"data"`
	At   string          `json:"at"`
}

// ViewEvent is a message as one.
func ViewEvent(m *models.Message) EventPayload {
	return EventPayload{ID: m.ID.Text(models.EventPrefix), Name: m.Name, Data: m.Data, At: m.At.Time().UTC().Format(time.RFC3339Nano)}
}

// withEvents adds to a payload what the run is about: event, the last data, and events.
func withEvents(payload json.RawMessage, taken []models.Message) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(payload) > 0 && string(payload) != "null" {
		if err := json.Unmarshal(payload, &members); err != nil {
			return nil, fmt.Errorf("the payload must be an object, so that event and events can be added: %w", err)
		}
	}
	events, last := make([]EventPayload, len(taken)), json.RawMessage("null")
	for i := range taken {
		events[i], last = ViewEvent(&taken[i]), taken[i].Data
	}
	text, err := json.Marshal(events)
	if err != nil {
		return nil, err
	}
	members["event"], members["events"] = last, text
	out, err := json.Marshal(members)
	if err == nil && len(out) > payloadMost {
		err = fmt.Errorf("with its events the payload has %d bytes, %d are the most", len(out), payloadMost)
	}
	return out, err
}
