package models

import (
	"encoding/json"
	"slices"
)

// Quotas are what a tenant may hold and do at most, over all its environments. Nil: no limit.
type Quotas struct {
	Tenant             int32   `json:"tenant"`
	MaxConcurrent      *int64  `json:"max_concurrent"`      // live tasks
	MaxQueued          *int64  `json:"max_queued"`          // scheduled, pending, ready and retry_wait
	MaxGPUs            *int64  `json:"max_gpus"`            // cards of live tasks
	MaxVRAMMB          *int64  `json:"max_vram_mb"`         // that live tasks asked of their cards
	TokensPerMinute    *int64  `json:"tokens_per_minute"`   // ≥ 1
	RequestsPerMinute  *int64  `json:"requests_per_minute"` // of the API, at one replica; ≥ 1
	MaxSchedules       *int64  `json:"max_schedules"`
	MinIntervalSeconds *int64  `json:"min_schedule_interval_seconds"`
	UpdatedAt          Instant `json:"updated_at"`
	Version            int64   `json:"version"` // rises with each edit; the ETag; 0: nobody has set any
}

// Grants are the permissions that tasks of an environment may ask for.
type Grants struct {
	Env       int32    `json:"env"`
	Granted   []string `json:"granted"` // sorted
	UpdatedAt Instant  `json:"updated_at"`
	Version   int64    `json:"version"` // 0: nobody has set any
}

// Covers says that all of the permissions are granted, or names the first that is not.
func (g *Grants) Covers(permissions []string) (missing string, ok bool) {
	for _, p := range permissions {
		if g == nil {
			return p, false
		}
		if _, granted := slices.BinarySearch(g.Granted, p); !granted {
			return p, false
		}
	}
	return "", true
}

// TaskType is what an environment says of the tasks of a type.
type TaskType struct {
	Env           int32           `json:"env"`
	Type          string          `json:"type"`
	InputSchema   json.RawMessage `json:"input_schema,omitempty"` // a JSON Schema of payloads; nil: anything goes
	Schema        int64           `json:"schema,omitempty"`       // names InputSchema, 0: there is none; NewSchema in an edit that changes it
	MaxConcurrent *int64          `json:"max_concurrent"`         // live tasks; nil: no limit
	Paused        bool            `json:"paused"`
	Reason        string          `json:"reason,omitempty"` // why it is paused
	UpdatedAt     Instant         `json:"updated_at"`
	Version       int64           `json:"version"` // 0: nobody has set anything
}

// NewSchema stands in an edit for the number of a schema that was changed.
const NewSchema = -1

// TokenLevel is what was left of a tenant's tokens a minute at a moment, in scheduler/rate's own form.
type TokenLevel struct {
	Tenant int32   `json:"tenant"`
	Credit int64   `json:"credit"`
	At     Instant `json:"at"`
}

// QuotaPlan is what a batch changes of limits: whole rows, replaced by what they are of.
type QuotaPlan struct {
	Quotas []Quotas
	Grants []Grants
	Types  []TaskType
	Levels []TokenLevel
}

// Empty says that nothing changes.
func (p *QuotaPlan) Empty() bool {
	return len(p.Quotas)+len(p.Grants)+len(p.Types)+len(p.Levels) == 0
}

// QuotaSnapshot is what a board knows of limits, and how many tasks each environment has waiting.
type QuotaSnapshot struct {
	Quotas []Quotas
	Grants []Grants
	Types  []TaskType // without InputSchema
	Levels []TokenLevel
	Queued []QueuedCount
}

// QueuedCount is how many tasks of an environment count as queued beyond those that are ready: scheduled, pending,
// retry_wait, and the staged ones whose body has flipped.
type QueuedCount struct {
	Env   int32
	Count int64
}

// Unready says that a task in this state is queued, but not ready yet. A staged one is once its body has flipped.
func (s State) Unready() bool { return s == Scheduled || s == Pending || s == RetryWait }

// Blocker is a dependency that a task waits for.
type Blocker struct {
	Task  ID
	Key   string // in their workflow, or empty
	State State
}

// MostBlockers is how many are named.
const MostBlockers = 20
