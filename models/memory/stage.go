package memory

import (
	"context"

	"nightshift/models"
)

// Stage writes a part of a body too large for one command. The staging's Tasks are the rows that really came.
func (s *Store) Stage(_ context.Context, body *models.StagedBody) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g, exists := s.stagings[body.Staging.ID]; exists && (g.Flipped || g.Env != body.Staging.Env) {
		return models.Errorf(models.BadData, "staging %x takes nothing more", body.Staging.ID)
	}
	made, keys := make(map[models.TaskRef]bool, len(body.Tasks)), map[models.IdemRef]bool{}
	for i := range body.Tasks {
		t := &body.Tasks[i]
		if t.State != models.Staged {
			return models.Errorf(models.BadData, "task %s is %s, not staged", t.ID.Text(models.TaskPrefix), t.State)
		}
		if err := s.checkNew(t, made, keys); err != nil {
			return err
		}
	}
	g, exists := s.stagings[body.Staging.ID]
	if !exists {
		g = body.Staging
		g.Tasks, g.Flipped = 0, false
	}
	g.Tasks += int64(len(body.Tasks))
	s.stagings[g.ID] = g
	for _, t := range body.Tasks {
		s.stagingOf[refOf(&t)] = g.ID
		s.put(t)
	}
	s.beside(body.Specs, body.Labels, body.Edges)
	return nil
}
