package postgres

import "nightshift/models"

// feeds sends what a batch made of messages.
func (b *buffers) feeds(pipe *pipeline, p *models.FeedPlan) {
	if len(p.Messages) > 0 {
		b.messages.begin(pipe.link.types["message_wire"])
		for i := range p.Messages {
			b.messages.message(&p.Messages[i])
		}
		pipe.send(call{name: "insert_messages", params: [][]byte{b.messages.param()}})
	}
	if len(p.MarksGone) > 0 {
		pipe.send(call{name: "delete_marks", params: feedArrays(p.MarksGone, same)})
	}
	if len(p.Marks) > 0 {
		pipe.send(call{name: "save_marks", params: append(feedArrays(p.Marks, func(m models.FeedMark) models.Feed { return m.Feed }),
			int8Array(p.Marks, func(m models.FeedMark) int64 { return m.After }),
			int8Array(p.Marks, func(m models.FeedMark) int64 { return int64(m.At) }))})
	}
	if len(p.Takes) > 0 {
		pipe.send(call{name: "insert_takes", params: [][]byte{
			int4Array(p.Takes, func(t models.Take) int32 { return t.Env }),
			idArray(p.Takes, func(t models.Take) models.ID { return t.Run }),
			int4Array(p.Takes, func(t models.Take) int32 { return t.N }),
			int2Array(p.Takes, func(t models.Take) int16 { return int16(t.Source) }),
			textArray(p.Takes, func(t models.Take) string { return t.Name }),
			int8Array(p.Takes, func(t models.Take) int64 { return t.First }),
			int8Array(p.Takes, func(t models.Take) int64 { return t.Last }),
			int4Array(p.Takes, func(t models.Take) int32 { return t.Count }),
			int8Array(p.Takes, func(t models.Take) int64 { return t.Bytes }),
			idArray(p.Takes, func(t models.Take) models.ID { return t.Task }),
		}})
	}
}

func feedArrays[T any](of []T, feed func(T) models.Feed) [][]byte {
	return [][]byte{
		int4Array(of, func(v T) int32 { return feed(v).Env }), int2Array(of, func(v T) int16 { return int16(feed(v).Source) }),
		textArray(of, func(v T) string { return feed(v).Name }), idArray(of, func(v T) models.ID { return feed(v).Schedule }),
	}
}

func (r *rows) message(m *models.Message) {
	r.next(10)
	r.int2(int16(m.Source))
	r.int4(m.Env)
	r.int8(m.Seq)
	r.int8(int64(m.At))
	r.mustID(m.ID)
	r.int4(m.Matched)
	r.int4(m.Size)
	r.mustText(m.Name)
	r.text(m.Key)
	r.mustText(string(m.Data))
}

// feedsOf reads the messages that are about to be taken, and who has the dedupe keys of new ones.
func feedsOf(need *models.Need, f *models.Facts) (calls []call) {
	if feeds := need.Feeds; len(feeds) > 0 {
		for _, n := range feeds {
			f.Feeds[n.Feed] = nil // it was asked for
		}
		calls = append(calls, call{name: "fact_feeds", read: func(c *columns) {
			feed := feeds[c.int8()-1].Feed
			m := c.message()
			m.Data = c.json()
			f.Feeds[feed] = append(f.Feeds[feed], m)
		}, params: append(feedArrays(feeds, func(n models.FeedNeed) models.Feed { return n.Feed }),
			int4Array(feeds, func(n models.FeedNeed) int32 { return n.Most }), int8Array(feeds, func(n models.FeedNeed) int64 { return n.Bytes }),
			int4Array(feeds, func(n models.FeedNeed) int32 { return n.Beside }))})
	}
	if keys := need.MessageKeys; len(keys) > 0 {
		calls = append(calls, call{name: "fact_message_keys", params: [][]byte{
			int4Array(keys, func(k models.KeyRef) int32 { return k.Env }), int2Array(keys, func(k models.KeyRef) int16 { return int16(k.Source) }),
			textArray(keys, func(k models.KeyRef) string { return k.Name }), textArray(keys, func(k models.KeyRef) string { return k.Key }),
		}, read: func(c *columns) {
			m := c.message()
			f.MessageKeys[models.KeyRef{Env: m.Env, Source: m.Source, Name: m.Name, Key: m.Key}] = m
		}})
	}
	if len(need.Messages) > 0 {
		calls = append(calls, call{name: "fact_messages", params: [][]byte{idArray(need.Messages, same)}, read: func(c *columns) {
			m := c.message()
			f.Messages[m.ID] = m
		}})
	}
	return calls
}

func (c *columns) message() models.Message {
	return models.Message{
		Source: models.Source(c.int2()), Env: c.int4(), Seq: c.int8(), At: c.instant(), ID: c.id(), Matched: c.int4(), Size: c.int4(),
		Name: c.text(), Key: c.text(),
	}
}

// loadFeeds reads what waits.
func loadFeeds(out *[]models.Waiting) []call {
	return []call{
		{name: "load_feeds", read: func(c *columns) {
			*out = append(*out, models.Waiting{
				Feed:  models.Feed{Env: c.int4(), Source: models.Source(c.int2()), Name: c.text(), Schedule: c.id()},
				Count: c.int8(), FirstAt: c.instant(), LastAt: c.instant(),
			})
		}},
		{name: "load_queues", read: func(c *columns) {
			*out = append(*out, models.Waiting{
				Feed: models.Feed{Env: c.int4(), Source: models.FromQueue, Name: c.text()}, Count: c.int8(), FirstAt: c.instant(), LastAt: c.instant(),
			})
		}},
	}
}
