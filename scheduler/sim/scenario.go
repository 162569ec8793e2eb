package sim

import (
	"time"

	"nightshift/models"
)

// Scenario is a world to live through.
type Scenario struct {
	Seed     uint64
	Tenants  []Tenant
	Lanes    []Lane
	Workers  []Worker
	Arrivals []Arrival
	Faults   Faults
	Until    time.Duration // the world ends here at the latest; sooner when everything has ended
	Board    Board

	Drains     bool // everything acknowledged must have ended when the world does
	Conserving bool // any worker can do any task: none may wait while one is ready
	Keep       bool // the trace is kept as text, not only its hash
}

// Tenant is a customer with one production environment.
type Tenant struct {
	Name   string
	Weight float64
}

// Lane stands beside the four that an environment starts with.
type Lane struct {
	Tenant        string
	Name          string
	Kind          models.KindName
	MaxConcurrent int32
	TaskTypes     []string
}

// Worker is one or more like processes.
type Worker struct {
	Name          string
	Count         int           // 0: one
	From          time.Duration // when it comes
	models.Worker               // what it advertises; ids, session and instance are given by the world
}

// Arrival is work that comes: Count times, Every so often, Batch tasks at a time.
type Arrival struct {
	Tenant      string
	Class       models.Class
	Lane        string // empty: routed by type
	At          time.Duration
	Every       time.Duration
	Count       int // 0: once
	Batch       int // 0: one task
	Run         time.Duration
	Spread      float64 // run times are even in Run × (1 ± Spread)
	Estimated   bool    // the caller tells the run time it expects
	Priority    int16
	LimitKey    string
	KeyLimit    int32
	MaxAttempts int32 // 0: three
	FailPercent int   // of attempts
	Chain       bool  // the tasks of a batch are a workflow, one after the other
}

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

// Result is what came of it.
type Result struct {
	Hash       string // of the trace
	Trace      []string
	Shares     map[string]float64 // of the slot seconds given while every tenant had ready work
	Contended  time.Duration      // how long that was
	Waits      map[string]Wait
	Makespan   time.Duration // from the first arrival to the last end
	Lived      time.Duration
	Counters   map[string]int64
	Violations []string
}

// Wait is how long a tenant's tasks waited from their arrival to their first start.
type Wait struct{ P50, P99, Most time.Duration }
