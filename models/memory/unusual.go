package memory

import (
	"slices"

	"nightshift/models"
)

// unusual writes what few batches have: growing trees, edited inputs, signals, judgements and dedupe keys.
func (s *Store) unusual(p *models.Plan) {
	for _, w := range p.Waits {
		ref := models.TaskRef{Env: w.Env, ID: w.Task}
		row := s.tasks[ref]
		row.Remaining += w.More
		row.Killed += w.Killed
		s.put(row)
	}
	s.link(p.Linked)
	for _, o := range p.Overrides {
		ref := models.TaskRef{Env: o.Env, ID: o.Task}
		row := s.overrides[ref]
		row.Env, row.Task = o.Env, o.Task
		if o.Input != nil {
			row.Input = o.Input
		}
		if o.Payload != nil {
			row.Payload = o.Payload
		}
		s.overrides[ref] = row
	}
	for _, g := range p.Signals {
		s.signals[g.ID] = g
	}
	for _, id := range p.SignalsGone {
		delete(s.signals, id)
	}
	for _, q := range p.Qualities {
		s.qualities[qualityKey{models.TaskRef{Env: q.Env, ID: q.Task}, q.Source}] = q
	}
	for _, m := range p.Watermarks {
		s.watermarks[models.IdemRef{Env: m.Env, Key: m.Name}] = m
	}
	s.putItems(p.Items)
	for _, d := range p.Dedupes {
		s.dedupes[models.IdemRef{Env: d.Env, Key: d.Key}] = d
	}
}

func (s *Store) unlabel(gone []models.Label) {
	for _, l := range gone {
		ref := models.TaskRef{Env: l.Env, ID: l.Task}
		s.labels[ref] = slices.DeleteFunc(s.labels[ref], func(o models.Label) bool { return o == l })
	}
}

// putItems keeps how far items are.
func (s *Store) putItems(items []models.Items) {
	for _, i := range items {
		i.Left = slices.Clone(i.Left)
		s.items[models.TaskRef{Env: i.Env, ID: i.Task}] = i
	}
}

// Items is how far the items of a task are.
func (s *Store) Items(of models.TaskRef) models.Items {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[of]
}

// Override is what was changed of a task's input.
func (s *Store) Override(ref models.TaskRef) models.Override {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.overrides[ref]
}

// Children are the ids of a task's children, in order.
func (s *Store) Children(of models.TaskRef) []models.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(s.below.of[of].all())
}

// Labels are a task's labels.
func (s *Store) Labels(of models.TaskRef) []models.Label {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.labels[of])
}

// Qualities are the judgements on a task's result, in no order.
func (s *Store) Qualities(of models.TaskRef) (out []models.Quality) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, q := range s.qualities { // any order
		if key.task == of {
			out = append(out, q)
		}
	}
	return out
}

// List names the tasks of a bulk action before it begins.
func (s *Store) List(under models.ID, tasks []models.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range tasks {
		s.listed.set(under, id, true)
	}
}

// payload is a task's payload as it stands.
func (r *rows) payload(ref models.TaskRef) []byte {
	if changed := r.overrides[ref].Payload; changed != nil {
		return changed
	}
	return r.specs[ref].Payload
}
