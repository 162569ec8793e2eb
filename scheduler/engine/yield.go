package engine

import (
	"fmt"
	"slices"
	"strings"

	"nightshift/models"
	"nightshift/scheduler/board"
)

// checkKindYields refuses a kind that yields to what there is not, or that would yield to itself in the end.
func (e *Engine) checkKindYields(row *models.Kind) error {
	kinds := e.board.Kinds
	kinds[row.Name] = *row
	return checkYields(row.Name.String(), row.YieldsTo, "kind", func(name string) (to []string, known bool) {
		of, known := models.ParseKind(name)
		if !known || !kinds[of].Elastic {
			return nil, known
		}
		for _, k := range board.KindsBefore(&kinds, &kinds[of]) {
			to = append(to, k.String())
		}
		return to, known
	})
}

// checkLaneYields is the same for a lane and those of its environment.
func (e *Engine) checkLaneYields(row *models.Lane) error {
	return checkYields(row.Name, row.YieldsTo, "lane", func(name string) (to []string, known bool) {
		lane := row
		if name != row.Name {
			l := e.board.LaneNamed(row.Env, name)
			if l == nil {
				return nil, false
			}
			lane = &l.Lane
		}
		if lane.Elastic {
			to = lane.YieldsTo
		}
		return to, true
	})
}

// checkYields follows whom a thing yields to.
func checkYields(name string, to []string, noun string, follow func(string) ([]string, bool)) error {
	for i, other := range to {
		at := fmt.Sprintf("body.yields_to[%d]", i)
		if _, known := follow(other); !known {
			return models.Invalid(at, "there is no %s %q here", noun, other)
		}
		if slices.Contains(to[:i], other) {
			return models.Invalid(at, "%s is named twice", other)
		}
		if way := wayBack(name, other, follow, nil); way != nil {
			return models.Invalid(at, "%s would yield to itself: %s", name, strings.Join(append([]string{name}, way...), " → "))
		}
	}
	return nil
}

// wayBack is how one gets from a thing to the first by following whom each yields to, nil when there is no way.
func wayBack(first, from string, follow func(string) ([]string, bool), seen []string) []string {
	switch {
	case from == first:
		return append(seen, from)
	case slices.Contains(seen, from):
		return nil
	}
	seen = append(slices.Clone(seen), from)
	to, _ := follow(from)
	for _, next := range to {
		if way := wayBack(first, next, follow, seen); way != nil {
			return way
		}
	}
	return nil
}

// yieldedTo is a lane that names another one among those it yields to, empty when there is none.
func (e *Engine) yieldedTo(lane *board.Lane) string {
	for _, other := range e.board.LanesOf(lane.Env) {
		if other != lane && slices.Contains(other.YieldsTo, lane.Name) {
			return other.Name
		}
	}
	return ""
}
