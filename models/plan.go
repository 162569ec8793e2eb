package models

import "encoding/json"

// Plan is what a batch of commands wants changed, as data. A store applies it whole or not at all, in this order:
// fence, batch row, configuration, inserts, changes, edges fired with their counters, then reads Effects.
type Plan struct {
	Cell  int16
	Epoch int64 // the brain's; a store refuses another with FenceLost
	Batch int64
	At    Instant

	Tenants      []Tenant // whole rows: insert, or replace by Number
	Environments []Environment
	Kinds        []Kind
	Lanes        []Lane // replace by Number
	LanesGone    []int32
	Classes      []Class  // new ones; numbers are given by the engine
	Workers      []Worker // whole rows: insert, or replace by ID
	Seen         []Seen   // saved last_seen of workers
	Virtual      []Virtual
	Estimates    []Estimate

	Workflows       []Workflow // new ones
	WorkflowChanges []Workflow // state, counts, times replaced by ID
	Tasks           []Task     // new rows as they stand at the end of the batch (perhaps already running)
	Specs           []Spec     // beside the new rows
	Labels          []Label
	Edges           []Edge // of new tasks; Remaining and Killed of Tasks already count what these say
	Changes         []Change
	Attempts        []Attempt
	Ends            []End // tasks with dependants that ended or died: their open edges fire or are killed
	MostEdges       int   // of Ends, how many edges move at most; 0: all. What is left comes back as Effects.Unfired
	Progress        []Progress
	Flips           []ID // staging rows that now are part of the world
	Cursors         []Cursor
	Done            []ID // ids of commands that make no row, to recognise a resend
	Once            []Once
	Late            []Late
	Events          []Event
	Audit           []Audit
	Waits           []Wait // before the changes and the edges that fire
	Overrides       []Override
	LabelsGone      []Label // before Labels are written
	Signals         []Signal
	SignalsGone     []ID
	Qualities       []Quality
	Dedupes         []Dedupe // replaced by environment and key
	Watermarks      []Watermark
	Shuts           []FlowShut
	Spends          []FlowSpend
	Schedules       SchedulePlan
}

// Empty says that there is nothing to commit.
func (p *Plan) Empty() bool {
	return len(p.Tenants)+len(p.Environments)+len(p.Kinds)+len(p.Lanes)+len(p.LanesGone)+len(p.Classes)+len(p.Workers)+
		len(p.Seen)+len(p.Virtual)+len(p.Estimates)+len(p.Workflows)+len(p.WorkflowChanges)+len(p.Tasks)+len(p.Changes)+len(p.Attempts)+
		len(p.Ends)+len(p.Progress)+len(p.Flips)+len(p.Cursors)+len(p.Done)+len(p.Once)+len(p.Late)+len(p.Events)+len(p.Audit)+
		len(p.Waits)+len(p.Overrides)+len(p.LabelsGone)+len(p.Signals)+len(p.SignalsGone)+len(p.Qualities)+len(p.Dedupes)+len(p.Watermarks)+
		len(p.Shuts)+len(p.Spends) == 0 && p.Schedules.Empty()
}

// Change is an existing task's row after the batch. All of After is written, flags and gate too, but the two counters.
// From may equal After.State (parking, an edit); else it is one or more rows of the Law after another.
// The store changes it only while the row still stands in From and carries Token; if not, the whole plan fails with
// RowCount. Remaining and Killed of After are ignored: they are counters that only Edges and Ends change.
type Change struct {
	From  State
	Token ID // the live lease's token before, zero when there was none
	After Task
}

// Late is the usage of an attempt whose lease was lost, reported afterwards; booked once.
type Late struct {
	Env   int32
	Task  ID
	Token ID
	Usage []byte
}

// End says that the edges of a task may fire.
type End struct {
	Env   int32
	Task  ID
	State State
	After ID // edges that lead to smaller ids have moved already; zero: none has
}

// Seen is a worker's last sign of life, saved every ten seconds.
type Seen struct {
	Worker ID
	At     Instant
}

