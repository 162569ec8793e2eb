package memory

import (
	"context"
	"slices"

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
	s.putItems(body.Items)
	s.putChoices(body.Choices)
	for _, t := range body.Made {
		s.madeBy[models.TaskRef{Env: t.Env, ID: t.Task}] = t.Schedule
	}
	return nil
}

// outside are the edges of a staged row to tasks outside its body, by their sources.
func (s *Store) outside(to models.TaskRef) (edges []models.Edge) {
	froms := slices.Clone(s.waitsFor[to])
	slices.SortFunc(froms, models.ID.Compare)
	for _, from := range slices.Compact(froms) {
		for _, e := range s.edges[models.TaskRef{Env: to.Env, ID: from}] {
			if e.To == to.ID && e.State == models.EdgeStaged {
				edges = append(edges, e)
			}
		}
	}
	return edges
}

// edge is the stored edge like e; nil when there is none.
func (s *Store) edge(e models.Edge) *models.Edge {
	list := s.edges[models.TaskRef{Env: e.Env, ID: e.From}]
	for i := range list {
		if list[i].To == e.To && list[i].On == e.On {
			return &list[i]
		}
	}
	return nil
}

// link says what became of edges to tasks outside a body.
func (s *Store) link(edges []models.Edge) {
	for _, e := range edges {
		s.edge(e).State = e.State
	}
}
