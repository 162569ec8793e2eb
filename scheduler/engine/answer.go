package engine

import (
	"encoding/json"

	"nightshift/models"
)

// Answer is what a command gets: the field of its verb.
type Answer struct {
	Batch     int64       `json:"batch"`
	Replay    bool        `json:"replay,omitempty"` // an Idempotency-Key was known: answer from what is stored
	Made      []models.ID `json:"made,omitempty"`
	Submitted *Submitted  `json:"submitted,omitempty"`
	Interned  []Interned  `json:"interned,omitempty"`
	Claimed   *Claimed    `json:"claimed,omitempty"`
	Beaten    *Beaten     `json:"beaten,omitempty"`
	Settled   []Settled   `json:"settled,omitempty"`
	// Task is the row after cancel, redrive or discard. Workflow likewise.
	Task        *models.Task        `json:"task,omitempty"`
	Workflow    *models.Workflow    `json:"workflow,omitempty"`
	Cursor      *models.Cursor      `json:"cursor,omitempty"`
	Worker      *models.Worker      `json:"worker,omitempty"`
	Tenant      *models.Tenant      `json:"tenant,omitempty"`
	Environment *models.Environment `json:"environment,omitempty"`
	Kind        *models.Kind        `json:"kind,omitempty"`
	Lane        *models.Lane        `json:"lane,omitempty"`
	Looked      *Looked             `json:"looked,omitempty"`
	Watermark   *models.Watermark   `json:"watermark,omitempty"`
	Quotas      *models.Quotas      `json:"quotas,omitempty"`
	Grants      *models.Grants      `json:"grants,omitempty"`
	TaskType    *models.TaskType    `json:"task_type,omitempty"`
	Rate        *models.RateLimit   `json:"rate,omitempty"`
	Budget      *BudgetFigures      `json:"budget,omitempty"`
	Model       *models.Model       `json:"model,omitempty"`

	Schedule      *models.Schedule      `json:"schedule,omitempty"`
	ScheduleState *models.ScheduleState `json:"schedule_state,omitempty"`
	Run           *models.Run           `json:"run,omitempty"`
	Variables     *models.Variables     `json:"variables,omitempty"`
	Matched       int64                 `json:"matched,omitempty"` // of a backfill
	Published     *Published            `json:"published,omitempty"`
	Rehearsed     *Rehearsed            `json:"rehearsed,omitempty"`
}

// Submitted answers a Submit or Flip.
type Submitted struct {
	Tasks    []SubmittedTask  `json:"tasks,omitempty"`
	Workflow *models.Workflow `json:"workflow,omitempty"`
	// HighWater says that a lane of the body was past its high-water mark; EstimatedStart is then set.
	HighWater      bool           `json:"high_water,omitempty"`
	EstimatedStart models.Instant `json:"estimated_start,omitempty"`
	Dry            []DryTask      `json:"dry,omitempty"`
}

// SubmittedTask is one task as it stands after the batch, or the holder of its business key.
type SubmittedTask struct {
	Row          models.Task `json:"row"`
	Deduplicated bool        `json:"deduplicated,omitempty"`
	Foresight    *Foresight  `json:"foresight,omitempty"` // of the first that must start by some moment

	Choice *models.Choice  `json:"choice,omitempty"` // of its model, where it was chosen
	Input  json.RawMessage `json:"input,omitempty"`  // with what its lane has by default, where that has anything
}