// Virtual is a saved virtual time of fair queueing: in seconds, for a tenant in a pool and kind; Tenant 0 is the pool's.
type Virtual struct {
	Pool   string
	Kind   KindName
	Tenant int32
	Time   float64
}

// Estimate is a saved histogram of run times, for a tenant and class.
type Estimate struct {
	Tenant int32
	Class  int32
	Counts []byte // scheduler/estimate's own form
}

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
)

// Cursor is work on many rows, done in slices of at most 1,000 between ordinary batches; it survives a brain.
type Cursor struct {
	ID       ID
	Env      int32
	Kind     CursorKind
	Target   ID // staging, workflow or fingerprint
	After    ID // the last row it passed
	Until    ID // rows with larger ids are not its business; zero: none
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

// Effects is what applying a plan set free.
type Effects struct {
	// Freed are tasks touched by the plan's edges that are pending with Remaining = 0 or Killed > 0, whole rows.
	Freed []Task
	// Unfired are ends of which edges are left, because of MostEdges: a later plan goes on with them as they are. They
	// are kept in the store until then.
	Unfired []End
}

// Need names what a batch of commands must know of the database before it can be decided.
type Need struct {
	Tasks      []TaskRef   // whole rows
	IdemKeys   []IdemRef   // who holds a business key
	Workflows  []TaskRef   // rows with counts taken from the tasks
	Once       []OnceRef   // earlier calls with an Idempotency-Key
	Done       []ID        // resent commands
	Slices     []SliceNeed // the next rows of cursors
	Stagings   []ID        // what was staged
	Policies   []TaskRef   // retry policies of failed tasks
	Tokens     []TokenRef  // reports whose lease is not on the board
	Children   []ChildRef  // by the key their parent gave them
	Dedupes    []IdemRef   // who holds a dedupe key
	Watermarks []IdemRef   // by name
	Judged     []TaskRef   // what conditions are judged by
	Schedules  []TaskRef   // what schedules do that are due
}

// Empty says that only the clock is asked for.
func (n *Need) Empty() bool {
	return len(n.Tasks)+len(n.IdemKeys)+len(n.Workflows)+len(n.Once)+len(n.Done)+len(n.Slices)+len(n.Stagings)+len(n.Policies)+len(n.Tokens)+len(n.Children)+len(n.Dedupes)+len(n.Watermarks)+
		len(n.Judged)+len(n.Schedules) == 0
}

// TaskRef names a row of an environment.
type TaskRef struct {
	Env int32
	ID  ID
}

// IdemRef names a business idempotency key.
type IdemRef struct {
	Env int32
	Key string
}

// OnceRef names an Idempotency-Key.
type OnceRef struct{ Scope, Key string }

// TokenRef names an attempt by its task and its lease's token.
type TokenRef struct {
	Env   int32
	Task  ID
	Token ID
}

// SliceNeed asks (with the payloads, where the cursor has a Patch) for the next rows of a cursor: ids above After (and ≤ Until when set), ascending, at most Limit.
// EnterStaged: the staged rows of the staging Target. CancelWorkflow: not final tasks of workflow Target.
// RedriveDead and DiscardDead: dead letters of fingerprint Target. BulkAction: tasks that were listed under Target.
type SliceNeed struct {
	Cursor Cursor
	Limit  int
}

// Facts answers a Need, read in one round trip with the database's clock.
type Facts struct {
	Now        Instant
	Tasks      map[TaskRef]Task
	IdemKeys   map[IdemRef]Task
	Workflows  map[TaskRef]Workflow
	Once       map[OnceRef]Once
	Done       map[ID]int64 // the batch that did it
	Slices     map[ID][]Task
	Stagings   map[ID]Staging
	Policies   map[TaskRef]RetryPolicy     // from the specs; absent where a spec has none
	Tokens     map[TokenRef]Attempt        // attempts that ended: Outcome, N, and whether Usage is booked
	Payloads   map[TaskRef]json.RawMessage // of the rows of slices whose cursor has a Patch
	Children   map[ChildRef]Task
	Dedupes    map[IdemRef]Deduped
	Watermarks map[IdemRef]Watermark
	Judged     map[TaskRef]Judged
	Schedules  map[TaskRef]ScheduleWork
}

// Staging is a body too large for one command, written by a replica as staged rows before it is flipped.
type Staging struct {
	ID      ID
	Env     int32
	Tasks   int64
	At      Instant
	Flipped bool
}

// StagedBody is what a replica writes in transactions of its own: rows in state Staged (their Remaining counts the
// edges of this body that are open), specs, labels and edges inside the body.
type StagedBody struct {
	Staging Staging
	Tasks   []Task
	Specs   []Spec
	Labels  []Label
	Edges   []Edge
}

// LineID names a line.
type LineID struct {
	Lane  int32
	Env   int32
	Class int32
}

// Mark is a place in a line.
type Mark struct {
	AgeKey int64
	ID     ID
}

// Less orders marks.
func (m Mark) Less(o Mark) bool {
	return m.AgeKey < o.AgeKey || m.AgeKey == o.AgeKey && m.ID.Compare(o.ID) < 0
}

// LineAsk asks for the next rows of a line above a mark, in order of rank. With Gate it asks for parked rows.
type LineAsk struct {
	Line    LineID
	Gate    string
	ByStart bool // of those with a deadline, in order of (LatestStart, id); After then is such a mark
	After   Mark // zero: from the head
	Limit   int
}

// TimerAsk asks for rows whose WakeAt or ExpiresAt (of tasks not live and not final) is above After and at most Until,
// ascending by min(WakeAt, ExpiresAt) of those that are set, then id; at most Limit.
type TimerAsk struct {
	After Instant
	Until Instant
	Limit int
}

// RefillAsk is everything the board wants read between two batches.
type RefillAsk struct {
	Lines  []LineAsk
	Timers *TimerAsk
}

// Refill answers a RefillAsk; Lines in the order of the asks.
type Refill struct {
	Lines  [][]Task
	Timers []Task
}

// LineCount is how many ready, ungated tasks a line holds.
type LineCount struct {
	Line   LineID
	Ready  int64
	Heads  []Task // the first rows, in order of rank
	Timed  int64  // of the ready ones, how many have a deadline (LatestStart > 0)
	Starts []Task // the first of those, in order of (LatestStart, id), as many as Heads at most
}

// ParkedCount is how many tasks of a line are parked behind a gate.
type ParkedCount struct {
	Line  LineID
	Gate  string
	Count int64
	Limit int32 // the largest key limit among them
}

// KeyCount says how many ready, ungated tasks of a line want a concurrency key.
type KeyCount struct {
	Line     LineID
	Key      string
	Admitted int64
	Limit    int32 // the largest key limit among them
}

// Snapshot is what a board is rebuilt from.
type Snapshot struct {
	Now          Instant
	Batch        int64 // the last committed
	Tenants      []Tenant
	Environments []Environment
	Kinds        []Kind
	Lanes        []Lane
	MostLane     int32 // the largest number any lane ever had
	Classes      []Class
	Workers      []Worker // not gone
	Virtual      []Virtual
	Estimates    []Estimate
	Running      []Task // live ones
	Lines        []LineCount
	Parked       []ParkedCount
	Keys         []KeyCount
	Freed        []Task // pending with Remaining = 0 or Killed > 0
	Cursors      []Cursor
	Unfired      []End // a task that ended long ago may be among them, some edges of which have not moved
	Flipped      []Staging
	Signals      []Signal // to live tasks, not delivered yet
	HeldFlows    []HeldFlow
	Schedules    ScheduleSnapshot
}

// Brain is the row that says who decides.
type Brain struct {
	Epoch     int64
	RenewedAt Instant // database clock; 0: handed over
	Address   string
	Batch     int64 // the last committed
	// Beat changes whenever the row does; a standby watches it by its own monotonic clock.
	Beat string
}
