package models

import "encoding/json"

// Plan is what a batch of commands wants changed, as data. A store applies it whole or not at all, in this order:
// fence, batch row, configuration, inserts, changes, edges fired with their counters, then reads Effects.
type Plan struct {
	Cell  int16
	Epoch int64 // the brain's; a store refuses another with FenceLost
	Batch int64
	At    Instant
	Probe bool // committed even when nothing is in it: whether the database can write anything is what it finds out

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
	Corrections  []Correction

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
	Linked          []Edge // EdgeStaged before; of rows that enter, before the edges that fire
	Overrides       []Override
	LabelsGone      []Label // before Labels are written
	Signals         []Signal
	SignalsGone     []ID
	Qualities       []Quality
	Dedupes         []Dedupe // replaced by environment and key
	Watermarks      []Watermark
	Items           []Items // replaced by environment and task
	Shuts           []FlowShut
	Spends          []FlowSpend
	Schedules       SchedulePlan
	Quota           QuotaPlan
	RatesGone       []RateRef   // deleted with their passes, before Rates are written
	Rates           []RateLimit // whole rows: insert, or replace by environment and key
	RatePasses      []RatePass
	Feeds           FeedPlan
	Models          ModelPlan
	Money           MoneyPlan
	Held            []Held // whole rows: insert, or replace by lane and pool
	HeldGone        []HeldRef
}

// Empty says that there is nothing to commit.
func (p *Plan) Empty() bool {
	return !p.Probe && len(p.Tenants)+len(p.Environments)+len(p.Kinds)+len(p.Lanes)+len(p.LanesGone)+len(p.Classes)+len(p.Workers)+
		len(p.Seen)+len(p.Virtual)+len(p.Estimates)+len(p.Corrections)+len(p.Workflows)+len(p.WorkflowChanges)+len(p.Tasks)+len(p.Changes)+len(p.Attempts)+
		len(p.Ends)+len(p.Progress)+len(p.Flips)+len(p.Cursors)+len(p.Done)+len(p.Once)+len(p.Late)+len(p.Events)+len(p.Audit)+
		len(p.Waits)+len(p.Linked)+len(p.Overrides)+len(p.LabelsGone)+len(p.Signals)+len(p.SignalsGone)+len(p.Qualities)+len(p.Dedupes)+len(p.Watermarks)+
		len(p.Items)+len(p.Shuts)+len(p.Spends)+len(p.RatesGone)+len(p.Rates)+len(p.RatePasses)+len(p.Held)+len(p.HeldGone) == 0 && p.Schedules.Empty() && p.Quota.Empty() && p.Feeds.Empty() && p.Models.Empty() && p.Money.Empty()
}

// Change is an existing task's row after the batch. All of After is written, flags and gate too, but the two counters.
// From may equal After.State (parking, an edit); else it is one or more rows of the Law after another.
// The store changes it only while the row still stands in From and carries Token; if not, the whole plan fails with
// RowCount. Remaining and Killed of After are ignored: they are counters that only Edges and Ends change.
type Change struct {
	From  State
	Token ID   // the live lease's token before, zero when there was none
	Brief bool // only what starts and ends move has changed (see SameButMoves): a store may write that alone
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
	Span   float64 // of Tenant 0: what a start is charged ahead, in seconds
	At     Instant // when it was saved; 0: not known
}

// Estimate is what was seen of the run times and uses of tasks, for a tenant and class.
type Estimate struct {
	Tenant int32
	Class  int32
	Counts []byte // scheduler/estimate's own form
}

// Correction is by what the forecast of a pool and kind was off, for each five minutes of the day.
type Correction struct {
	Pool    string
	Kind    KindName
	Factors []byte // scheduler/forecast's own form
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
	Tokens     []TokenRef  // reports whose lease is not on the board, with what they were presumed to have spent
	Children   []ChildRef  // by the key their parent gave them
	Dedupes    []IdemRef   // who holds a dedupe key
	Watermarks []IdemRef   // by name
	Judged     []TaskRef   // what conditions are judged by
	Items      []TaskRef   // how far the items of tasks are
	Schedules  []TaskRef   // what schedules do that are due
	Blockers   []TaskRef   // whom tasks wait for
	Variables  []int32     // of environments

	Feeds       []FeedNeed // messages that are about to be taken
	MessageKeys []KeyRef   // the last messages with dedupe keys
	Messages    []ID       // of resent commands

	Choices   []TaskRef    // which models were chosen last
	Qualities []QualityRef // what sources said of results before
}

