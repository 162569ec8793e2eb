package handlers

import (
	"github.com/gofiber/fiber/v2"

	"nightshift/models"
	"nightshift/workers/protocol"
)

// SessionPrefix begins a worker's session on the wire.
const SessionPrefix = "ses"

// SentSession is the worker's session that a call came with, zero where it came with none: calls that name their lease need
// none, but one that is sent must hold the lease. session_replaced when it is no session at all.
func SentSession(c *fiber.Ctx) (models.ID, error) {
	given := c.Get(protocol.HeaderSession)
	if given == "" {
		return models.ID{}, nil
	}
	session, err := models.ParseID(SessionPrefix, given)
	if err != nil {
		err = models.Errorf(models.SessionReplaced, "the header %s names no session", protocol.HeaderSession)
	}
	return session, err
}
