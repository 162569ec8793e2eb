package protocol

import "encoding/json"

// Statuses of a result.
const (
	StatusSucceeded = "succeeded"
	StatusFailed    = "failed"
	StatusCancelled = "cancelled"
	StatusReleased  = "released"
	StatusSuspended = "suspended"
)

// Error classes. An unknown one is treated as ClassInternal; the first four
// are permanent by default.
const (
	ClassInvalidInput     = "invalid_input"
	ClassAuthentication   = "authentication"
	ClassPermissionDenied = "permission_denied"
	ClassNotFound         = "not_found"
	ClassQualityTooLow    = "quality_too_low"
	ClassRateLimited      = "rate_limited"
	ClassTimeout          = "timeout"
	ClassNetwork          = "network"
	ClassProviderOutage   = "provider_outage"
	ClassOverloaded       = "overloaded"
	ClassMalformedOutput  = "malformed_output"
	ClassOutOfMemory      = "out_of_memory"
	ClassInternal         = "internal"
	ClassWorkerLost       = "worker_lost"
	ClassOutcomeUnknown   = "outcome_unknown"
	ClassCancelled        = "cancelled"
	ClassStateConflict    = "state_conflict" // given by the server: another version of the watermark stands
)

// ResultsRequest is the body of POST /v1/workers/{id}/results.
type ResultsRequest struct {
	Results []Result `json:"results"`
}

// Result is how one attempt ended. The single forms complete and fail take the
// same members without lease_token (it is in the header) and status.
type Result struct {
	LeaseToken string          `json:"lease_token,omitempty"`
	Status     string          `json:"status,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      *Error          `json:"error,omitempty"`
	Usage      *Usage          `json:"usage,omitempty"`
	Items      *Items          `json:"items,omitempty"`
	Watermark  *Watermark      `json:"watermark,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`

	RetryAfterSeconds *float64 `json:"retry_after_seconds,omitempty"`
}

// Error says why an attempt failed, with the evidence a person needs.
type Error struct {
	Class            string          `json:"class"`
	Message          string          `json:"message"`
	Stack            string          `json:"stack,omitempty"`
	ProviderResponse json.RawMessage `json:"provider_response,omitempty"`
}

// Usage is what an attempt consumed. It is booked even when the lease is lost.
type Usage struct {
	Model        *string  `json:"model,omitempty"`
	TokensIn     *int64   `json:"tokens_in,omitempty"`
	TokensOut    *int64   `json:"tokens_out,omitempty"`
	TokensCached *int64   `json:"tokens_cached,omitempty"`
	CostUSD      *float64 `json:"cost_usd,omitempty"`
	Quality      *float64 `json:"quality,omitempty"`
	MaxMemoryMB  *int64   `json:"max_memory_mb,omitempty"`
	MaxVRAMMB    *int64   `json:"max_vram_mb,omitempty"`
	CPUSeconds   *float64 `json:"cpu_seconds,omitempty"`
	GPUSeconds   *float64 `json:"gpu_seconds,omitempty"`
}

// Items says how the items of a slice went; the indexes of the failed ones
// count within the items that were claimed.
type Items struct {
	Done   int          `json:"done"`
	Failed []FailedItem `json:"failed"`
}

// FailedItem is one item that will be tried again alone.
type FailedItem struct {
	Index   int    `json:"index"`
	Class   string `json:"class"`
	Message string `json:"message"`
}

// ResultsAnswer has a row a result, in order.
type ResultsAnswer struct {
	Results []ResultAnswer `json:"results"`
}

// ResultAnswer says what became of one result: State is the task's state
// after it, Code why it was refused. UsageRecorded says that the attempt's usage is
// in the books; that of a refused one is booked too, once an attempt.
type ResultAnswer struct {
	LeaseToken    string  `json:"lease_token"`
	Accepted      bool    `json:"accepted"`
	State         *string `json:"state"`
	Code          *string `json:"code"`
	UsageRecorded bool    `json:"usage_recorded"`
}

// CompleteRequest is the body of POST /v1/tasks/{id}/complete.
type CompleteRequest struct {
	Result     json.RawMessage `json:"result,omitempty"`
	Usage      *Usage          `json:"usage,omitempty"`
	Items      *Items          `json:"items,omitempty"`
	Watermark  *Watermark      `json:"watermark,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
}

// FailRequest is the body of POST /v1/tasks/{id}/fail.
type FailRequest struct {
	Error             *Error          `json:"error"`
	Usage             *Usage          `json:"usage,omitempty"`
	Checkpoint        json.RawMessage `json:"checkpoint,omitempty"`
	RetryAfterSeconds *float64        `json:"retry_after_seconds,omitempty"`
}
