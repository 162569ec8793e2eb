package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// Made is what a creating call answers.
type Made struct {
	Status   int
	Location string // a path; empty: none
	Body     any
	// Replay says that the brain (or the database) knew the key: nothing was made by this call.
	Replay bool
	// Again rebuilds the answer of a replay whose stored body got lost with its replica; nil: it can't be.
	Again func() (*Made, error)
}

// onceWait is how long a second call waits for the first one's answer.
const onceWait = 2 * time.Second

// Create runs a creating POST, once for each Idempotency-Key: do gets the key to hand to the brain (nil without the
// header), and its committed answer is kept, sealed, for whoever asks again. The body must have been read before.
func Create(d *Deps, c *fiber.Ctx, do func(*engine.Once) (*Made, error)) error {
	once, err := onceOf(c)
	if err != nil {
		return err
	}
	if once == nil {
		made, err := do(nil)
		if err != nil {
			return err
		}
		return answerMade(c, made)
	}
	if found, err := replayStored(d, c, once, 0); err != nil || found {
		return err
	}
	made, err := do(once)
	if err != nil {
		return err
	}
	if !made.Replay {
		return keepAndAnswer(d, c, once, made)
	}
	if found, err := replayStored(d, c, once, onceWait); err != nil || found {
		return err
	}
	return answerAgain(d, c, once, made)
}

// HasKey says whether the call came with an Idempotency-Key.
func HasKey(c *fiber.Ctx) bool { return c.Request().Header.Peek("Idempotency-Key") != nil }

// onceOf is the key of the call: bound to the caller's world and path, with the digest of what is asked.
func onceOf(c *fiber.Ctx) (*engine.Once, error) {
	given := c.Request().Header.Peek("Idempotency-Key")
	if given == nil {
		return nil, nil
	}
	key := string(given)
	if key == "" || len(key) > 255 || !Storable(key) {
		return nil, models.Invalid("header.Idempotency-Key", "a key has 1 to 255 bytes of UTF-8")
	}
	caller := CallerOf(c)
	sum, _ := c.Locals(digestKey{}).([sha256.Size]byte)
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n%s\n", c.Method(), c.Path(), c.Request().URI().QueryString())
	hash.Write(sum[:])
	once := &engine.Once{Scope: fmt.Sprintf("%d/%d %s", caller.Tenant, caller.Env, c.Path()), Key: key}
	copy(once.Request[:], hash.Sum(nil))
	return once, nil
}

// replayStored answers from what is stored, waiting up to patience for it to appear.
func replayStored(d *Deps, c *fiber.Ctx, once *engine.Once, patience time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(c.UserContext(), patience+5*time.Second)
	defer cancel()
	for end := time.Now().Add(patience); ; {
		kept, err := d.People.KeptAnswer(ctx, once.Scope, once.Key)
		switch {
		case err != nil:
			return false, err
		case kept != nil && kept.Request != once.Request:
			return false, ReusedKey()
		case kept != nil && kept.Status != 0:
			return true, replay(c, kept)
		case !time.Now().Before(end):
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, models.Errorf(models.Unavailable, "the wait was cut short")
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// ReusedKey refuses a key that came before with another request.
func ReusedKey() error {
	return models.Errorf(models.IdempotencyKeyReused, "this Idempotency-Key was sent before with another request")
}

func replay(c *fiber.Ctx, kept *postgres.KeptAnswer) error {
	c.Set("Idempotent-Replayed", "true")
	if kept.Location != "" {
		c.Set(fiber.HeaderLocation, kept.Location)
	}
	return answerBytes(c, kept.Status, kept.Body)
}

func keepAndAnswer(d *Deps, c *fiber.Ctx, once *engine.Once, made *Made) error {
	kept, err := Keep(once, made)
	if err != nil {
		return err
	}
	if err := d.People.KeepAnswer(c.UserContext(), kept); err != nil {
		// What was asked for is committed: the caller gets the answer, and a resend rebuilds it.
		d.Logger.Warn("an answer could not be kept for a replay", "request_id", RequestID(c), "error", err)
	}
	if made.Location != "" {
		c.Set(fiber.HeaderLocation, made.Location)
	}
	return answerBytes(c, made.Status, kept.Body)
}

// Keep is an answer as it is stored: for handlers that store it in the transaction of what they made.
func Keep(once *engine.Once, made *Made) (*postgres.KeptAnswer, error) {
	body, err := json.Marshal(made.Body)
	if err != nil {
		return nil, models.Errorf(models.Internal, "the answer can't be written: %w", err)
	}
	return &postgres.KeptAnswer{
		Scope: once.Scope, Key: once.Key, Request: once.Request, Status: made.Status, Location: made.Location, Body: body,
	}, nil
}

// answerAgain is for a replay without a stored body: its replica ended between the commit and the storing, or has not
// stored it yet.
func answerAgain(d *Deps, c *fiber.Ctx, once *engine.Once, made *Made) error {
	if made.Again == nil {
		e := models.Errorf(models.IdempotencyInProgress, "the first call with this Idempotency-Key is still being answered")
		e.RetryAfterSeconds = 1
		return e
	}
	again, err := made.Again()
	if err != nil {
		return err
	}
	c.Set("Idempotent-Replayed", "true")
	return keepAndAnswer(d, c, once, again)
}

func answerMade(c *fiber.Ctx, made *Made) error {
	if made.Location != "" {
		c.Set(fiber.HeaderLocation, made.Location)
	}
	return Answer(c, made.Status, made.Body)
}
