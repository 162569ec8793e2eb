package protocol

import (
	"bytes"
	"encoding/json"
	"time"
)

// ChildrenRequest is the body of POST /v1/tasks/{id}/children.
type ChildrenRequest struct {
	Tasks []Child `json:"tasks"`
}

// Child is a task spawned by a running one. Its key is unique below its
// parent; a second spawn of the key returns the first.
type Child struct {
	Key    string `json:"key"`
	Detach bool   `json:"detach,omitempty"`
	TaskSpec
}

// TaskSpec is a task as it is submitted; only Type is required.
type TaskSpec struct {
	Type        string          `json:"type"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Lane        string          `json:"lane,omitempty"`
	Priority    *int            `json:"priority,omitempty"`
	Description string          `json:"description,omitempty"`

	RunAt            *time.Time `json:"run_at,omitempty"`
	DelaySeconds     *float64   `json:"delay_seconds,omitempty"`
	Deadline         *time.Time `json:"deadline,omitempty"`
	ExpiresInSeconds *float64   `json:"expires_in_seconds,omitempty"`

	Resources        *TaskResources  `json:"resources,omitempty"`
	Model            json.RawMessage `json:"model,omitempty"` // a name, or an object
	EstimatedCostUSD *float64        `json:"estimated_cost_usd,omitempty"`
	EstimatedSeconds *float64        `json:"estimated_seconds,omitempty"`
	TimeoutSeconds   *float64        `json:"timeout_seconds,omitempty"`
	Timeout          *TaskTimeout    `json:"timeout,omitempty"`
	RetryPolicy      json.RawMessage `json:"retry_policy,omitempty"`

	Permissions      []string          `json:"permissions,omitempty"`
	Secrets          map[string]string `json:"secrets,omitempty"`
	Concurrency      []KeyLimit        `json:"concurrency,omitempty"`
	ConcurrencyKey   string            `json:"concurrency_key,omitempty"`
	ConcurrencyLimit *int              `json:"concurrency_limit,omitempty"`
	Ordered          bool              `json:"ordered,omitempty"`
	RateKeys         []string          `json:"rate_keys,omitempty"`
	IdempotencyKey   string            `json:"idempotency_key,omitempty"`
	Dedupe           json.RawMessage   `json:"dedupe,omitempty"`
	WorkerSelector   map[string]string `json:"worker_selector,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	Watermark        string            `json:"watermark,omitempty"`
	Budget           json.RawMessage   `json:"budget,omitempty"`

	DependsOn           []DependsOn `json:"depends_on,omitempty"`
	RunIf               string      `json:"run_if,omitempty"`
	NeedsApproval       bool        `json:"needs_approval,omitempty"`
	OnAttemptsExhausted string      `json:"on_attempts_exhausted,omitempty"`
}

// TaskResources is what a task asks of its worker; VRAMMB is what each of its
// GPU cards must have.
type TaskResources struct {
	CPU      float64 `json:"cpu,omitempty"`
	MemoryMB int64   `json:"memory_mb,omitempty"`
	DiskMB   int64   `json:"disk_mb,omitempty"`
	GPU      int     `json:"gpu,omitempty"`
	VRAMMB   int64   `json:"vram_mb,omitempty"`
	Tokens   int64   `json:"tokens,omitempty"`
}

// TaskTimeout is a submitted timeout; what is left out is the kind's default.
type TaskTimeout struct {
	SoftSeconds  float64 `json:"soft_seconds,omitempty"`
	HardSeconds  float64 `json:"hard_seconds,omitempty"`
	TotalSeconds float64 `json:"total_seconds,omitempty"`
}

// KeyLimit is a concurrency key and how many may hold it.
type KeyLimit struct {
	Key   string `json:"key"`
	Limit int    `json:"limit,omitempty"`
}

// DependsOn is one edge. Key names a task of the same body, Task a task by id;
// On is succeeded (the default), failed or finished. With no On it is a plain
// string on the wire.
type DependsOn struct {
	Key  string
	Task string
	On   string
}

type dependsOn struct {
	Key  string `json:"key,omitempty"`
	Task string `json:"task,omitempty"`
	On   string `json:"on,omitempty"`
}

// MarshalJSON writes the shortest form.
func (d DependsOn) MarshalJSON() ([]byte, error) {
	if d.On == "" {
		return json.Marshal(d.Key + d.Task)
	}
	return json.Marshal(dependsOn(d))
}

// UnmarshalJSON reads either form; a plain string is kept as Key, for the
// reader alone knows whether names or ids stand here.
func (d *DependsOn) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] == '"' {
		*d = DependsOn{}
		return json.Unmarshal(b, &d.Key)
	}
	var edge dependsOn
	if err := json.Unmarshal(b, &edge); err != nil {
		return err
	}
	*d = DependsOn(edge)
	return nil
}

// ChildrenAnswer has a row a child, in order; the answer is 201 when at least
// one is new, 200 when all keys existed.
type ChildrenAnswer struct {
	Data []ChildAnswer `json:"data"`
}

// ChildAnswer is one child as it stands.
type ChildAnswer struct {
	Key   string `json:"key"`
	ID    string `json:"id"`
	State string `json:"state"`
}
