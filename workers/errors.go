package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"nightshift/workers/protocol"
)

// Error is a failure with a class, by which the server decides what follows.
type Error struct {
	Class            string
	Message          string
	Stack            string
	ProviderResponse json.RawMessage
	RetryAfter       time.Duration // for rate_limited: when the provider wants to be asked again
	Cause            error
}

func (e *Error) Error() string { return e.Class + ": " + e.Message }
func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an error of a class (the words are in package protocol). A %w
// keeps the cause.
func Errorf(class, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Class: class, Message: err.Error(), Cause: errors.Unwrap(err)}
}

// Reasons why a handler's context ended; context.Cause tells which.
var (
	ErrCancelled   = errors.New("the task was cancelled")
	ErrLeaseLost   = errors.New("the lease has passed on")
	ErrHardTimeout = errors.New("the hard timeout has passed")
	ErrDraining    = errors.New("the worker is stopping")
)

// Ends of Run that no retry mends.
var (
	ErrSessionReplaced  = errors.New("another process registered with this instance id; this one has stopped")
	ErrInstanceConflict = errors.New("several processes keep registering with this instance id; give each its own")
)

// ErrReleased, returned by a handler, ends an attempt without an outcome: the task goes back to its line
// at once and no attempt is used.
var ErrReleased = errors.New("released")

// ErrSuspended, returned by a handler, ends an attempt whose task waits for its children: slot and lease
// are freed, and the task is claimed again with their results.
var ErrSuspended = errors.New("suspended")

// classify finds the class of whatever a handler returned.
func classify(ctx context.Context, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if errors.Is(context.Cause(ctx), ErrHardTimeout) {
		return &Error{Class: protocol.ClassTimeout, Message: "hard timeout: " + err.Error(), Cause: err}
	}
	class := protocol.ClassInternal
	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		class = protocol.ClassTimeout
	case errors.As(err, &network):
		class = protocol.ClassNetwork
		if network.Timeout() {
			class = protocol.ClassTimeout
		}
	}
	return &Error{Class: class, Message: err.Error(), Cause: err}
}
