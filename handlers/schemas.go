package handlers

import (
	"context"
	"sync"
	"time"

	"nightshift/handlers/inputschema"
	"nightshift/models/postgres"
)

// schemasLife is how long the schemas of an environment are taken as read. A submit names the one it was checked by, so
// that the decision refuses what was checked by another than stands.
const schemasLife = 5 * time.Second

// InputSchema is what payloads of a type are checked by.
type InputSchema struct {
	*inputschema.Schema
	Number int64 // that the decision knows it by
}

// Schemas are the input schemas of environments, read when first asked for and compiled once.
type Schemas struct {
	world *postgres.World

	mu   sync.Mutex
	envs map[int32]entry[map[string]*InputSchema]
}

// NewSchemas reads through world.
func NewSchemas(world *postgres.World) *Schemas {
	return &Schemas{world: world, envs: map[int32]entry[map[string]*InputSchema]{}}
}

// Of are the schemas of an environment by type.
func (s *Schemas) Of(ctx context.Context, env int32) (map[string]*InputSchema, error) {
	s.mu.Lock()
	known, ok := s.envs[env]
	s.mu.Unlock()
	if ok && time.Since(known.read) < schemasLife {
		return known.value, nil
	}
	rows, err := s.world.Schemas(ctx, env)
	if err != nil {
		return nil, err
	}
	fresh := make(map[string]*InputSchema, len(rows))
	for _, row := range rows {
		if before := known.value[row.Type]; before != nil && before.Number == row.Schema {
			fresh[row.Type] = before
			continue
		}
		compiled, err := inputschema.Compile(row.InputSchema)
		if err != nil {
			continue // it was compiled when it was saved; one that a later version refuses lets everything pass
		}
		fresh[row.Type] = &InputSchema{compiled, row.Schema}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.envs) >= mostRemembered {
		clear(s.envs)
	}
	s.envs[env] = entry[map[string]*InputSchema]{fresh, time.Now()}
	return fresh, nil
}

// Forget reads an environment again at the next use. What was compiled stays.
func (s *Schemas) Forget(env int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.envs[env]; ok {
		known.read = time.Time{}
		s.envs[env] = known
	}
}
