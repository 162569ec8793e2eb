package memory

import (
	"cmp"
	"maps"
	"slices"

	"nightshift/models"
)

// Task is a task's row.
func (s *Store) Task(ref models.TaskRef) (models.Task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tasks[ref]
	return t, ok
}

// Tasks are all rows, in order of environment and id.
func (s *Store) Tasks() []models.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sorted(s.tasks, compareRefs)
}

// Spec is what was submitted beside a task's row.
func (s *Store) Spec(ref models.TaskRef) (models.Spec, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	spec, ok := s.specs[ref]
	return spec, ok
}

// Attempts are the records of a task's ended attempts, in the order they were written.
func (s *Store) Attempts(ref models.TaskRef) []models.Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.attempts[ref])
}

// Workflow is a workflow's row with its counts taken from the tasks.
func (s *Store) Workflow(ref models.TaskRef) (models.Workflow, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.workflow(ref)
}

// Edges are the edges that lead from a task.
func (s *Store) Edges(from models.TaskRef) []models.Edge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.edges[from])
}

// Progress is what a task's attempts said last.
func (s *Store) Progress(ref models.TaskRef) (models.Progress, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.progress[ref]
	return p, ok
}

// Events are what happened, in the order it was committed.
func (s *Store) Events() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// Audit are the records of what people and keys changed.
func (s *Store) Audit() []models.Audit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.audit)
}

// Said is what stands beside tasks and runs in rows of its own.
type Said struct {
	Labels     []models.Label // in order of environment, task, key and value
	Watermarks []models.Watermark
	Dedupes    []models.Dedupe
	Signals    []models.Signal
	Qualities  []models.Quality
	Messages   []models.Message // in order of where they came in
	Marks      []models.FeedMark
	Takes      []models.Take
}

// Said tells it all.
func (s *Store) Said() (out Said) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.labels { // any order: sorted by Sort
		out.Labels = append(out.Labels, list...)
	}
	for _, list := range s.messages { // any order: likewise
		out.Messages = append(out.Messages, list...)
	}
	for _, list := range s.takes { // any order: likewise
		out.Takes = append(out.Takes, list...)
	}
	out.Watermarks = slices.Collect(maps.Values(s.watermarks)) // any order: likewise
	out.Dedupes = slices.Collect(maps.Values(s.dedupes))       // any order: likewise
	out.Signals = slices.Collect(maps.Values(s.signals))       // any order: likewise
	out.Qualities = slices.Collect(maps.Values(s.qualities))   // any order: likewise
	out.Marks = slices.Collect(maps.Values(s.marks))           // any order: likewise
	out.Sort()
	return out
}

// Sort puts each list into one order.
func (s *Said) Sort() {
	slices.SortFunc(s.Labels, func(a, b models.Label) int {
		return cmp.Or(cmp.Compare(a.Env, b.Env), a.Task.Compare(b.Task), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value))
	})
	slices.SortFunc(s.Watermarks, func(a, b models.Watermark) int { return cmp.Or(cmp.Compare(a.Env, b.Env), cmp.Compare(a.Name, b.Name)) })
	slices.SortFunc(s.Dedupes, func(a, b models.Dedupe) int { return cmp.Or(cmp.Compare(a.Env, b.Env), cmp.Compare(a.Key, b.Key)) })
	slices.SortFunc(s.Signals, func(a, b models.Signal) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(s.Qualities, func(a, b models.Quality) int {
		return cmp.Or(cmp.Compare(a.Env, b.Env), a.Task.Compare(b.Task), cmp.Compare(a.Source, b.Source))
	})
	slices.SortFunc(s.Messages, func(a, b models.Message) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Env, b.Env), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Seq, b.Seq))
	})
	slices.SortFunc(s.Marks, func(a, b models.FeedMark) int { return a.Feed.Compare(b.Feed) })
	slices.SortFunc(s.Takes, func(a, b models.Take) int {
		return cmp.Or(cmp.Compare(a.Env, b.Env), a.Run.Compare(b.Run), cmp.Compare(a.N, b.N))
	})
}

// Forget deletes a workflow's row, as retention does, whatever became of its tasks.
func (s *Store) Forget(flow models.TaskRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.workflows, flow)
}

// Drift makes a task's counter of what it waits for wrong.
func (s *Store) Drift(task models.TaskRef, by int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.tasks[task]
	row.Remaining += by
	s.put(row)
}
