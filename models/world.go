package models

import (
	"encoding/json"
	"slices"
	"strings"
)

// Tenant is a customer. Number is its small identity in the database and on the board.
type Tenant struct {
	Number    int32
	ID        ID
	Slug      string
	Name      string
	Weight    float64 // > 0
	Timezone  string
	Suspended bool
	CreatedAt Instant
	UpdatedAt Instant
	Version   int64 // rises with each edit; the ETag
}

// Environment is an isolated world inside a tenant. Env is the one integer that names both.
type Environment struct {
	Env       int32
	ID        ID
	Tenant    int32
	Name      string
	Kind      string // production, staging, development
	Paused    bool
	Reason    string // why it is paused
	CreatedAt Instant
	UpdatedAt Instant
	Version   int64
	Freezes   []Freeze // in order, none across another
	ClosedAt  Instant  // when it was deleted: nothing comes in any more and nobody sees it, but its rows stay; 0: it is there
}

// KindName is what work waits on. The four are owned by the platform.
type KindName int16

// The kinds, in their default precedence.
const (
	Realtime KindName = iota
	IO
	Compute
	Batch
	kinds
)

var kindNames = [kinds]string{"realtime", "io", "compute", "batch"}

func (k KindName) String() string { return kindNames[k] }

// ParseKind reads a kind's name.
func ParseKind(name string) (KindName, bool) {
	i := slices.Index(kindNames[:], name)
	return KindName(i), i >= 0
}

// Kinds lists the four.
func Kinds() []KindName { return []KindName{Realtime, IO, Compute, Batch} }

// Kind is the row of a kind: lower precedence goes first, weight decides among equals.
type Kind struct {
	Name       KindName
	Precedence int32
	Weight     float64
	MinShare   float64 // share of a pool's starts it gets in any case
	Elastic    bool
	YieldsTo   []string // kinds; none: all that are not elastic
	MaxHold    int32    // seconds that a task is held at most; 0: no bound
	UpdatedAt  Instant
	Version    int64
}

// DefaultKinds are the platform's kinds before anybody edits them.
func DefaultKinds() []Kind {
	return []Kind{
		{Name: Realtime, Precedence: 10, Weight: 8, MinShare: 0.10, Version: 1},
		{Name: IO, Precedence: 20, Weight: 4, MinShare: 0.10, Version: 1},
		{Name: Compute, Precedence: 30, Weight: 2, MinShare: 0.10, Elastic: true, Version: 1},
		{Name: Batch, Precedence: 40, Weight: 1, MinShare: 0.05, Elastic: true, Version: 1},
	}
}

// DefaultHardSeconds is the hard timeout of a task that names none.
func (k KindName) DefaultHardSeconds() int32 { return [kinds]int32{60, 300, 3600, 21600}[k] }

// Lane is a named queue of an environment inside a kind.
type Lane struct {
	Number        int32
	Env           int32
	Name          string
	Kind          KindName
	Weight        float64
	MaxConcurrent int32 // 0: no limit
	HighWater     int32 // submits beyond this depth answer 202
	TaskTypes     []string
	Paused        bool
	Draining      bool
	Reason        string
	First         bool // one of the four an environment starts with
	Description   string
	Owner         string
	RunbookURL    string
	OpenWindows   []Window // when it is open; none: always
	Elastic       bool     // it yields, beside what its kind does
	YieldsTo      []string // lanes of its environment; none: all that yield to nobody
	MaxHold       int32    // seconds that one of its tasks is held at most for that; 0: no bound
	Defaults      *LaneDefaults
	CreatedAt     Instant
	UpdatedAt     Instant
	Version       int64
}

// LaneDefaults are what tasks of a lane get that say nothing themselves; 0 and nil: nothing.
type LaneDefaults struct {
	SoftSeconds      int32        `json:"soft_seconds,omitempty"`
	HardSeconds      int32        `json:"hard_seconds,omitempty"`
	TotalSeconds     int32        `json:"total_seconds,omitempty"`
	ExpiresInSeconds int32        `json:"expires_in_seconds,omitempty"`
	RetryPolicy      *RetryPolicy `json:"retry_policy,omitempty"`
}

// HeldRef is a lane in a pool.
type HeldRef struct {
	Lane int32
	Pool string
}

// Held is a lane that is held back in a pool because other work needs its slots.
type Held struct {
	HeldRef
	Env   int32
	Since Instant
	Task  ID // the first of its tasks that was told to be held last, zero: none was
}

// Window opens by a cron expression in a time zone and stays open for a while.
type Window struct {
	Cron            string `json:"cron"`
	DurationSeconds int32  `json:"duration_seconds"`
	Timezone        string `json:"timezone"` // empty: UTC
}

