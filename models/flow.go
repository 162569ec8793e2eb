package models

import "encoding/json"

// FlowGate says why nothing of a workflow starts; several reasons may stand at once.
type FlowGate int16

// The reasons.
const (
	FlowPaused  FlowGate = 1 << iota // somebody paused it
	FlowStopped                      // on_failure: stop, and something failed
	FlowSpent                        // what is left of its cost or tokens covers nothing more
)

// GateOfFlow is the gate of a task parked because its workflow is shut.
func GateOfFlow(workflow ID) string { return flowGate + workflow.Text(WorkflowPrefix) }

const flowGate = "workflow:"

// FlowOfGate is the workflow behind whose gate a task is parked.
func FlowOfGate(gate string) (ID, bool) {
	if len(gate) <= len(flowGate) || gate[:len(flowGate)] != flowGate {
		return ID{}, false
	}
	id, err := ParseID(WorkflowPrefix, gate[len(flowGate):])
	return id, err == nil
}

// FlowBudget is what a workflow may use up. Zero fields are no limit.
type FlowBudget struct {
	Tasks          int32
	Depth          int32 // a task of the body has 0
	RuntimeSeconds int32 // since it was made
	CostMicro      int64 // in millionths of a dollar
	Tokens         int64
	Retries        int64 `json:",omitempty"` // failed attempts that another follows
}

// Limited says that cost or tokens have a limit.
func (b *FlowBudget) Limited() bool { return b.CostMicro > 0 || b.Tokens > 0 }

// Counted says that the workflow must be known whenever a task of it starts or fails.
func (b *FlowBudget) Counted() bool { return b.Limited() || b.Retries > 0 }

// Spend is what attempts used, as reported or, of lost ones, presumed, and how many were tried again.
type Spend struct {
	CostMicro int64
	Tokens    int64
	Attempts  int64 // that reported any of it
	Retries   int64 // failed attempts that another follows
}

// An attempt counts at most so many tokens that it read, or wrote, and so many dollars: what is reserved for all that run stays countable.
const (
	mostTokens  = 1 << 40
	mostDollars = 1_000_000
)

// SpendOf reads what an attempt reported.
func SpendOf(usage json.RawMessage) (s Spend) {
	var u struct {
		TokensIn  int64   `json:"tokens_in"`
		TokensOut int64   `json:"tokens_out"`
		CostUSD   float64 `json:"cost_usd"`
	}
	if len(usage) == 0 || json.Unmarshal(usage, &u) != nil {
		return s
	}
	s.CostMicro, s.Tokens = int64(min(max(0, u.CostUSD), mostDollars)*1e6+0.5), min(max(0, u.TokensIn), mostTokens)+min(max(0, u.TokensOut), mostTokens)
	if s != (Spend{}) {
		s.Attempts = 1
	}
	return s
}

// Add sums.
func (s *Spend) Add(o Spend) {
	s.CostMicro, s.Tokens = plus(s.CostMicro, o.CostMicro), plus(s.Tokens, o.Tokens)
	s.Attempts += o.Attempts
	s.Retries += o.Retries
}

// FlowSpend is what a batch adds to what a workflow used: a row a batch, so that none is written again and again.
type FlowSpend struct {
	Env      int32
	Workflow ID
	Spend
}

// FlowShut is the gate of a workflow after the batch, whole; 0: it is open.
type FlowShut struct {
	Env      int32
	Workflow ID
	Gate     FlowGate
}

// HeldFlow is a workflow that a board must know of: it is shut, or ends at a moment.
type HeldFlow struct {
	Env      int32
	Workflow ID
	Gate     FlowGate
	EndsAt   Instant // by its run time; 0: it does not end by time
}

// Judged is what the condition of a task is judged by.
type Judged struct {
	RunIf   string
	Payload json.RawMessage
	Labels  map[string]string
	Deps    []JudgedDep // by id
	Large   bool        // the results are too large to be judged: those of Deps are left out
}

// JudgedDep is one task that was waited for.
type JudgedDep struct {
	Key    string
	State  State
	Result json.RawMessage
}

// MostJudged is how large the results may be, all together, that a condition is judged by.
const MostJudged = 4_000_000
