package protocol

import (
	"encoding/json"
	"time"
)

// HeartbeatRequest is the body of POST /v1/workers/{id}/heartbeat. Leases
// lists every lease the session holds: one missing from two beats is taken as
// never arrived, so the list is sent even when it is empty.
type HeartbeatRequest struct {
	Leases      []HeartbeatLease `json:"leases"`
	Free        *Free            `json:"free,omitempty"`
	Models      *[]string        `json:"models,omitempty"`
	Utilization *Utilization     `json:"utilization,omitempty"`
}

// HeartbeatLease renews one lease; progress and checkpoint ride along when
// they changed.
type HeartbeatLease struct {
	LeaseToken string          `json:"lease_token"`
	Progress   json.RawMessage `json:"progress,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
}

// Utilization is between 0 and 1.
type Utilization struct {
	GPU *float64 `json:"gpu,omitempty"`
	CPU *float64 `json:"cpu,omitempty"`
}

// States of a lease in a heartbeat's answer.
const (
	LeaseOK   = "ok"
	LeaseLost = "lost"
)

// HeartbeatAnswer has a row a lease that was listed, and signals to the worker
// as a whole.
type HeartbeatAnswer struct {
	Leases  []LeaseState `json:"leases"`
	Signals []string     `json:"signals"`
}

// LeaseState is one lease after the beat. It is also what the single form
// POST /v1/tasks/{id}/heartbeat answers.
type LeaseState struct {
	LeaseToken     string     `json:"lease_token"`
	State          string     `json:"state"`
	LeaseExpiresAt *time.Time `json:"lease_expires_at"`
	Signals        []Signal   `json:"signals"`
}

// TaskHeartbeat is the body of the single form POST /v1/tasks/{id}/heartbeat.
type TaskHeartbeat struct {
	Progress   json.RawMessage `json:"progress,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
}

// TaskCheckpoint is the body of POST /v1/tasks/{id}/checkpoint.
type TaskCheckpoint struct {
	Checkpoint json.RawMessage `json:"checkpoint"`
}

// LogsRequest is the body of POST /v1/tasks/{id}/logs.
type LogsRequest struct {
	Lines []LogLine `json:"lines"`
}

// LogLine is one line an attempt wrote.
type LogLine struct {
	At      time.Time `json:"at"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
}

// SpansRequest is the body of POST /v1/tasks/{id}/spans.
type SpansRequest struct {
	Spans []Span `json:"spans"`
}

// Span is one span of an attempt's trace.
type Span struct {
	SpanID       string          `json:"span_id,omitempty"`        // 16 hexadecimal digits; made by the server when left out
	ParentSpanID string          `json:"parent_span_id,omitempty"` // left out: the attempt
	Name         string          `json:"name"`
	Start        time.Time       `json:"start"`
	End          time.Time       `json:"end"`
	Attributes   json.RawMessage `json:"attributes,omitempty"`
}
