package sim

import (
	"time"

	"nightshift/models"
)

// Scenario is a world to live through.
type Scenario struct {
	Seed     uint64
	Tenants  []Tenant
	Kinds    []models.Kind // that differ from what a platform begins with
	Lanes    []Lane
	Workers  []Worker
	Arrivals []Arrival
	Faults   Faults
	Until    time.Duration // the world ends here at the latest; sooner when everything has ended
	Board    Board
	// Peak is what is foreseen, as the engine asks for it; nil: its own forecast says.
	Peak func(pool string, kinds []models.KindName, from, until models.Instant) float64

	Drains     bool // everything acknowledged must have ended when the world does
	Conserving bool // any worker can do any task: none may wait while one is ready
	Keep       bool // the trace is kept as text, not only its hash
	Lag        bool // the service of each two tenants is compared at each moment
	Points     int  // of the timeline; 0: none is kept
	// Pace is how often the brain looks what time alone has changed; 0: as soon as it wants to. A world of months
	// looks once a minute and its workers' leases are longer.
	Pace time.Duration
}

// Tenant is a customer with one production environment.
type Tenant struct {
	Name    string
	Weight  float64
	Quotas  models.Quotas      // none where it is empty
	Types   []models.TaskType  // what its environment says of types
	Rates   []models.RateLimit // of its environment
	Budgets []models.Budget    // of the tenant; ids and tenant are given by the world
}

// Lane stands beside the four that an environment starts with, or says what is different of one of those.
type Lane struct {
	Tenant        string
	Name          string
	Kind          models.KindName
	MaxConcurrent int32
	TaskTypes     []string
	Elastic       bool
	YieldsTo      []string
	MaxHold       int32 // seconds
}

// Worker is one or more like processes.
type Worker struct {
	Name          string
	Count         int           // 0: one
	From          time.Duration // when it comes
	To            time.Duration // when it drains and goes; 0: it stays
	models.Worker               // what it advertises; ids, session and instance are given by the world
}

// Arrival is work that comes: Count times, Every so often, Batch tasks at a time.
type Arrival struct {
	Name        string // of its own line in the result; empty: its tenant's
	Tenant      string
	Class       models.Class
	Lane        string // empty: routed by type
	At          time.Duration
	Every       time.Duration
	Poisson     bool // the gaps are exponential, Every is their mean
	Closed      int  // this many clients: each sends its next batch Every after the last one ended
	Count       int  // 0: once
	Batch       int  // 0: one task
	Run         time.Duration
	Shape       Shape
	Spread      float64 // even: run times are in Run × (1 ± Spread); lognormal: sigma
	Estimated   bool    // the caller tells the run time it expects of such a task
	Exact       bool    // it knows the run time of this very task
	Wrong       float64 // sigma of the lognormal factor by which what it tells is wrong
	Deadline    time.Duration
	Slack       float64 // × the task's own run time, added to Deadline; with either a task has a deadline
	Priority    int16
	PriorityTo  int16 // above Priority: priorities are even between the two
	LimitKey    string
	KeyLimit    int32
	Keys        int              // that many keys in turn, named LimitKey-0 and so on
	Tokens      int64            // each task tells that it uses so many; its class says that it does
	CostMicro   int64            // that an attempt of it costs, whatever becomes of it
	Told        int64            // that it is said to cost; 0: nothing is said
	Concurrency []models.TaskKey // keys beside LimitKey
	RateKeys    []string
	Ordered     bool
	MaxAttempts int32
	FailPercent int           // of attempts
	Hard        time.Duration // hard timeout; 0: the kind's
	Chain       bool          // the tasks of a batch are a workflow, one after the other
	Graph       []Node        // each of a batch is a workflow of these tasks, Run being theirs
	Items       []Item        // instead of Every, Count, Batch, Run: these very tasks
}

// Node is one task of a graph.
type Node struct {
	Run   time.Duration
	After []int // earlier nodes it waits for
}

// Item is one task that was seen or made elsewhere.
type Item struct {
	At       time.Duration
	Run      time.Duration
	Estimate time.Duration // 0: none is told
	Deadline time.Duration // after its arrival; 0: none
	Priority int16
	Class    models.Class // its type empty: the arrival's
	Group    int          // tasks of one workflow, one after the other in Items, share a number; 0: none
	After    []int        // items of its group it waits for
}

// Shape is how run times are spread.
type Shape string

// The shapes.
const (
	Even        Shape = "even"
	Exponential Shape = "exponential"
	Lognormal   Shape = "lognormal"
)

// Faults are what goes wrong, all of it drawn from the seed.
type Faults struct {
	CrashEvery     time.Duration // mean time between deaths of any one worker of the fleet; 0: none dies
	DownFor        time.Duration // until it begins anew
	LostAnswers    int           // percent of the answers to workers that never arrive
	BrainEvery     time.Duration // another brain takes over
	FailedApplies  int           // per mille of commits that are rolled back
	UnclearApplies int           // per mille of commits whose answer is lost, half of them having happened
}

// Board bounds the engine's board; zero fields take the engine's defaults.
type Board struct{ Heads, MostEntries, Slice int }
