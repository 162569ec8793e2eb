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

// Budget is what a workflow may use up. Zero fields are no limit.
type Budget struct {
	Tasks          int32
	Depth          int32 // a task of the body has 0
	RuntimeSeconds int32 // since it was made
	CostMicro      int64 // in millionths of a dollar
	Tokens         int64
}

// Limited says that cost or tokens have a limit.
func (b *Budget) Limited() bool { return b.CostMicro > 0 || b.Tokens > 0 }

// Spend is what attempts used, as reported.
type Spend struct {
	CostMicro int64
	Tokens    int64
	Attempts  int64 // that reported any of it
}

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
	s.CostMicro, s.Tokens = int64(u.CostUSD*1e6+0.5), u.TokensIn+u.TokensOut
	if s != (Spend{}) {
		s.Attempts = 1
	}
	return s
}

// Add sums.
func (s *Spend) Add(o Spend) {
	s.CostMicro += o.CostMicro
	s.Tokens += o.Tokens
	s.Attempts += o.Attempts
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
