package models

import "encoding/json"

// CursorKind says what a cursor does to the rows it passes.
type CursorKind int16

// The cursors.
const (
	EnterStaged     CursorKind = iota // staged rows of a staging enter the world
	CancelWorkflow                    // tasks of a workflow are cancelled or asked to stop
	RedriveDead                       // dead letters of a fingerprint get another life
	DiscardDead                       // dead letters of a fingerprint are given up
	CancelChildren                    // children of a task that are not detached are cancelled or asked to stop
	OpenWorkflow                      // tasks parked because their workflow was shut come back
	RedriveWorkflow                   // dead letters of a workflow get another life
	RankWorkflow                      // tasks of a workflow that have its old priority get the new one
	BulkAction                        // Action is done to the tasks that were listed under Target
	Backfilled                        // the record of occurrences that were made up, of the schedule Target: it is finished when it is written
)

// Cursor is work on many rows, done in slices of at most 1,000 between ordinary batches; it survives a brain.
type Cursor struct {
	ID       ID
	Env      int32
	Kind     CursorKind
	Target   ID    // staging, workflow or fingerprint
	Wide     int32 // of EnterStaged: the most tasks outside the body that one of its rows waits for
	After    ID    // the last row it passed
	Until    ID    // rows with larger ids are not its business; zero: none
	Matched  int64
	Done     int64
	Failed   int64
	Finished bool
	Reason   string
	Actor    Actor
	At       Instant

	// Of a BulkAction.
	Action   Action
	Priority int16           // for reprioritise
	Lane     string          // for move
	Patch    json.RawMessage // merged into the payload of what is retried; nil: none
	Rate     float64         // tasks a second; 0: as fast as it goes
	NextAt   Instant         // not before then
	Paused   bool
	Dropped  bool // somebody ended it
}

// Action is what a bulk action does to a task.
type Action int16

// The actions.
const (
	ActRetry Action = iota
	ActDiscard
	ActCancel
	ActReprioritise
	ActMove
)

var actionNames = [...]string{"retry", "discard", "cancel", "reprioritise", "move"}

func (a Action) String() string { return actionNames[a] }

// ParseAction reads an action's name.
func ParseAction(name string) (Action, bool) {
	for a, n := range actionNames {
		if n == name {
			return Action(a), true
		}
	}
	return 0, false
}
