package models

// RetryPolicy says how often and after which waits a task is tried again.
type RetryPolicy struct {
	MaxAttempts  int32                  `json:"max_attempts"`
	Backoff      string                 `json:"backoff"` // exponential, linear, fixed
	InitialDelay float64                `json:"initial_delay_seconds"`
	MaxDelay     float64                `json:"max_delay_seconds"`
	Jitter       bool                   `json:"jitter"`
	Classes      map[string]ClassPolicy `json:"classes,omitempty"`
}

// ClassPolicy overrides the policy for one error class.
type ClassPolicy struct {
	MaxAttempts int32 `json:"max_attempts"`
}

// DefaultRetryPolicy is that of a task which names none.
func DefaultRetryPolicy() RetryPolicy {
	return RetryPolicy{MaxAttempts: 3, Backoff: "exponential", InitialDelay: 1, MaxDelay: 300, Jitter: true}
}

// ErrorClasses are the classes that workers report or the server gives; an unknown one is internal.
var ErrorClasses = []string{
	"invalid_input", "authentication", "permission_denied", "not_found", "quality_too_low", "rate_limited", "timeout", "network",
	"provider_outage", "overloaded", "malformed_output", "out_of_memory", "internal", "worker_lost", "outcome_unknown", "cancelled",
	"state_conflict",
}
