package models

import "encoding/json"

// Task is the hot row of a task: what decisions read and change. Its input stands in a Spec beside it, written once.
// Two counters are only ever changed relatively by the store and read back: Remaining and Killed.
type Task struct {
	Env   int32
	ID    ID
	State State
	Gate  string // why a ready task is parked, "key:<name>" or "quarantine"; empty: it stands in its line
	Lane  int32
	Class int32

	Priority int16   // 0–100
	AgeKey   int64   // rank in its line, ascending: first ready moment − priority × 60 s, in µs
	ReadyAt  Instant // first became ready; kept over retries
	WakeAt   Instant // when time alone changes the row (run_at, retry); 0: never
	// ExpiresAt is when it must have started; 0: no such moment.
	// In a staged row, whose clock has not begun, it is the span in µs.
	ExpiresAt   Instant
	Deadline    Instant // it should have ended by then: it orders, it never ends anything; 0: none
	LatestStart Instant // when it must start to make its deadline, fixed when it becomes ready; 0: no deadline
	CreatedAt   Instant
	UpdatedAt   Instant
	StartedAt   Instant // of the running attempt, else of the last one
	FinishedAt  Instant

	Attempt      int32 // starts so far
	AttemptsUsed int32 // what max_attempts limits
	MaxAttempts  int32
	LeasesLost   int32 // in this life: those toward poison, and UncountedLoss for each that is nobody's fault
	Remaining    int32 // dependencies and children still open
	Killed       int32 // edges that can no longer fire

	Workflow ID
	Parent   ID
	Key      string // its key in the workflow; empty outside
	IdemKey  string // business idempotency key; empty when none
	LimitKey string // first concurrency key; empty when none
	KeyLimit int32  // how many live tasks may hold LimitKey
	MoreKeys string // further keys, as PackKeys writes them; empty when none
	OrderKey int64  // its place among the ordered tasks of its keys: when it first became ready; 0: not ordered, or not yet

	Worker       ID // of the running attempt
	AttemptID    ID
	Token        ID // the lease's token; zero when not live
	LeaseUntil   Instant
	Cards        int64 // which of the worker's cards it got, a bit each
	HardSeconds  int32
	SoftSeconds  int32
	DelaySeconds int32   // counts from the end of the dependencies; 0 when run_at is known
	EstimateMS   int64   // the caller's estimate of its run time, else 0
	Flags        Flags   // see below
	ErrorClass   string  // of the last failure
	Fingerprint  ID      // of a dead letter, else zero
	CancelAt     Instant // when a cancel was asked of a running task
	TotalSeconds int32   // from the first start over all attempts and waits; 0: no limit
	TotalUntil   Instant // the moment that makes, known from the first start on
	Depth        int32   // how many parents stand above it
	Tokens       int64   // it is expected to use a run, else 0
	CostMicro    int64   // it is expected to cost a run, in millionths of a dollar; 0: nothing is said; Free: nothing
}

// UncountedLoss is what a lost lease adds to LeasesLost that does not count toward poison, because many were lost at once. No task
// loses so many that count.
const UncountedLoss = 1_000

// Poisonous is how many lost leases count toward poison.
func (t *Task) Poisonous() int32 { return t.LeasesLost % UncountedLoss }

// AllLost is how many leases the task lost in this life.
func (t *Task) AllLost() int32 { return t.Poisonous() + t.LeasesLost/UncountedLoss }

// Free is the CostMicro of a task that is said to cost nothing.
const Free = -1

// SameButMoves says whether two rows of a task differ at most in what starts and ends move: state, attempts, lease, the
// times of both and the two counters.
func SameButMoves(a, b *Task) bool {
	like := *a
	like.State, like.Attempt, like.AttemptsUsed = b.State, b.Attempt, b.AttemptsUsed
	like.UpdatedAt, like.StartedAt, like.FinishedAt = b.UpdatedAt, b.StartedAt, b.FinishedAt
	like.LeaseUntil, like.Cards, like.Worker, like.AttemptID, like.Token = b.LeaseUntil, b.Cards, b.Worker, b.AttemptID, b.Token
	like.Remaining, like.Killed = b.Remaining, b.Killed
	return like == *b
}