// Empty says that only the clock is asked for.
func (n *Need) Empty() bool {
	return len(n.Tasks)+len(n.IdemKeys)+len(n.Workflows)+len(n.Once)+len(n.Done)+len(n.Slices)+len(n.Stagings)+len(n.Policies)+len(n.Tokens)+len(n.Children)+len(n.Dedupes)+len(n.Watermarks)+
		len(n.Judged)+len(n.Items)+len(n.Schedules)+len(n.Blockers)+len(n.Variables)+len(n.Feeds)+len(n.MessageKeys)+len(n.Messages)+len(n.Choices)+len(n.Qualities) == 0
}

// SliceNeed asks (with the payloads, where the cursor has a Patch) for the next rows of a cursor: ids above After (and ≤ Until when set), ascending, at most Limit.
// EnterStaged: the staged rows of the staging Target. CancelWorkflow: not final tasks of workflow Target, staged ones only
// once their body has flipped.
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
	Outside    map[TaskRef][]Edge          // EdgeStaged, by the rows of slices whose cursor is Wide; their sources are among Tasks
	Policies   map[TaskRef]RetryPolicy     // from the specs; absent where a spec has none
	Tokens     map[TokenRef]Attempt        // attempts that ended: Outcome, N, when they did, and whether Usage is booked
	Payloads   map[TaskRef]json.RawMessage // of the rows of slices whose cursor has a Patch
	Children   map[ChildRef]Task
	Dedupes    map[IdemRef]Deduped
	Watermarks map[IdemRef]Watermark
	Judged     map[TaskRef]Judged
	Items      map[TaskRef]Items
	Schedules  map[TaskRef]ScheduleWork
	Blockers   map[TaskRef][]Blocker
	Variables  map[int32]Variables // of those that have some

	Feeds       map[Feed][]Message // oldest first; a key for each that was asked for
	MessageKeys map[KeyRef]Message // without data
	Messages    map[ID]Message     // without data
	Choices     map[TaskRef]Choice // without their rankings
	Qualities   map[QualityRef]float64
	Presumed    map[TokenRef][]Presumed // of Tokens, by what they are of
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
// edges of this body that are open), specs, labels and edges. Those to tasks outside the body are EdgeStaged.
type StagedBody struct {
	Staging Staging
	Tasks   []Task
	Specs   []Spec
	Labels  []Label
	Edges   []Edge
	Items   []Items
	Choices []Choice
	Made    []ScheduleTask // those that a schedule made
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

// LineAsk asks for the next rows of a line above a mark, in order of rank. With Gate it asks for parked rows; in order of
// OrderKey with ByOrder, then of all lines of the environment.
type LineAsk struct {
	Line    LineID
	Gate    string
	ByOrder bool
	ByStart bool // of those with a deadline, in order of (LatestStart, id); After then is such a mark
	After   Mark // zero: from the head
	Limit   int
	Lower   bool // the rows are looked at whether another model is covered by a budget; else whether their gate lets them go
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

// Snapshot is what a board is rebuilt from.
type Snapshot struct {
	Now          Instant
	Batch        int64   // the last committed
	DecidedAt    Instant // the last moment at which a brain is known to have lived
	Tenants      []Tenant
	Environments []Environment
	Kinds        []Kind
	Lanes        []Lane
	MostLane     int32 // the largest number any lane ever had
	Classes      []Class
	Workers      []Worker // not gone
	Virtual      []Virtual
	Estimates    []Estimate
	Corrections  []Correction
	Running      []Task // live ones
	Lines        []LineCount
	Parked       []ParkedCount
	Keys         []KeyCount
	Standing     []StandingTask // by environment and id
	Idle         []IdleHolder   // by environment and id
	Rates        []RateState
	Freed        []Task // pending with Remaining = 0 or Killed > 0
	Cursors      []Cursor
	Unfired      []End // a task that ended long ago may be among them, some edges of which have not moved
	Flipped      []Staging
	Signals      []Signal // to live tasks, not delivered yet
	HeldFlows    []HeldFlow
	Schedules    ScheduleSnapshot
	Quota        QuotaSnapshot
	Waiting      []Waiting // of feeds of schedules in their order, then of queues
	Models       ModelSnapshot
	Budgets      []BudgetState
	Held         []Held // by lane and pool
}
