package run

import (
	"context"

	"nightshift/workers"
	"nightshift/workers/index"
	"nightshift/workers/protocol"
)

// evaluateIn asks every heading of the index for its own section.
type evaluateIn struct {
	Workspace string `json:"workspace"`
	K         int    `json:"k"`
}

func (s *station) evaluate(_ context.Context, t *workers.Task, in evaluateIn) (index.Evaluation, error) {
	w, err := s.workspace(in.Workspace)
	if err != nil {
		return index.Evaluation{}, err
	}
	x, _, err := index.Open(w.path("index"))
	if err != nil {
		return index.Evaluation{}, workers.Errorf(protocol.ClassNotFound, "index: %w", err)
	}
	if len(x.Queries) == 0 {
		return index.Evaluation{}, workers.Errorf(protocol.ClassInvalidInput, "the index holds no heading that can be asked")
	}
	if in.K <= 0 {
		in.K = 10
	}
	e := index.Evaluate(x, in.K)
	t.Usage(func(u *protocol.Usage) { u.Quality = &e.RecallAtK })
	return e, w.writeJSON(e, "evaluation.json")
}
