package models

import (
	"cmp"
	"encoding/json"
)

// Source says where a message came in.
type Source int16

// The sources.
const (
	FromTrigger Source = iota // POST /v1/triggers
	FromQueue                 // items of a queue
)

// Message is a trigger or an item of a queue: it waits for a schedule of kind event or drain. It is written once.
type Message struct {
	Env     int32
	Source  Source
	Name    string // the trigger's or the queue's
	Seq     int64  // SeqOf: they are taken in this order
	ID      ID
	At      Instant
	Key     string          // the same one counts once within KeyHours; empty: none
	Data    json.RawMessage // opaque; nil where only sizes were asked for
	Size    int32           // bytes of Data
	Matched int32           // schedules that it was for
}

// KeyHours is how long a dedupe key of a message is remembered.
const KeyHours = 24

// SeqOf is the number of the nth message of a batch, from 0.
func SeqOf(batch int64, n int) int64 { return batch<<20 + int64(n) }

// Feed names what somebody reads: the triggers of a name as an event schedule sees them, or a queue, which all who drain
// it share (Schedule zero).
type Feed struct {
	Env      int32
	Source   Source
	Name     string
	Schedule ID
}

// Compare orders feeds.
func (f Feed) Compare(o Feed) int {
	return cmp.Or(cmp.Compare(f.Env, o.Env), cmp.Compare(f.Source, o.Source), cmp.Compare(f.Name, o.Name), f.Schedule.Compare(o.Schedule))
}

// FeedMark is how far a feed was read. A queue without one has not been read yet; a trigger's feed is there with its mark.
type FeedMark struct {
	Feed
	After int64
	At    Instant
}

// Take is the stretch of messages that a run took, or one task of it, oldest first.
type Take struct {
	Env    int32
	Run    ID
	N      int32 // from 0
	Source Source
	Name   string
	First  int64 // both inclusive
	Last   int64
	Count  int32
	Bytes  int64 // of their data
	Task   ID    // zero: none was made
}

// FeedPlan is what a batch changes of messages. Marks are replaced by their feed.
type FeedPlan struct {
	Messages  []Message
	Marks     []FeedMark
	MarksGone []Feed
	Takes     []Take
}

// Empty says that nothing changes.
func (p *FeedPlan) Empty() bool {
	return len(p.Messages)+len(p.Marks)+len(p.MarksGone)+len(p.Takes) == 0
}

// FeedNeed asks for the oldest messages of a feed beyond its mark: at most Most, and of those as many as have Bytes
// together, each counted with Beside, and one more. Triggers come with their data, items without.
type FeedNeed struct {
	Feed
	Most   int32
	Bytes  int64
	Beside int32
}

// KeyRef names a dedupe key of a message.
type KeyRef struct {
	Env    int32
	Source Source
	Name   string
	Key    string
}

// Waiting is what stands beyond the mark of a feed. Queues of which nothing waits are left out, feeds of schedules not.
type Waiting struct {
	Feed
	Count   int64
	FirstAt Instant // 0: none waits
	LastAt  Instant
}
