package web

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
)

// brainSilence is how long a brain may go unrenewed before this replica says that none is known.
const brainSilence = 10 * time.Second

// Health is the answer of /healthz.
type Health struct {
	Status   string `json:"status" enum:"ok,failing"`
	Database string `json:"database" enum:"ok,unreachable"`
	Migrated bool   `json:"migrated"`
	Brain    string `json:"brain" enum:"ok,unknown,newer" doc:"newer: a version decides that this replica does not understand"`
	Epoch    int64  `json:"epoch"`
	Version  string `json:"version"`
}

func (s *Server) health(ctx context.Context) Health {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	h := Health{Status: "failing", Database: "unreachable", Brain: "unknown", Version: s.deps.Version}
	if s.deps.DB.Ping(ctx) != nil {
		return h
	}
	h.Database = "ok"
	if migrated, err := s.deps.DB.Migrated(ctx); err != nil || !migrated {
		return h
	}
	h.Migrated = true
	brain, err := s.deps.World.Brain(ctx)
	if err != nil {
		return h
	}
	h.Epoch = brain.Epoch
	if brain.Newer {
		h.Brain = "newer"
		return h
	}
	if brain.Epoch > 0 && brain.RenewedAgo < brainSilence {
		h.Status, h.Brain = "ok", "ok"
	}
	return h
}

func (s *Server) livez(_ *handlers.Deps, c *fiber.Ctx) error { return c.SendString("ok\n") }

func (s *Server) readyz(_ *handlers.Deps, c *fiber.Ctx) error {
	switch h := s.health(c.UserContext()); {
	case h.Database != "ok":
		return models.Errorf(models.Unavailable, "the database does not answer")
	case !h.Migrated:
		return models.Errorf(models.Unavailable, "the schema is not there yet")
	case h.Brain == "newer":
		return models.Errorf(models.Unavailable, "a newer version decides: this replica is to be replaced by it")
	case h.Brain != "ok":
		return models.Errorf(models.Unavailable, "no brain is known")
	}
	return c.SendString("ok\n")
}

func (s *Server) healthz(_ *handlers.Deps, c *fiber.Ctx) error {
	h := s.health(c.UserContext())
	status := fiber.StatusOK
	if h.Status != "ok" {
		status = fiber.StatusServiceUnavailable
		c.Set(fiber.HeaderRetryAfter, "1")
	}
	return handlers.Answer(c, status, h)
}
