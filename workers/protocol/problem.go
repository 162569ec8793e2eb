package protocol

import (
	"encoding/json"
	"fmt"
)

// ProblemContentType is the content type of every answer that refuses.
const ProblemContentType = "application/problem+json"

// Problem is an RFC 9457 answer. Code is a stable word to decide on; Detail is
// a sentence for a person.
type Problem struct {
	Type      string         `json:"type"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail"`
	Instance  string         `json:"instance"`
	Code      string         `json:"code"`
	RequestID string         `json:"request_id"`
	Errors    []ProblemError `json:"errors,omitempty"`
}

// ProblemError names one place of a request and what is wrong there.
type ProblemError struct {
	Location string          `json:"location"`
	Message  string          `json:"message"`
	Value    json.RawMessage `json:"value,omitempty"`
}

// Error makes a problem an error of the caller.
func (p *Problem) Error() string {
	text := fmt.Sprintf("%d %s", p.Status, p.Code)
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	for i, e := range p.Errors {
		if i == 3 {
			text += fmt.Sprintf("; and %d more", len(p.Errors)-i)
			break
		}
		text += fmt.Sprintf("; %s: %s", e.Location, e.Message)
	}
	if p.RequestID != "" {
		text += " (request " + p.RequestID + ")"
	}
	return text
}

// Codes a worker decides on.
const (
	CodeNotFound         = "not_found"
	CodeUnauthenticated  = "unauthenticated"
	CodeInvalidClient    = "invalid_client"
	CodeLeaseLost        = "lease_lost"
	CodeSessionReplaced  = "session_replaced"
	CodeInstanceConflict = "instance_conflict"
	CodeStateConflict    = "state_conflict"
	CodeUnavailable      = "unavailable"
	CodeOverloaded       = "overloaded"
	CodeRateLimited      = "rate_limited"
)
