package memory

import (
	"cmp"
	"slices"

	"nightshift/models"
)

// feedRows are messages and how far they were read.
type feedRows struct {
	messages map[models.Feed][]models.Message // by where they came in (Schedule zero), oldest first
	marks    map[models.Feed]models.FeedMark
	keys     map[models.KeyRef]models.Message
	byID     map[models.ID]models.Message
	takes    map[models.TaskRef][]models.Take // by run
}

func newFeedRows() feedRows {
	return feedRows{
		messages: map[models.Feed][]models.Message{}, marks: map[models.Feed]models.FeedMark{}, byID: map[models.ID]models.Message{}, keys: map[models.KeyRef]models.Message{},
		takes: map[models.TaskRef][]models.Take{},
	}
}

func streamOf(m *models.Message) models.Feed {
	return models.Feed{Env: m.Env, Source: m.Source, Name: m.Name}
}

// feed writes what a batch made of messages.
func (s *Store) feed(p *models.FeedPlan) {
	for _, m := range p.Messages {
		stream := streamOf(&m)
		s.messages[stream] = append(s.messages[stream], m)
		bare := m
		bare.Data = nil
		s.byID[m.ID] = bare
		if m.Key != "" {
			s.keys[models.KeyRef{Env: m.Env, Source: m.Source, Name: m.Name, Key: m.Key}] = bare
		}
	}
	for _, gone := range p.MarksGone {
		delete(s.marks, gone)
	}
	for _, m := range p.Marks {
		s.marks[m.Feed] = m
	}
	for _, t := range p.Takes {
		run := models.TaskRef{Env: t.Env, ID: t.Run}
		s.takes[run] = append(s.takes[run], t)
	}
}

// beyond are the messages of a feed that were not taken.
func (s *Store) beyond(feed models.Feed) []models.Message {
	all, after := s.messages[models.Feed{Env: feed.Env, Source: feed.Source, Name: feed.Name}], s.marks[feed].After
	from, _ := slices.BinarySearchFunc(all, after+1, func(m models.Message, seq int64) int { return cmp.Compare(m.Seq, seq) })
	return all[from:]
}

// feedFacts reads what is needed of messages.
func (s *Store) feedFacts(need *models.Need, f *models.Facts) {
	f.Feeds, f.MessageKeys, f.Messages = map[models.Feed][]models.Message{}, map[models.KeyRef]models.Message{}, map[models.ID]models.Message{}
	for i := range need.Feeds {
		f.Feeds[need.Feeds[i].Feed] = s.next(&need.Feeds[i])
	}
	known(need.MessageKeys, s.keys, f.MessageKeys)
	known(need.Messages, s.byID, f.Messages)
}

// next answers a FeedNeed.
func (s *Store) next(need *models.FeedNeed) (out []models.Message) {
	var bytes int64
	for i, m := range s.beyond(need.Feed) {
		if i >= int(need.Most) || bytes > need.Bytes {
			break
		}
		bytes += int64(m.Size) + int64(need.Beside)
		if m.Source == models.FromQueue {
			m.Data = nil
		}
		out = append(out, m)
	}
	return out
}

// waiting says what stands beyond the marks.
func (s *Store) waiting() (out []models.Waiting) {
	count := func(feed models.Feed) models.Waiting {
		w := models.Waiting{Feed: feed}
		if list := s.beyond(feed); len(list) > 0 {
			w.Count, w.FirstAt, w.LastAt = int64(len(list)), list[0].At, list[len(list)-1].At
		}
		return w
	}
	for _, mark := range sorted(s.marks, models.Feed.Compare) {
		if mark.Source == models.FromTrigger {
			out = append(out, count(mark.Feed))
		}
	}
	for _, list := range sorted(s.messages, models.Feed.Compare) {
		if queue := streamOf(&list[0]); queue.Source == models.FromQueue {
			if w := count(queue); w.Count > 0 {
				out = append(out, w)
			}
		}
	}
	return out
}

// Takes are the stretches that a run took, in order.
func (s *Store) Takes(run models.TaskRef) []models.Take {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.takes[run])
}

// Taken are the messages that a run took, in order, and by which task.
func (s *Store) Taken(run models.TaskRef) (messages []models.Message, by []models.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.takes[run] {
		for _, m := range s.messages[models.Feed{Env: t.Env, Source: t.Source, Name: t.Name}] {
			if t.First <= m.Seq && m.Seq <= t.Last {
				messages, by = append(messages, m), append(by, t.Task)
			}
		}
	}
	return messages, by
}
