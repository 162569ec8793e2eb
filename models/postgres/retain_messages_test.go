package postgres_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"nightshift/models"
)

const day = 24 * 3600

// message is the nth one of the batch that comes next.
func (w *world) message(source models.Source, name string, n int, key string) models.Message {
	return models.Message{
		Env: env, Source: source, Name: name, Seq: models.SeqOf(w.batch+1, n), ID: newID(w.now), At: w.now, Key: key, Data: []byte(`1`), Size: 1, Matched: 1,
	}
}

// messages writes n messages in one batch, each with a dedupe key, and answers them.
func (w *world) messages(source models.Source, name string, n int) []models.Message {
	w.t.Helper()
	plan := &models.Plan{}
	for i := range n {
		plan.Feeds.Messages = append(plan.Feeds.Messages, w.message(source, name, i, fmt.Sprint(name, " ", w.now, " ", i)))
	}
	w.apply(plan)
	return plan.Feeds.Messages
}

// consume lets a run take messages: the mark is moved and the stretch noted.
func (w *world) consume(by models.ID, task models.ID, taken ...models.Message) {
	w.t.Helper()
	first, last := taken[0], taken[len(taken)-1]
	feed := models.Feed{Env: env, Source: first.Source, Name: first.Name}
	if first.Source == models.FromTrigger {
		feed.Schedule = by
	}
	w.apply(&models.Plan{Feeds: models.FeedPlan{
		Marks: []models.FeedMark{{Feed: feed, After: last.Seq, At: w.now}},
		Takes: []models.Take{{
			Env: env, Run: newID(w.now), Source: first.Source, Name: first.Name, First: first.Seq, Last: last.Seq, Count: int32(len(taken)),
			Bytes: int64(len(taken)), Task: task,
		}},
	}})
}

// left counts the messages of a name that are there.
func (w *world) left(name string) int {
	w.t.Helper()
	return one[int](w.t, w.db, `SELECT count(*) FROM messages WHERE name = $1`, name)
}

func (w *world) leftAre(when string, want map[string]int) {
	w.t.Helper()
	for name, n := range want {
		if got := w.left(name); got != n {
			w.t.Errorf("%s: of %q %d messages are left, want %d", when, name, got, n)
		}
	}
}

// What was taken goes with its dedupe key, thirty days after it came; what waits never does.
func TestRetainDeletesMessagesThatWereTaken(t *testing.T) {
	w := newWorld(t)
	now := w.now
	slow, quick := newID(now), newID(now)
	w.now = now.Add(-models.Seconds(40 * day))
	nobody := w.messages(models.FromTrigger, "nobody", 3)
	both := w.messages(models.FromTrigger, "both", 10)
	w.messages(models.FromTrigger, "unread", 4)
	w.apply(&models.Plan{Feeds: models.FeedPlan{Marks: []models.FeedMark{{Feed: models.Feed{Env: env, Name: "unread", Schedule: slow}, At: w.now}}}})
	w.consume(quick, models.ID{}, both...)
	w.consume(slow, models.ID{}, both[:4]...)
	w.messages(models.FromQueue, "full", 5) // nobody drains it
	drained := w.messages(models.FromQueue, "drained", 6)
	kept := w.ready() // dead letters may be redriven years later, and ask for their items then
	kept.ID, kept.Fingerprint = newID(w.now), newID(w.now)
	kept = w.ended(w.started(kept), models.DeadLetter)
	w.apply(w.beside(kept))
	w.consume(models.ID{}, models.ID{}, drained[:2]...)
	w.consume(models.ID{}, kept.ID, drained[2:4]...)
	w.now = now.Add(-models.Seconds(29 * day))
	young := w.messages(models.FromTrigger, "young", 2)
	w.consume(quick, models.ID{}, young...)
	gone := w.retain(now)
	delete(gone, "events") // the plans' own
	if want := map[string]int64{"messages": 3 + 4 + 2, "takes": 3}; !maps.Equal(gone, want) {
		t.Errorf("gone: %v, want %v", gone, want)
	}
	want := map[string]int{"nobody": 0, "both": 6, "unread": 4, "full": 5, "drained": 4, "young": 2}
	w.leftAre("at first", want)
	known := w.facts(&models.Need{MessageKeys: []models.KeyRef{
		{Env: env, Name: "nobody", Key: nobody[0].Key}, {Env: env, Name: "both", Key: both[3].Key}, {Env: env, Name: "both", Key: both[4].Key}, {Env: env, Name: "young", Key: young[0].Key},
	}}).MessageKeys
	if len(known) != 2 || known[models.KeyRef{Env: env, Name: "both", Key: both[4].Key}].ID != both[4].ID || known[models.KeyRef{Env: env, Name: "young", Key: young[0].Key}].ID != young[0].ID {
		t.Errorf("the keys of what is gone are %+v", known)
	}
	if again := w.retain(now.Add(models.Seconds(3600))); again["messages"]+again["takes"] != 0 {
		t.Errorf("an hour later: %v", again)
	}
	w.leftAre("an hour later", want)
	w.consume(slow, models.ID{}, both[4:]...)
	w.consume(models.ID{}, models.ID{}, drained[4:]...)
	exec(t, w.db, `UPDATE tasks SET state = 8`) // the dead letter went well after all
	for range 3 {                               // the task, what it took, the items
		w.retain(now.Add(models.Seconds(31 * day)))
	}
	w.leftAre("once all is taken", map[string]int{"both": 0, "unread": 4, "full": 5, "drained": 0, "young": 0})
	if n := one[int](t, w.db, `SELECT count(*) FROM takes`); n != 0 {
		t.Errorf("%d takes are left", n)
	}
	if n := one[int](t, w.db, `SELECT count(*) FROM feed_marks WHERE source = 1`); n != 0 {
		t.Errorf("%d marks of queues that hold nothing are left", n)
	}
	if n := one[int](t, w.db, `SELECT count(*) FROM feed_marks WHERE source = 0`); n != 4 {
		t.Errorf("%d marks of schedules are left, want all 4: they are their places", n)
	}
}