// Flags are facts of a task's row. HasDependants may be added later by a Change that keeps the state.
type Flags int16

// The flags.
const (
	HasDependants Flags = 1 << iota // edges lead from it: its end must fire them
	HasPolicy                       // its spec carries a retry policy of its own
	FailWhenSpent                   // on_attempts_exhausted: fail
	NeedsApproval                   // somebody must say yes before it starts
	Approved                        // somebody did
	Detached                        // a child on its own: a cancel of its parent does not reach it, and nobody waits for it
	HasChildren                     // it spawned: a cancel must reach them
	HasCondition                    // its spec carries a run_if, judged when nothing is left to wait for
	StopsFlow                       // its failure stops its workflow
	SpendsFlow                      // its workflow has a limit of cost, tokens or retries: it starts, and is tried again, only while that is known
	SkippedByHand                   // its edges fire as if it had succeeded
	Itemized                        // it carries items: how far they are stands in an Items row beside it
	Ordered                         // tasks of its concurrency keys start in the order they became ready
	RetriesSpent                    // it would have been tried again, but its workflow's budget of retries was used up
	ChoosesModel                    // the model in its class was chosen, and another may be; what was wanted stands in a Choice beside it
)

// Has says whether f is set.
func (t *Task) Has(f Flags) bool { return t.Flags&f != 0 }

// HoldsIdle says that the task holds its concurrency keys without running: an ordered one that waits to be tried again, or
// is dead, lets none of those behind it pass.
func (t *Task) HoldsIdle() bool {
	return t.OrderKey != 0 && (t.State == RetryWait || t.State == DeadLetter)
}

// EndState is the state by which the task's edges fire.
func (t *Task) EndState() State {
	if t.State == Skipped && t.Has(SkippedByHand) {
		return Succeeded
	}
	return t.State
}

// AgePerPoint is what one point of priority is worth in waiting.
const AgePerPoint = 60 * 1_000_000

// AgeKeyOf ranks a task in its line: with linear ageing the order of two tasks never changes, so it is fixed once.
func AgeKeyOf(ready Instant, priority int16) int64 { return int64(ready) - int64(priority)*AgePerPoint }

// Spec is what was submitted, written once beside the task's row.
type Spec struct {
	Env     int32
	ID      ID
	Input   json.RawMessage // the accepted request without its payload, as answered back
	Payload json.RawMessage // opaque JSON text; validated once
	Trace   string          // traceparent, or empty
	Parent  ID              // redrive_of
}

// Label is one label of a task, a row of its own so that lists can filter by it.
type Label struct {
	Env        int32
	Task       ID
	Key, Value string
}

// On is when an edge fires.
type On int16

// The conditions of an edge.
const (
	OnSucceeded On = iota
	OnFailed
	OnFinished
	OnChild // of a child to its parent: it fires once the child is final or dead; nobody asks for it by name
)

var onNames = [...]string{"succeeded", "failed", "finished", "child"}

func (o On) String() string { return onNames[o] }

// ParseOn reads a condition's name.
func ParseOn(name string) (On, bool) {
	for o, n := range onNames {
		if n == name && On(o) != OnChild {
			return On(o), true
		}
	}
	return 0, false
}

// EdgeState is what became of an edge. It leaves Open at most once in its life.
type EdgeState int16

// The states of an edge.
const (
	EdgeOpen EdgeState = iota
	EdgeFired
	EdgeKilled
	EdgeStaged // of a staged row to a task outside its body: it is judged when the row enters, and open to nobody before
)

// Edge says that To waits for From.
type Edge struct {
	Env      int32
	From, To ID
	On       On
	State    EdgeState
}

