package board

import (
	"fmt"

	"nightshift/models"
)

// shutFlows are the workflows of which nothing starts, and how many of their tasks are parked for that.
type shutFlows struct {
	gates  map[models.ID]models.FlowGate
	behind map[models.ID]int64
}

// Shut says why nothing of a workflow starts; 0: it is open.
func (b *Board) Shut(workflow models.ID) models.FlowGate { return b.shut.gates[workflow] }

// SetShut shuts a workflow or opens it.
func (b *Board) SetShut(workflow models.ID, gate models.FlowGate) {
	if gate == 0 {
		delete(b.shut.gates, workflow)
		return
	}
	b.shut.gates[workflow] = gate
}

// Behind counts the tasks that are parked because their workflow is shut, or was.
func (b *Board) Behind(workflow models.ID) int64 { return b.shut.behind[workflow] }

// GateOf is the gate that a task is parked at: its workflow's, else that of a budget that does not cover it, else its keys'.
func (b *Board) GateOf(row *models.Task) string {
	if b.flowShut(row) {
		return models.GateOfFlow(row.Workflow)
	}
	if a := b.Short(row); a != nil {
		return models.BudgetGate{ID: a.ID, Workflow: a.Workflow, Micro: row.CostMicro, Tokens: row.Tokens}.Text()
	}
	return gateName(row)
}

func (b *Board) flowShut(row *models.Task) bool {
	return len(b.shut.gates) > 0 && !row.Workflow.IsZero() && b.shut.gates[row.Workflow] != 0
}

// parkFlow counts tasks behind the gate of a workflow; false when the gate is another.
func (b *Board) parkFlow(gate string, n int64) bool {
	id, ok := models.FlowOfGate(gate)
	if !ok {
		return false
	}
	if b.shut.behind[id] += n; b.shut.behind[id] <= 0 {
		delete(b.shut.behind, id)
	}
	return true
}

func (b *Board) checkFlows(fresh *Board) error {
	for id := range merged(b.shut.gates, fresh.shut.gates) { // any order: the first difference found will do
		if got, want := b.shut.gates[id], fresh.shut.gates[id]; got != want {
			return fmt.Errorf("workflow %x: shut by %d on the board, the row says %d", id, got, want)
		}
	}
	for id := range merged(b.shut.behind, fresh.shut.behind) { // any order: the first difference found will do
		if got, want := b.shut.behind[id], fresh.shut.behind[id]; got != want {
			return fmt.Errorf("workflow %x: %d parked on the board, the rows say %d", id, got, want)
		}
	}
	return nil
}