// DryTask says what would happen to a task.
type DryTask struct {
	Lane           string         `json:"lane"`
	Kind           string         `json:"kind"`
	Class          int32          `json:"class"` // 0: it would be new
	EstimatedStart models.Instant `json:"estimated_start,omitempty"`
	Feasible       *bool          `json:"feasible,omitempty"`       // as Foresight's
	EstimatedCost  *int64         `json:"estimated_cost,omitempty"` // in millionths of a dollar; nil: none of its like said what it cost
	Refusals       []models.Error `json:"refusals,omitempty"`
	Model          string         `json:"model,omitempty"` // named or chosen

	// With what its lane has by default, where that has anything.
	SoftSeconds  int32           `json:"soft_seconds,omitempty"`
	HardSeconds  int32           `json:"hard_seconds,omitempty"`
	TotalSeconds int32           `json:"total_seconds,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
}

// Claimed are the leases a claim got; the replica that faces the worker reads payloads by key, unless the lease has them.
type Claimed struct {
	Leases  []Lease      `json:"leases"`
	Signals []ToldSignal `json:"signals,omitempty"` // to leases the worker holds already
}

// ToldSignal is what a lease is told: a word of the platform, or what somebody sent by name.
type ToldSignal struct {
	Task  models.TaskRef  `json:"task"`
	Token models.ID       `json:"token"`
	Word  string          `json:"word,omitempty"`
	Name  string          `json:"name,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
}

// Lease is one task with the cards it got.
type Lease struct {
	Row   models.Task `json:"row"`
	GPUs  []int       `json:"gpus,omitempty"`
	Model string      `json:"model,omitempty"`
	Type  string      `json:"type"`

	Permissions []string `json:"permissions,omitempty"`

	// Spec is all that the task comes with, where it was made and started in one batch and nothing else belongs to it: who
	// asked this brain directly need not read it. It is not sent on to other replicas.
	Spec *models.Spec `json:"-"`
}

// Beaten answers a heartbeat, in the order of its leases.
type Beaten struct {
	Leases []BeatenLease `json:"leases"`
	Drain  bool          `json:"drain,omitempty"`
}

// BeatenLease is the state of one lease.
type BeatenLease struct {
	Token   models.ID      `json:"token"`
	OK      bool           `json:"ok"`
	Until   models.Instant `json:"until,omitempty"`
	Signals []string       `json:"signals,omitempty"` // cancel, soft_timeout
	Sent    []ToldSignal   `json:"sent,omitempty"`
	Row     *models.Task   `json:"row,omitempty"` // of the single form
}

// Settled is the verdict on one result, in their order.
type Settled struct {
	Token    models.ID    `json:"token"`
	Accepted bool         `json:"accepted"`
	Row      *models.Task `json:"row,omitempty"`
	Code     models.Code  `json:"code,omitempty"`
	Booked   bool         `json:"booked,omitempty"` // the attempt's usage is in the books
}

// Looked answers a Look.
type Looked struct {
	Explain *Explained      `json:"explain,omitempty"`
	Live    []LiveTask      `json:"live,omitempty"`
	Lanes   []LaneStats     `json:"lanes,omitempty"`
	Heads   []Head          `json:"heads,omitempty"`
	Workers []WorkerStats   `json:"workers,omitempty"`
	Stats   *Stats          `json:"stats,omitempty"`
	Shares  []TenantShare   `json:"shares,omitempty"`
	Locks   []Lock          `json:"locks,omitempty"`
	Queues  []QueueStats    `json:"queues,omitempty"`
	Budgets []BudgetFigures `json:"budgets,omitempty"`
	Ahead   *Ahead          `json:"ahead,omitempty"`
	Models  []ModelStats    `json:"models,omitempty"`
	Routed  *Routed         `json:"routed,omitempty"`
	Now     models.Instant  `json:"now"`
}

// Explained says why a task does not run.
type Explained struct {
	State          models.State   `json:"state"`
	BlockedBy      []Block        `json:"blocked_by"`
	Position       int64          `json:"position,omitempty"` // 1: the next of its line; 0: not in a line
	Beyond         bool           `json:"beyond,omitempty"`   // it stands at Position or later: the board holds those before
	EstimatedStart models.Instant `json:"estimated_start,omitempty"`
}

