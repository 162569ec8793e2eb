package models

import "encoding/json"

// Wait says that a task waits for more others than before, or that some it needed are of no hope: its counters rise.
type Wait struct {
	Env    int32
	Task   ID
	More   int32
	Killed int32
}

// Override is what was changed of a task's input after its spec was written. A nil part stays as it was.
type Override struct {
	Env     int32
	Task    ID
	Input   json.RawMessage
	Payload json.RawMessage
}

// Signal is what somebody sent to a running task by name. It stands until its worker was told.
type Signal struct {
	ID   ID
	Env  int32
	Task ID
	Name string
	Data json.RawMessage
}

// Quality is how good a task's result was, as somebody judged it afterwards; one a source, the last one stands.
type Quality struct {
	Env    int32
	Task   ID
	Source string
	Score  float64
	At     Instant
}

// While is how long a task holds its dedupe key.
type While int16

// The spans of a dedupe key.
const (
	WhileQueued    While = iota // until it starts
	WhileLive                   // until it is final or dead
	WhileSucceeded              // like live, and for some time after a success
)

var whileNames = [...]string{"queued", "live", "succeeded"}

func (w While) String() string { return whileNames[w] }

// ParseWhile reads a span's name.
func ParseWhile(name string) (While, bool) {
	for w, n := range whileNames {
		if n == name {
			return While(w), true
		}
	}
	return 0, false
}

// Dedupe is a dedupe key and the task that got it last.
type Dedupe struct {
	Env        int32
	Key        string
	Task       ID
	While      While
	TTLSeconds int32
}

// Holds says whether the task, as it stands now, keeps the key from others.
func (d *Dedupe) Holds(row *Task, now Instant) bool {
	if d.While == WhileQueued {
		return row.Attempt == 0 && row.State.Waiting()
	}
	if d.While == WhileSucceeded && row.State == Succeeded {
		return now < row.FinishedAt+Instant(d.TTLSeconds)*1_000_000
	}
	return row.State.Waiting() || row.State.Live()
}

// Deduped is a dedupe key with its task's row.
type Deduped struct {
	Dedupe
	Row Task
}

// ChildRef names a child by its parent and the key it was spawned with.
type ChildRef struct {
	Env    int32
	Parent ID
	Key    string
}

// Watermark is a named value of an environment that tasks move on as they go. Its version rises with each change.
type Watermark struct {
	Env     int32
	Name    string
	Value   json.RawMessage
	Version int64
	At      Instant
}
