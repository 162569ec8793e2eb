package protocol

import (
	"bytes"
	"encoding/json"
	"time"
)

// ClaimRequest is the body of POST /v1/workers/{id}/claim. WorkerID is set in
// the form POST /v1/scheduler/claim alone.
type ClaimRequest struct {
	WorkerID    string `json:"worker_id,omitempty"`
	MaxTasks    *int   `json:"max_tasks,omitempty"`    // 1–500, default 1
	WaitSeconds *int   `json:"wait_seconds,omitempty"` // 0–30, default 0
	Free        *Free  `json:"free,omitempty"`         // omitted: registered minus leased
}

// Free is the room a worker has at this moment. GPUs names the cards that no
// attempt holds, by their number in the registered list.
type Free struct {
	Slots    *Slots   `json:"slots,omitempty"`
	CPU      *float64 `json:"cpu,omitempty"`
	MemoryMB *int64   `json:"memory_mb,omitempty"`
	GPUs     *[]int   `json:"gpus,omitempty"`
}

// ClaimAnswer holds what was leased; both lists are empty, never null, when a
// long poll ends without work.
type ClaimAnswer struct {
	Tasks   []Lease       `json:"tasks"`
	Signals []LeaseSignal `json:"signals"`
}

// Lease is one task leased to this worker: everything it needs to execute it.
type Lease struct {
	TaskID         string    `json:"task_id"`
	AttemptID      string    `json:"attempt_id"`
	Attempt        int       `json:"attempt"`
	LeaseToken     string    `json:"lease_token"`
	LeaseExpiresAt time.Time `json:"lease_expires_at"`

	Type     string          `json:"type"`
	Payload  json.RawMessage `json:"payload"`
	Model    *string         `json:"model"`
	GPUs     []int           `json:"gpus"`
	Timeout  Timeout         `json:"timeout"`
	Deadline *time.Time      `json:"deadline"`

	Traceparent *string           `json:"traceparent"`
	Permissions []string          `json:"permissions"`
	Secrets     map[string]string `json:"secrets"`
	Checkpoint  json.RawMessage   `json:"checkpoint"`
	Watermark   *Watermark        `json:"watermark"`

	// DependenciesURL stands in for Dependencies beyond 100 of them or 1 MB.
	Dependencies    []Dependency `json:"dependencies"`
	DependenciesURL *string      `json:"dependencies_url"`
	Children        []ChildState `json:"children"`

	Events    []TriggerEvent    `json:"events"`
	Items     []json.RawMessage `json:"items"`
	Partition *Partition        `json:"partition"`
	Run       *Run              `json:"run"`

	// Verify asks to find out whether an earlier attempt, whose outcome is
	// unknown, took effect, before doing it again.
	Verify         bool              `json:"verify"`
	IdempotencyKey string            `json:"idempotency_key"`
	Labels         map[string]string `json:"labels"`
}

// Timeout is in seconds; null means none of that sort.
type Timeout struct {
	SoftSeconds  *float64 `json:"soft_seconds"`
	HardSeconds  *float64 `json:"hard_seconds"`
	TotalSeconds *float64 `json:"total_seconds"`
}

// Watermark is a named high mark's value and the version that was read; a
// result that names another version is refused with state_conflict.
type Watermark struct {
	Value   json.RawMessage `json:"value"`
	Version *int64          `json:"version"`
}

// Dependency is a task this one waited for, as it ended.
type Dependency struct {
	Key    *string         `json:"key"`
	TaskID string          `json:"task_id"`
	State  string          `json:"state"`
	Result json.RawMessage `json:"result"`
}

// DependenciesAnswer is what a GET of dependencies_url answers.
type DependenciesAnswer struct {
	Data       []Dependency `json:"data"`
	NextCursor *string      `json:"next_cursor"`
}

// ChildState is a child of a suspended task, as it ended.
type ChildState struct {
	Key    string          `json:"key"`
	State  string          `json:"state"`
	Result json.RawMessage `json:"result"`
}

// TriggerEvent is one trigger that a run consumed.
type TriggerEvent struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Data json.RawMessage `json:"data"`
	At   time.Time       `json:"at"`
}

// Partition is this task's share of a partitioned occurrence.
type Partition struct {
	Index int `json:"index"`
	Count int `json:"count"`
}

// Run names the schedule's occurrence that made the task.
type Run struct {
	Schedule     string    `json:"schedule"`
	ScheduledFor time.Time `json:"scheduled_for"`
}

// Words of signals.
const (
	SignalCancel      = "cancel"
	SignalSoftTimeout = "soft_timeout"
	SignalCheckpoint  = "checkpoint"
	SignalDrain       = "drain"
)

// LeaseSignal is a signal to one lease that rides on a claim's answer.
type LeaseSignal struct {
	LeaseToken string `json:"lease_token"`
	Signal     Signal `json:"signal"`
}

// Signal is one of the words above, or what somebody sent to a running task
// by name with data. On the wire it is "cancel" or {"name": …, "data": …}.
type Signal struct {
	Name string
	Data json.RawMessage
	Word bool // one of the platform's words
}

// WordSignal is a signal of the platform itself.
func WordSignal(word string) Signal { return Signal{Name: word, Word: true} }

type namedSignal struct {
	Name string          `json:"name"`
	Data json.RawMessage `json:"data"`
}

// MarshalJSON writes a word as a string and the rest as {name, data}.
func (s Signal) MarshalJSON() ([]byte, error) {
	if s.Word {
		return json.Marshal(s.Name)
	}
	return json.Marshal(namedSignal{s.Name, s.Data})
}

// UnmarshalJSON reads either form.
func (s *Signal) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] == '"' {
		*s = Signal{Word: true}
		return json.Unmarshal(b, &s.Name)
	}
	var named namedSignal
	if err := json.Unmarshal(b, &named); err != nil {
		return err
	}
	*s = Signal{Name: named.Name, Data: named.Data}
	return nil
}
