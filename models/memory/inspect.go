package memory

import (
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
