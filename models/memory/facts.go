package memory

import (
	"context"
	"encoding/json"

	"nightshift/models"
)

// Facts reads what need names and the clock.
func (s *Store) Facts(_ context.Context, need *models.Need) (*models.Facts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &models.Facts{
		Now: s.now(), Tasks: map[models.TaskRef]models.Task{}, IdemKeys: map[models.IdemRef]models.Task{},
		Workflows: map[models.TaskRef]models.Workflow{}, Once: map[models.OnceRef]models.Once{}, Done: map[models.ID]int64{},
		Slices: map[models.ID][]models.Task{}, Stagings: map[models.ID]models.Staging{}, Policies: map[models.TaskRef]models.RetryPolicy{},
		Tokens: map[models.TokenRef]models.Attempt{}, Children: map[models.ChildRef]models.Task{}, Dedupes: map[models.IdemRef]models.Deduped{}, Payloads: map[models.TaskRef]json.RawMessage{}, Watermarks: map[models.IdemRef]models.Watermark{},
		Judged: map[models.TaskRef]models.Judged{}, Outside: map[models.TaskRef][]models.Edge{}, Items: map[models.TaskRef]models.Items{}, Blockers: map[models.TaskRef][]models.Blocker{},
		Choices: map[models.TaskRef]models.Choice{}, Qualities: map[models.QualityRef]float64{},
	}
	s.chosen(need, f)
	for _, ref := range need.IdemKeys {
		if id, held := s.holders[ref]; held {
			f.IdemKeys[ref] = s.tasks[models.TaskRef{Env: ref.Env, ID: id}]
		}
	}
	for _, ref := range need.Workflows {
		if w, ok := s.workflow(ref); ok {
			f.Workflows[ref] = w
		}
	}
	for _, slice := range need.Slices {
		f.Slices[slice.Cursor.ID] = s.slice(&slice)
		if slice.Cursor.Patch != nil {
			for _, row := range f.Slices[slice.Cursor.ID] {
				f.Payloads[refOf(&row)] = s.payload(refOf(&row))
			}
		}
	}
	s.outsiders(need, f)
	for _, ref := range need.Policies {
		if p := s.policy(ref); p != nil {
			f.Policies[ref] = *p
		}
	}
	s.tokenFacts(need, f)
	for _, ref := range need.Judged {
		f.Judged[ref] = s.judged(ref)
	}
	for _, ref := range need.Blockers {
		if found := s.blockers(ref); len(found) > 0 {
			f.Blockers[ref] = found
		}
	}
	for _, ref := range need.Children {
		if id, ok := s.children[ref]; ok {
			f.Children[ref] = s.tasks[models.TaskRef{Env: ref.Env, ID: id}]
		}
	}
	for _, ref := range need.Dedupes {
		if d, ok := s.dedupes[ref]; ok {
			f.Dedupes[ref] = models.Deduped{Dedupe: d, Row: s.tasks[models.TaskRef{Env: ref.Env, ID: d.Task}]}
		}
	}
	f.Schedules, f.Variables = s.works(need.Schedules), map[int32]models.Variables{}
	known(need.Variables, s.variables, f.Variables)
	s.feedFacts(need, f)
	known(need.Items, s.items, f.Items)
	known(need.Watermarks, s.watermarks, f.Watermarks)
	known(need.Tasks, s.tasks, f.Tasks)
	known(need.Once, s.once, f.Once)
	known(need.Done, s.done, f.Done)
	known(need.Stagings, s.stagings, f.Stagings)
	return f, nil
}

// outsiders are the tasks outside their bodies that rows wait for which are about to enter.
func (s *Store) outsiders(need *models.Need, f *models.Facts) {
	for _, slice := range need.Slices {
		if slice.Cursor.Wide == 0 {
			continue
		}
		for _, row := range f.Slices[slice.Cursor.ID] {
			edges := s.outside(refOf(&row))
			if len(edges) > 0 {
				f.Outside[refOf(&row)] = edges
			}
			for _, e := range edges {
				known([]models.TaskRef{{Env: e.Env, ID: e.From}}, s.tasks, f.Tasks)
			}
		}
	}
}

// known copies the rows that are there.
func known[K comparable, V any](keys []K, from, to map[K]V) {
	for _, k := range keys {
		if v, ok := from[k]; ok {
			to[k] = v
		}
	}
}

// workflow is a workflow's row with its counts taken from the tasks.
func (s *Store) workflow(ref models.TaskRef) (models.Workflow, bool) {
	w, ok := s.workflows[ref]
	w.Counts, w.Used = s.counts[ref], s.spends[ref]
	return w, ok
}

// ended is the attempt that ran under a token and ended; nil when there is none.
func (s *Store) ended(ref models.TokenRef) *models.Attempt {
	attempts := s.attempts[models.TaskRef{Env: ref.Env, ID: ref.Task}]
	for i := range attempts {
		if attempts[i].Token == ref.Token {
			return &attempts[i]
		}
	}
	return nil
}

// policy is the retry policy a task was submitted with; nil when it has none of its own.
func (s *Store) policy(ref models.TaskRef) *models.RetryPolicy {
	var input struct {
		Policy json.RawMessage `json:"retry_policy"`
	}
	text := s.specs[ref].Input
	if changed := s.overrides[ref].Input; changed != nil {
		text = changed
	}
	if json.Unmarshal(text, &input) != nil || len(input.Policy) == 0 || string(input.Policy) == "null" {
		return nil
	}
	policy := models.DefaultRetryPolicy() // what it leaves out is the default's
	if json.Unmarshal(input.Policy, &policy) != nil {
		return nil
	}
	return &policy
}

// slice is the next rows of a cursor.
func (s *Store) slice(need *models.SliceNeed) []models.Task {
	c := &need.Cursor
	var rows []models.Task
	take := func(ref models.TaskRef) bool {
		if len(rows) >= need.Limit || !c.Until.IsZero() && ref.ID.Compare(c.Until) > 0 {
			return false
		}
		if ref.Env == c.Env {
			rows = append(rows, s.tasks[ref])
		}
		return true
	}
	target := models.TaskRef{Env: c.Env, ID: c.Target}
	switch c.Kind {
	case models.EnterStaged:
		s.staged.of[c.Target].above(models.TaskRef{Env: c.Env, ID: c.After})(take)
	case models.CancelWorkflow:
		s.members.of[target].above(c.After)(func(id models.ID) bool { return take(models.TaskRef{Env: c.Env, ID: id}) })
	case models.OpenWorkflow, models.RedriveWorkflow, models.RankWorkflow:
		s.members.of[target].above(c.After)(func(id models.ID) bool {
			row := s.tasks[models.TaskRef{Env: c.Env, ID: id}]
			return !concerns(c.Kind, &row) || take(models.TaskRef{Env: c.Env, ID: id})
		})
	case models.BulkAction:
		s.listed.of[c.Target].above(c.After)(func(id models.ID) bool { return take(models.TaskRef{Env: c.Env, ID: id}) })
	case models.CancelChildren:
		s.below.of[target].above(c.After)(func(id models.ID) bool {
			row := s.tasks[models.TaskRef{Env: c.Env, ID: id}]
			return row.State.Final() || row.Has(models.Detached) || take(models.TaskRef{Env: c.Env, ID: id})
		})
	case models.RedriveDead, models.DiscardDead:
		s.dead.of[target].above(c.After)(func(id models.ID) bool { return take(models.TaskRef{Env: c.Env, ID: id}) })
	}
	return rows
}