// After is what the state s of its source does to an edge: a dead letter leaves "succeeded" open.
func (o On) After(s State) EdgeState {
	switch {
	case s == DeadLetter:
		if o == OnSucceeded {
			return EdgeOpen
		}
		return EdgeFired
	case !s.Final():
		return EdgeOpen
	case o == OnFinished, o == OnChild, o == OnSucceeded && s == Succeeded, o == OnFailed && s == Failed:
		return EdgeFired
	}
	return EdgeKilled
}

// Outcome is how an attempt ended.
type Outcome int16

// The outcomes of attempts.
const (
	AttemptRunning Outcome = iota
	AttemptSucceeded
	AttemptFailed
	AttemptCancelled
	AttemptReleased
	AttemptSuspended
	AttemptLost
	AttemptTimedOut
)

var outcomeNames = [...]string{"running", "succeeded", "failed", "cancelled", "released", "suspended", "lost", "timed_out"}

func (o Outcome) String() string { return outcomeNames[o] }

// Attempt is the record of one execution, written once when it ends.
type Attempt struct {
	Env           int32
	Task          ID
	N             int32
	ID            ID
	Token         ID // its lease's token, so that a late or doubled report is recognised
	Worker        ID
	WorkerVersion string
	Outcome       Outcome
	Pool          string
	StartedAt     Instant
	FinishedAt    Instant
	ChargedMS     int64           // dominant resource milliseconds charged to its tenant
	Error         *TaskError      // nil when it did not fail
	Usage         json.RawMessage // as reported, or nil
	Result        json.RawMessage // of a success, or nil
	Model         string
}

// TaskError is what a worker says of a failure.
type TaskError struct {
	Class            string          `json:"class"`
	Message          string          `json:"message"`
	Stack            string          `json:"stack,omitempty"`
	ProviderResponse json.RawMessage `json:"provider_response,omitempty"`
}

// Progress is what a running attempt said last; its checkpoint is handed to the next attempt.
type Progress struct {
	Env        int32
	Task       ID
	Progress   json.RawMessage // nil: unchanged
	Checkpoint json.RawMessage // nil: unchanged
}

// WorkflowState is where a workflow stands.
type WorkflowState int16

// The states of a workflow.
const (
	WorkflowRunning WorkflowState = iota
	WorkflowSucceeded
	WorkflowFailed
	WorkflowCancelled
	WorkflowPaused
)

var workflowStateNames = [...]string{"running", "succeeded", "failed", "cancelled", "paused"}

func (s WorkflowState) String() string { return workflowStateNames[s] }

// Final says that the workflow has ended. A failed one returns to running when a dead letter of it is redriven.
func (s WorkflowState) Final() bool { return s != WorkflowRunning && s != WorkflowPaused }

// Counts is how many tasks stand in each state, indexed by State.
type Counts [states]int32

// Left is how many tasks can still move by themselves; dead letters cannot.
func (c *Counts) Left() (n int32) {
	for s := Staged; s < DeadLetter; s++ {
		n += c[s]
	}
	return n
}

// Total is how many tasks there are.
func (c *Counts) Total() (n int32) {
	for _, v := range c {
		n += v
	}
	return n
}

// Workflow is the row of a workflow. Counts follow from the tasks' rows and are saved at most once a second.
type Workflow struct {
	Env        int32
	ID         ID
	Name       string
	State      WorkflowState
	Counts     Counts
	Cancelling bool     // it was cancelled and what lives is asked to stop
	Stops      bool     // on_failure: stop
	Over       bool     // a budget ended it
	Gate       FlowGate // only FlowShut of a plan changes it
	Budget     FlowBudget
	Depth      int32   // the deepest task so far
	Grown      int32   // how often tasks were added to it
	EndsAt     Instant // by its run time; 0: it does not end by time
	Used       Spend   // what FlowSpend of all plans add up to
	Priority   int16
	Input      json.RawMessage // labels and lane, as answered back
	RerunOf    ID
	Items      int32 // of a batch, how many there are; 0: it is none
	CreatedAt  Instant
	FinishedAt Instant
	UpdatedAt  Instant
}
