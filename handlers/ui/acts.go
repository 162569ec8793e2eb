package ui

import (
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/templates"
)

const (
	reasonMost  = 500
	redriveMost = 500 // dead letters of a workflow redriven by one press
)

// readReason is why the viewer does it.
func readReason(c *fiber.Ctx) (string, error) {
	reason := strings.TrimSpace(c.FormValue("reason"))
	if len(reason) > reasonMost || !handlers.Storable(reason) {
		return "", models.Invalid("reason", "it has at most %d bytes of text", reasonMost)
	}
	return reason, nil
}

// act does one command that concerns a task or workflow and goes back to it.
func (p *pages) act(c *fiber.Ctx, collection, prefix, text string, set func(*engine.Command, models.ID, int32, string) error) error {
	id, err := handlers.PathID(c, "id", prefix)
	if err != nil {
		return err
	}
	to := frame(c, "", "").URL(templates.ObjectPath(collection, id.Text(prefix)))
	reason, err := readReason(c)
	if err != nil {
		return done(c, to, "", err)
	}
	caller := handlers.CallerOf(c)
	command := p.Command(caller)
	if err := set(command, id, caller.Env, reason); err != nil {
		return done(c, to, "", err)
	}
	_, err = p.Door.Do(c.UserContext(), command)
	return done(c, to, text, err)
}

func (p *pages) cancelTask(c *fiber.Ctx) error {
	return p.act(c, "/tasks", models.TaskPrefix, "The task is cancelled, or its worker is asked to stop.",
		func(cmd *engine.Command, id models.ID, env int32, reason string) error {
			cmd.Cancel = &engine.Cancel{Env: env, Task: id, Reason: reason}
			return nil
		})
}

func (p *pages) redriveTask(c *fiber.Ctx) error {
	return p.act(c, "/tasks", models.TaskPrefix, "The task got new attempts.",
		func(cmd *engine.Command, id models.ID, env int32, reason string) error {
			cmd.Redrive = &engine.Redrive{Env: env, Task: id, Reason: reason}
			return nil
		})
}

func (p *pages) discardTask(c *fiber.Ctx) error {
	return p.act(c, "/tasks", models.TaskPrefix, "The task is given up.",
		func(cmd *engine.Command, id models.ID, env int32, reason string) error {
			cmd.Discard = &engine.Discard{Env: env, Task: id, Reason: reason}
			return needReason(reason)
		})
}

func (p *pages) cancelWorkflow(c *fiber.Ctx) error {
	return p.act(c, "/workflows", models.WorkflowPrefix, "The workflow is being cancelled.",
		func(cmd *engine.Command, id models.ID, env int32, reason string) error {
			cmd.Cancel = &engine.Cancel{Env: env, Workflow: id, Reason: reason}
			return nil
		})
}

func needReason(reason string) error {
	if reason == "" {
		return models.Errorf(models.ValidationFailed, "say why: the reason is kept with the decision")
	}
	return nil
}

// redriveWorkflow gives the dead letters of a workflow another life.
func (p *pages) redriveWorkflow(c *fiber.Ctx) error {
	id, err := handlers.PathID(c, "id", models.WorkflowPrefix)
	if err != nil {
		return err
	}
	to := frame(c, "", "").URL(templates.ObjectPath("/workflows", id.Text(models.WorkflowPrefix)))
	n, err := p.redriveSome(c, &postgres.TaskFilter{Workflows: []models.ID{id}, Limit: redriveMost})
	return done(c, to, words(int64(n), "dead letter", "dead letters")+" got new attempts.", err)
}

// redriveSome redrives those that a filter finds, one by one. One that was decided meanwhile is passed over.
func (p *pages) redriveSome(c *fiber.Ctx, filter *postgres.TaskFilter) (n int, err error) {
	reason, err := readReason(c)
	if err != nil {
		return 0, err
	}
	caller := handlers.CallerOf(c)
	filter.States = []models.State{models.DeadLetter}
	rows, err := p.reads.Tasks(c.UserContext(), caller.Scope(), caller.Env, filter)
	if err != nil {
		return 0, err
	}
	for i := range rows {
		command := p.Command(caller)
		command.Redrive = &engine.Redrive{Env: caller.Env, Task: rows[i].ID, Reason: reason}
		_, err := p.Door.Do(c.UserContext(), command)
		switch models.CodeOf(err) {
		case "":
			n++
		case models.StateConflict, models.NotFound:
		default:
			return n, err
		}
	}
	return n, nil
}

func (p *pages) redriveDead(c *fiber.Ctx) error {
	to := frame(c, "", "").URL("/dead-letters")
	fingerprint, err := readFingerprint(c)
	if err != nil {
		return done(c, to, "", err)
	}
	if sample := c.FormValue("sample"); sample != "" {
		most, err := strconv.Atoi(sample)
		if err != nil || most < 1 || most > redriveMost {
			return done(c, to, "", models.Errorf(models.ValidationFailed, "a sample has 1 to %d tasks", redriveMost))
		}
		n, err := p.redriveSome(c, &postgres.TaskFilter{Fingerprints: []models.ID{fingerprint}, Desc: true, Limit: most})
		return done(c, to, words(int64(n), "dead letter", "dead letters")+" got new attempts.", err)
	}
	n, err := p.bulk(c, models.RedriveDead, fingerprint)
	return done(c, to, words(n, "dead letter gets", "dead letters get")+" new attempts.", err)
}

func (p *pages) discardDead(c *fiber.Ctx) error {
	to := frame(c, "", "").URL("/dead-letters")
	fingerprint, err := readFingerprint(c)
	if err == nil {
		err = needReason(strings.TrimSpace(c.FormValue("reason")))
	}
	if err != nil {
		return done(c, to, "", err)
	}
	n, err := p.bulk(c, models.DiscardDead, fingerprint)
	return done(c, to, words(n, "dead letter is", "dead letters are")+" given up.", err)
}

func readFingerprint(c *fiber.Ctx) (id models.ID, err error) {
	if id.UnmarshalText([]byte(c.FormValue("fingerprint"))) != nil {
		return id, models.Errorf(models.ValidationFailed, "name the group by its fingerprint")
	}
	return id, nil
}

// bulk starts the work on all dead letters of a fingerprint; it goes on after the answer.
func (p *pages) bulk(c *fiber.Ctx, kind models.CursorKind, fingerprint models.ID) (int64, error) {
	caller := handlers.CallerOf(c)
	reason, err := readReason(c)
	if err != nil {
		return 0, err
	}
	matched, err := p.reads.CountDead(c.UserContext(), caller.Scope(), caller.Env, fingerprint)
	if err != nil {
		return 0, err
	}
	if matched == 0 {
		return 0, models.Errorf(models.NotFound, "this group has no dead letters any more")
	}
	command := p.Command(caller)
	command.Bulk = &engine.Bulk{
		ID: p.Mint(), Env: caller.Env, Kind: kind, Fingerprint: fingerprint, Matched: matched, Until: p.Mint(), Reason: reason,
	}
	_, err = p.Door.Do(c.UserContext(), command)
	return matched, err
}
