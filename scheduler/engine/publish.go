package engine

import (
	"encoding/json"

	"nightshift/models"
)

// Bounds of what waits for schedules.
const (
	MostWaiting   = 1_000_000 // messages for one schedule of kind event, or in one queue
	MostQueues    = 1_000     // of an environment that hold something
	MostListeners = 100       // schedules of one trigger's name, or on one queue
)

// Publish takes in a trigger, or items of a queue, all or nothing. Each waits from then on for the schedules it is for.
type Publish struct {
	Env      int32         `json:"env"`
	Source   models.Source `json:"source"`
	Name     string        `json:"name"`
	Messages []NewMessage  `json:"messages"`
	Once     *Once         `json:"once,omitempty"`
	Dry      bool          `json:"dry,omitempty"` // nothing is written: the answer says what would be
}

// NewMessage is one of them; the edge has minted its id.
type NewMessage struct {
	ID   models.ID       `json:"id"`
	Key  string          `json:"key,omitempty"`
	Data json.RawMessage `json:"data"`
}

// Published answers a Publish.
type Published struct {
	Messages []PublishedMessage `json:"messages"` // in the order of the command
	Matched  int32              `json:"matched"`  // schedules that the trigger is for; of a trigger that came before: was for
	Depth    int64              `json:"depth"`    // items that wait in the queue
	New      int32              `json:"new"`
}

// PublishedMessage says which message stands for one that was sent: itself, or the one that came before with its key.
type PublishedMessage struct {
	ID           models.ID `json:"id"`
	Deduplicated bool      `json:"deduplicated,omitempty"`
}

func (e *Engine) needPublish(n *models.Need, cmd *Command) {
	x := cmd.Publish
	needOnce(n, x.Once)
	for i := range x.Messages {
		m := &x.Messages[i]
		if m.Key != "" {
			n.MessageKeys = append(n.MessageKeys, models.KeyRef{Env: x.Env, Source: x.Source, Name: x.Name, Key: m.Key})
		}
		if cmd.Resent {
			n.Messages = append(n.Messages, m.ID)
		}
	}
}

func (e *Engine) publish(cmd *Command) (*Answer, error) {
	x := cmd.Publish
	if answer, err := e.replay(x.Once); answer != nil || err != nil {
		return answer, err
	}
	if err := e.takesSubmits(x.Env); err != nil {
		return nil, err
	}
	stream := models.Feed{Env: x.Env, Source: x.Source, Name: x.Name}
	if err := e.refuseFull(stream, len(x.Messages)); err != nil {
		return nil, err
	}
	out := &Published{Matched: e.plans.matching(stream, e.now)}
	made := make([]models.ID, 0, len(x.Messages))
	for i := range x.Messages {
		m := &x.Messages[i]
		ref := models.KeyRef{Env: x.Env, Source: x.Source, Name: x.Name, Key: m.Key}
		switch known, is := e.published(ref, m.ID); {
		case is && known.ID == m.ID: // the same command, sent again, which was counted then
			out.Messages = append(out.Messages, PublishedMessage{ID: m.ID})
			out.Matched = known.Matched
			out.New++
		case is:
			out.Messages = append(out.Messages, PublishedMessage{ID: known.ID, Deduplicated: true})
			out.Matched = known.Matched
			if !x.Dry {
				e.b.notes.messages[x.Source].repeated++
			}
		default:
			if !x.Dry {
				e.receive(stream, m, out.Matched)
			}
			out.Messages = append(out.Messages, PublishedMessage{ID: m.ID})
			out.New++
		}
		made = append(made, out.Messages[i].ID)
	}
	if g := e.plans.queues[stream]; g != nil {
		out.Depth = g.count
	}
	if !x.Dry {
		e.recordOnce(x.Once, made)
	}
	return &Answer{Published: out, Made: made}, nil
}

// refuseFull refuses what would wait without bound.
func (e *Engine) refuseFull(stream models.Feed, more int) error {
	full := func(g *gathered, what string) error {
		if g.count+int64(more) <= MostWaiting {
			return nil
		}
		err := models.Errorf(models.QueueFull, "%d messages wait for %s already, which is the most", g.count, what)
		err.RetryAfterSeconds = 60
		return err
	}
	if stream.Source == models.FromQueue {
		g := e.plans.queues[stream]
		if g == nil && e.plans.filled[stream.Env] >= MostQueues {
			err := models.Errorf(models.QueueFull, "%d queues of this environment hold something already, which is the most", MostQueues)
			err.RetryAfterSeconds = 60
			return err
		}
		if g == nil {
			return nil
		}
		return full(g, "the queue "+stream.Name)
	}
	for _, s := range e.plans.listeners[stream] {
		if s.over(e.now) {
			continue
		}
		if err := full(&s.gathered, "the schedule "+s.Name); err != nil {
			return err
		}
	}
	return nil
}

// published finds the message that stands for a new one already: by its dedupe key, or by its own id when it was sent before.
func (e *Engine) published(ref models.KeyRef, id models.ID) (models.Message, bool) {
	if m, is := e.b.facts.Messages[id]; is {
		return m, true
	}
	if ref.Key == "" {
		return models.Message{}, false
	}
	known, is := e.b.keys[ref]
	if !is {
		known, is = e.b.facts.MessageKeys[ref]
	}
	return known, is && e.now < known.At.Add(models.KeyHours*models.Seconds(3600))
}

// receive writes a message and lets it gather.
func (e *Engine) receive(stream models.Feed, m *NewMessage, matched int32) {
	p := &e.b.plan.Feeds
	row := models.Message{
		Env: stream.Env, Source: stream.Source, Name: stream.Name, Seq: e.nextSeq(), ID: m.ID, At: e.now, Key: m.Key, Data: m.Data,
		Size: int32(len(m.Data)), Matched: matched,
	}
	p.Messages = append(p.Messages, row)
	e.b.notes.messages[stream.Source].received++
	if m.Key != "" {
		if e.b.keys == nil {
			e.b.keys = map[models.KeyRef]models.Message{}
		}
		row.Data = nil
		e.b.keys[models.KeyRef{Env: stream.Env, Source: stream.Source, Name: stream.Name, Key: m.Key}] = row
	}
	if stream.Source == models.FromQueue {
		e.plans.queue(stream).add(e.now)
	}
	for _, s := range e.plans.listeners[stream] {
		if stream.Source == models.FromTrigger {
			s.gathered.add(e.now)
		}
		e.appoint(s)
	}
}

// nextSeq is the number of the next message of this batch.
func (e *Engine) nextSeq() int64 {
	return models.SeqOf(e.b.plan.Batch, len(e.b.plan.Feeds.Messages))
}