// A call deletes a bounded number of each, in slices; the next one goes on, and what waits in front of it does not stop it.
func TestRetainDeletesMessagesInSlices(t *testing.T) {
	w := newWorld(t)
	const waiting, taken, runs = 20_000, 61_500, 1_500
	fill := func(name string, from, n int) {
		exec(t, w.db, `INSERT INTO messages (source, env, name, seq, id, at, matched, size, key, data)
			SELECT 1, 1, $1::text, i, gen_random_uuid(), 1, 0, 1, CASE WHEN i % 10 = 0 THEN 'k' || i END, '1' FROM generate_series($2::int, $2::int + $3::int - 1) i`, name, from, n)
	}
	fill("a waits", 1, waiting)
	fill("drained", 1, taken)
	fill("drained", taken+1, waiting)
	w.apply(&models.Plan{Feeds: models.FeedPlan{Marks: []models.FeedMark{{Feed: models.Feed{Env: env, Source: models.FromQueue, Name: "drained"}, After: taken, At: w.now}}}})
	exec(t, w.db, `INSERT INTO takes (env, run, n, source, name, first, last, count, bytes)
		SELECT 1, (lpad(to_hex(i), 12, '0') || '70008000000000000000')::uuid, 0, 1, 'drained', (i - 1) * 41 + 1, i * 41, 41, 41 FROM generate_series(1, $1::int) i`, runs)
	began := time.Now()
	first := w.retain(w.now)
	t.Logf("%d messages and %d takes went in %s, %d waited", first["messages"], first["takes"], time.Since(began).Round(time.Millisecond), 2*waiting)
	second, third := w.retain(w.now), w.retain(w.now)
	if !maps.Equal(first, map[string]int64{"takes": runs, "messages": 60_000}) || !maps.Equal(second, map[string]int64{"messages": taken - 60_000}) || len(third) != 0 {
		t.Errorf("gone: %v, then %v, then %v", first, second, third)
	}
	w.leftAre("at the end", map[string]int{"a waits": waiting, "drained": waiting})
	s := w.load(1, 1)
	for _, row := range s.Waiting {
		if row.Count != waiting {
			t.Errorf("of %s wait %d", row.Name, row.Count)
		}
	}
	if len(s.Waiting) != 2 {
		t.Errorf("what waits is %+v", s.Waiting)
	}
}
