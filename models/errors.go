package models

import (
	"errors"
	"fmt"
)

// Code is the stable word of an error that callers rely on. web/errors.go maps each to a status.
type Code string

// The codes, by the status they answer with.
const (
	InvalidJSON          Code = "invalid_json"
	InvalidQuery         Code = "invalid_query"
	InvalidRequest       Code = "invalid_request"
	InvalidScope         Code = "invalid_scope"
	UnsupportedGrantType Code = "unsupported_grant_type"
	SessionRequired      Code = "session_required"
	TenantRequired       Code = "tenant_required"
	InvalidCursor        Code = "invalid_cursor"

	Unauthenticated Code = "unauthenticated"
	InvalidClient   Code = "invalid_client"

	Forbidden            Code = "forbidden"
	ScopeRequired        Code = "scope_required"
	SchemaChanged        Code = "schema_changed" // of a task type, since the payload was checked
	PermissionNotAllowed Code = "permission_not_allowed"
	TenantSuspended      Code = "tenant_suspended"

	NotFound             Code = "not_found"
	MethodNotAllowed     Code = "method_not_allowed"
	UnsupportedMediaType Code = "unsupported_media_type"

	StateConflict          Code = "state_conflict"
	LeaseLost              Code = "lease_lost"
	SessionReplaced        Code = "session_replaced"
	InstanceConflict       Code = "instance_conflict"
	IdempotencyInProgress  Code = "idempotency_in_progress"
	WorkflowBudgetExceeded Code = "workflow_budget_exceeded"

	Stale        Code = "stale"
	BodyTooLarge Code = "body_too_large"

	ValidationFailed     Code = "validation_failed"
	IdempotencyKeyReused Code = "idempotency_key_reused"
	InvalidDAG           Code = "invalid_dag"
	InvalidSchedule      Code = "invalid_schedule"

	QueueFull       Code = "queue_full"
	RateLimited     Code = "rate_limited"
	BudgetExhausted Code = "budget_exhausted"
	TooManyClasses  Code = "too_many_classes"
	TooManyAttempts Code = "too_many_attempts"

	Unavailable Code = "unavailable"
	Overloaded  Code = "overloaded"
	Internal    Code = "internal"
)

// Failures of the store that the loop has a rule for; they never reach a caller as they are.
const (
	FenceLost Code = "fence_lost" // NS001: another brain has taken over
	RowCount  Code = "row_count"  // NS002: the rows changed are not the plan's
	Unclear   Code = "unclear"    // the commit was sent and no answer came
	BadData   Code = "bad_data"   // SQLSTATE 22, 23, 42, 54, XX: one command of the batch is at fault
	Rollback  Code = "rollback"   // 40001, 40P01, 55P03, 57014: it certainly did not happen, try again
)

// Error is a refusal or failure with its code and a sentence that a user can act on.
type Error struct {
	Code              Code         `json:"code"`
	Detail            string       `json:"detail"`
	Fields            []FieldError `json:"fields,omitempty"`
	RetryAfterSeconds int          `json:"retry_after_seconds,omitempty"`
	cause             error
}

// FieldError says what is wrong with one value of a request. Location is like "body.tasks[7].priority".
type FieldError struct {
	Location string `json:"location"`
	Message  string `json:"message"`
	Value    any    `json:"value,omitempty"`
}

// Errorf makes an Error; %w keeps the cause for errors.Is and errors.As.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Code: code, Detail: wrapped.Error(), cause: errors.Unwrap(wrapped)}
}

// Invalid is a validation_failed for one field.
func Invalid(location, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	return &Error{Code: ValidationFailed, Detail: location + ": " + message, Fields: []FieldError{{Location: location, Message: message}}}
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Detail }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf is the code of err: Internal when it carries none, empty for nil.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return Internal
}