// Block is one reason not to start now.
type Block struct {
	Reason  string   `json:"reason"`
	Detail  string   `json:"detail"`
	Key     string   `json:"key,omitempty"`      // of concurrency_key and rate_limit
	Holders []string `json:"holders,omitempty"`  // of a concurrency_key: the tasks that hold it, ten at most
	OpensAt string   `json:"opens_at,omitempty"` // of a rate_limit, RFC 3339
}

// LiveTask is what the brain knows of a running attempt, or of a ready task that is held.
type LiveTask struct {
	Ref        models.TaskRef  `json:"ref"`
	HeldUntil  models.Instant  `json:"held_until,omitempty"` // at most; 0: it is not held, or nothing but room lets it go
	LeaseUntil models.Instant  `json:"lease_until"`
	Progress   json.RawMessage `json:"progress,omitempty"`
}

// LaneStats are the live figures of a lane.
type LaneStats struct {
	Lane         int32   `json:"lane"`
	Env          int32   `json:"env"`
	Depth        int64   `json:"depth"` // ready, parked ones among them
	Parked       int64   `json:"parked"`
	Running      int64   `json:"running"`
	OldestReady  int64   `json:"oldest_ready"` // instant of the oldest head; 0: none
	InPerSecond  float64 `json:"in_per_second"`
	OutPerSecond float64 `json:"out_per_second"`

	Held []LaneHold `json:"held,omitempty"` // by pool
}

// LaneHold says how a lane is held back in a pool.
type LaneHold struct {
	Pool     string         `json:"pool"`
	Since    models.Instant `json:"since"`
	Running  int32          `json:"running"` // of all work that yields by this rule
	Room     int32          `json:"room"`
	Capacity float64        `json:"capacity"`
	Needed   float64        `json:"needed"`
	Lately   float64        `json:"lately"`
	Foreseen float64        `json:"foreseen"`
	Until    models.Instant `json:"until,omitempty"` // when the first in line is let go at the latest; 0: nothing but room lets it go
	Says     string         `json:"says"`
}

// WorkerStats are the live figures of a worker.
type WorkerStats struct {
	Worker   models.ID      `json:"worker"`
	LastSeen models.Instant `json:"last_seen"`
	Leases   int32          `json:"leases"`
	Slots    int32          `json:"slots"`
	CPUMilli int64          `json:"cpu_milli"` // in use
	MemoryMB int64          `json:"memory_mb"`
	VRAMMB   []int64        `json:"vram_mb"` // in use, a card
	Parked   bool           `json:"parked"`  // it waits in a claim
}

// Stats are the brain's own figures.
type Stats struct {
	Entries   int64            `json:"entries"` // on the board
	Lines     int64            `json:"lines"`
	Running   int64            `json:"running"`
	Parked    int64            `json:"parked"`
	Claims    int64            `json:"claims"` // parked ones
	Ready     map[string]int64 `json:"ready"`  // by kind
	Counters  map[string]int64 `json:"counters"`
	Decisions int64            `json:"decisions"`

	Kinds      []KindFigures    `json:"kinds"`
	Lanes      []LaneFigures    `json:"lanes"`
	Pools      []PoolFigures    `json:"pools"`
	Types      []TypeCounts     `json:"types"`
	Models     []ModelUse       `json:"models"`
	LeasesLost map[string]int64 `json:"leases_lost"` // by cause

	ScheduleRuns map[string]int64 `json:"schedule_runs"` // by outcome
	ScheduleLate int64            `json:"schedule_late"`

	Messages []MessageFigures `json:"messages"`
}

// TenantShare is what a tenant got of a pool against what its weight deserves among those that wanted some.
type TenantShare struct {
	Tenant   int32   `json:"tenant"`
	Pool     string  `json:"pool"`
	Kind     string  `json:"kind"`
	Weight   float64 `json:"weight"`
	Charged  float64 `json:"charged_seconds"` // dominant resource seconds since the brain began
	Virtual  float64 `json:"virtual"`
	Deserved float64 `json:"deserved"`
}