// Class is the exact requirements of a task; tasks of a class fit the same workers.
type Class struct {
	Number      int32             `json:"-"`
	Type        string            `json:"type"`
	CPUMilli    int64             `json:"cpu_milli,omitempty"`
	MemoryMB    int64             `json:"memory_mb,omitempty"`
	DiskMB      int64             `json:"disk_mb,omitempty"`
	GPU         int32             `json:"gpu,omitempty"`
	VRAMMB      int64             `json:"vram_mb,omitempty"` // that each of its cards must have
	Model       string            `json:"model,omitempty"`
	Selector    map[string]string `json:"selector,omitempty"`
	Permissions []string          `json:"permissions,omitempty"`
	Tokens      bool              `json:"tokens,omitempty"` // it names how many it uses
	Hosted      bool              `json:"hosted,omitempty"` // its model answers from outside: no worker has to have it loaded
	Chosen      bool              `json:"chosen,omitempty"` // its model was chosen; without one none fits
	Lane        int32             `json:"-"`
}

// Metered says that tasks of the class wait for tokens: they name how many, or a model.
func (c *Class) Metered() bool { return c.Tokens || c.Model != "" }

// Digest is the canonical text of the class: equal requirements give equal text (encoding/json sorts map keys).
func (c Class) Digest() string {
	slices.Sort(c.Permissions)
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return string(text)
}

// GPUCard is one card of a worker.
type GPUCard struct {
	VRAMMB int64 `json:"vram_mb"`
}

// WorkerState is where a worker stands.
type WorkerState int16

// The states of a worker.
const (
	WorkerActive WorkerState = iota
	WorkerDraining
	WorkerGone
)

var workerStateNames = [...]string{"active", "draining", "gone"}

func (s WorkerState) String() string { return workerStateNames[s] }

// Worker is a process that pulls.
type Worker struct {
	ID           ID
	Tenant       int32 // 0: it serves every tenant
	Env          int32 // 0: every environment of its tenant
	KeyID        string
	Name         string
	Instance     string
	Version      string
	Pool         string
	TaskTypes    []string // exact or ending in *; empty: all
	Lanes        []string // names; empty: all
	Kinds        []KindName
	CPUMilli     int64
	MemoryMB     int64
	DiskMB       int64
	GPUs         []GPUCard
	Slots        int32            // in all; 0 with KindSlots
	KindSlots    map[string]int32 // per kind, when given
	Models       []string
	AnyModel     bool // it said nothing of models: it takes tasks of every one
	Permissions  []string
	AnyPermit    bool // it said nothing of permissions: it takes tasks that need any
	Labels       map[string]string
	LeaseSeconds int32
	Session      ID
	State        WorkerState
	Draining     bool
	LastSeen     Instant
	CreatedAt    Instant
	UpdatedAt    Instant
	Replaced     []Instant // when its session was replaced lately
	Utilization  json.RawMessage
}

// MatchPattern says whether a name is met by one of the patterns: exact, or ending in *.
func MatchPattern(patterns []string, name string) bool {
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); p == name || ok && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Event is one thing that happened, as the relay tells it. Fields without a value are left out of the packed row.
type Event struct {
	Env      int32   `json:"-"` // 0: the platform's
	Name     string  `json:"name"`
	At       Instant `json:"at"`
	Task     ID      `json:"task,omitzero"`
	Workflow ID      `json:"workflow,omitzero"`
	Schedule ID      `json:"schedule,omitzero"`
	State    string  `json:"state,omitempty"`
	Attempt  int32   `json:"attempt,omitempty"`
	Worker   ID      `json:"worker,omitzero"`
	Lane     string  `json:"lane,omitempty"`
	Pool     string  `json:"pool,omitempty"`
	Charged  float64 `json:"charged_seconds,omitempty"` // dominant resource seconds of the pool, whole attempt
	Class    string  `json:"class,omitempty"`           // of the error
	Reason   string  `json:"reason,omitempty"`

	Budget    ID      `json:"budget,omitzero"`
	Threshold float64 `json:"threshold,omitempty"` // of its limit, that was reached
}

// Actor is who asked for a change.
type Actor struct {
	Kind      string `json:"kind"` // key, user, worker, brain
	ID        string `json:"id"`
	IP        string `json:"ip,omitempty"`
	RequestID string `json:"request_id,omitempty"`
}

// Audit is the record of one request by which a person or key changed something.
type Audit struct {
	Tenant int32 // 0: the platform
	Env    int32
	At     Instant
	Actor  Actor
	Action string
	Object string
	Before json.RawMessage
	After  json.RawMessage
	Reason string
}

// Once is the record of a call with an Idempotency-Key, written in the transaction of what it made.
type Once struct {
	Scope   string // tenant, environment and path
	Key     string
	Request ID              // digest of method, path and body
	Made    json.RawMessage // what the caller needs to answer again when the stored body is missing: ids
	At      Instant
}
