package memory

import (
	"cmp"
	"maps"
	"slices"

	"nightshift/models"
)

// modelRows are models, and what was chosen and seen.
type modelRows struct {
	models   map[models.ModelRef]models.Model
	choices  map[models.TaskRef][]models.Choice
	seen     map[seenKey]models.ModelSeen
	breakers map[models.ModelRef]models.ModelBreaker
	left     map[models.ModelRef]models.ModelLevel
}

type seenKey struct {
	tenant     int32
	typ, model string
}

func newModelRows() modelRows {
	return modelRows{
		models: map[models.ModelRef]models.Model{}, choices: map[models.TaskRef][]models.Choice{}, seen: map[seenKey]models.ModelSeen{},
		breakers: map[models.ModelRef]models.ModelBreaker{}, left: map[models.ModelRef]models.ModelLevel{},
	}
}

// choose writes what a plan changes of models.
func (s *Store) choose(p *models.ModelPlan) {
	for _, ref := range p.Gone {
		delete(s.models, ref)
		delete(s.left, ref)
	}
	for _, m := range p.Models {
		s.models[m.Ref()] = cloneModel(m)
	}
	s.putChoices(p.Choices)
	for _, v := range p.Seen {
		s.seen[seenKey{v.Tenant, v.Type, v.Model}] = v
	}
	for _, b := range p.Breakers {
		ref := models.ModelRef{Tenant: b.Tenant, Name: b.Model}
		if s.breakers[ref] = b; b.Opened == 0 {
			delete(s.breakers, ref)
		}
	}
	for _, l := range p.Levels {
		s.left[models.ModelRef{Tenant: l.Tenant, Name: l.Model}] = l
	}
}

func (s *Store) putChoices(list []models.Choice) {
	for _, c := range list {
		ref := models.TaskRef{Env: c.Env, ID: c.Task}
		s.choices[ref] = append(s.choices[ref], c)
	}
}

func cloneModel(m models.Model) models.Model {
	m.TaskTypes, m.OffPeak, m.Fallbacks, m.Quality = slices.Clone(m.TaskTypes), slices.Clone(m.OffPeak), slices.Clone(m.Fallbacks), maps.Clone(m.Quality)
	return m
}

func compareModels(a, b models.ModelRef) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Name, b.Name))
}

func compareSeen(a, b seenKey) int {
	return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.typ, b.typ), cmp.Compare(a.model, b.model))
}

func (s *Store) modelSnapshot() models.ModelSnapshot {
	out := models.ModelSnapshot{
		Models: sorted(s.models, compareModels), Seen: sorted(s.seen, compareSeen), Breakers: sorted(s.breakers, compareModels), Levels: sorted(s.left, compareModels),
	}
	for i := range out.Models {
		out.Models[i] = cloneModel(out.Models[i])
	}
	return out
}

// chosen tells of a need what was chosen, and what was said of results before.
func (s *Store) chosen(need *models.Need, f *models.Facts) {
	for _, ref := range need.Choices {
		if list := s.choices[ref]; len(list) > 0 {
			last := list[len(list)-1]
			last.Ranking = nil
			f.Choices[ref] = last
		}
	}
	for _, ref := range need.Qualities {
		if q, ok := s.qualities[qualityKey{models.TaskRef{Env: ref.Env, ID: ref.Task}, ref.Source}]; ok {
			f.Qualities[ref] = q.Score
		}
	}
}

// Choices are all that was chosen for a task, the first first.
func (s *Store) Choices(of models.TaskRef) []models.Choice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.choices[of])
}
