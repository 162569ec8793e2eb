package memory

import (
	"encoding/json"
	"slices"

	"nightshift/models"
)

// flows writes what is shut and what was used of workflows.
func (s *Store) flows(p *models.Plan) {
	for _, g := range p.Shuts {
		ref := models.TaskRef{Env: g.Env, ID: g.Workflow}
		row := s.workflows[ref]
		row.Gate = g.Gate
		s.workflows[ref] = row
	}
	for _, u := range p.Spends {
		ref := models.TaskRef{Env: u.Env, ID: u.Workflow}
		sum := s.spends[ref]
		sum.Add(u.Spend)
		s.spends[ref] = sum
	}
}

// heldFlows are the workflows that a board must know of.
func (s *Store) heldFlows() (out []models.HeldFlow) {
	for _, w := range sorted(s.workflows, compareRefs) {
		ends := w.EndsAt
		if w.State.Final() {
			ends = 0
		}
		if w.Gate != 0 || ends > 0 {
			out = append(out, models.HeldFlow{Env: w.Env, Workflow: w.ID, Gate: w.Gate, EndsAt: ends})
		}
	}
	return out
}

// concerns says whether a task that is not final is a cursor's business.
func concerns(kind models.CursorKind, t *models.Task) bool {
	switch kind {
	case models.OpenWorkflow:
		_, parked := models.FlowOfGate(t.Gate)
		return parked
	case models.RedriveWorkflow:
		return t.State == models.DeadLetter
	}
	return true
}

// judged is what a condition is judged by.
func (s *Store) judged(ref models.TaskRef) (j models.Judged) {
	spec, edited := s.specs[ref], s.overrides[ref]
	j.Payload = spec.Payload
	if edited.Payload != nil {
		j.Payload = edited.Payload
	}
	input := spec.Input
	if edited.Input != nil {
		input = edited.Input
	}
	var in struct {
		RunIf  string            `json:"run_if"`
		Labels map[string]string `json:"labels"`
	}
	_ = json.Unmarshal(input, &in) // what cannot be read has no condition
	j.RunIf, j.Labels = in.RunIf, in.Labels
	ids := slices.SortedFunc(slices.Values(s.waitsFor[ref]), models.ID.Compare)
	size := 0
	for _, id := range slices.Compact(ids) {
		from := models.TaskRef{Env: ref.Env, ID: id}
		row, there := s.tasks[from]
		if !there {
			continue
		}
		dep := models.JudgedDep{Key: row.Key, State: row.State}
		for _, a := range s.attempts[from] {
			if row.State == models.Succeeded && a.Outcome == models.AttemptSucceeded {
				dep.Result = a.Result
			}
		}
		size += len(dep.Result)
		j.Deps = append(j.Deps, dep)
	}
	if j.Large = size > models.MostJudged; j.Large {
		j.Deps = nil
	}
	return j
}
