package worker

import (
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
	"nightshift/workers/protocol"
)

// The single forms name the task in the path and its lease in a header. The token is one attempt's own and dies with it, so
// that they need no session; one that is sent must be the session that holds the lease.

// leaseOf reads both. A header that names no lease of this task is a lost lease.
func (f *Floor) leaseOf(c *fiber.Ctx) (ref models.TaskRef, token models.ID, wire string, err error) {
	id, err := handlers.PathID(c, "id", models.TaskPrefix)
	if err != nil {
		return ref, token, "", err
	}
	wire = c.Get(protocol.HeaderLease)
	if wire == "" {
		return ref, token, "", models.Invalid("header."+protocol.HeaderLease, "is required: the lease_token of the claim")
	}
	ref, token, ok := models.ParseWireToken(wire)
	if ok && ref.ID == id {
		if ok, err = f.serves(c, ref.Env); err != nil || ok {
			return ref, token, wire, err
		}
	}
	return ref, token, wire, f.noLease(c, id)
}

// noLease refuses a header that opens nothing: of a task that the caller can see the lease is lost, any other task is
// not there, be it another tenant's or nobody's.
func (f *Floor) noLease(c *fiber.Ctx, id models.ID) error {
	if caller := handlers.CallerOf(c); !caller.Platform {
		if _, err := f.reads.State(c.UserContext(), caller.Scope(), caller.Env, id); err != nil {
			return err
		}
	}
	return lost(id)
}

func lost(id models.ID) error {
	return models.Errorf(models.LeaseLost, "the lease of %s has passed on: stop working on it", id.Text(models.TaskPrefix))
}

// single opens the body of a single form.
func single(c *fiber.Ctx) (body.Value, *body.Problems, error) {
	p := &body.Problems{}
	text, err := optionalBody(c)
	if err != nil {
		return body.Value{}, p, err
	}
	v, err := body.Open(text, "body", p)
	return v, p, err
}

func (f *Floor) complete(d *handlers.Deps, c *fiber.Ctx) error {
	return f.settleOne(d, c, models.AttemptSucceeded, "result", "usage", "items", "watermark", "checkpoint")
}

func (f *Floor) fail(d *handlers.Deps, c *fiber.Ctx) error {
	return f.settleOne(d, c, models.AttemptFailed, "error", "usage", "checkpoint", "retry_after_seconds")
}

// settleOne reports one attempt; the members are those its form takes.
func (f *Floor) settleOne(d *handlers.Deps, c *fiber.Ctx, outcome models.Outcome, members ...string) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	ref, token, wire, err := f.leaseOf(c)
	if err != nil {
		return err
	}
	v, p, err := single(c)
	if err != nil {
		return err
	}
	r := readReport(v, p, members)
	if err := p.Err(models.ValidationFailed); err != nil {
		return err
	}
	r.Outcome, r.wire, r.known, r.Token, r.Task = outcome, wire, true, token, ref
	session, err := handlers.SentSession(c)
	if err != nil {
		return err
	}
	verdicts, err := f.settle(d, c, &engine.Settle{Env: ref.Env, Task: ref.ID, Session: session}, []report{r})
	if err != nil {
		return err
	}
	if !verdicts[0].Accepted {
		return lost(ref.ID)
	}
	return handlers.Answer(c, fiber.StatusOK, verdicts[0])
}

func (f *Floor) beat(d *handlers.Deps, c *fiber.Ctx) error {
	return f.renew(d, c, func(b *engine.Beat, name string, m body.Value) {
		switch name {
		case "progress":
			b.Progress = sized(m, handlers.CheckpointLimit)
		case "checkpoint":
			b.Checkpoint = sized(m, handlers.CheckpointLimit)
		default:
			m.Wrong("there is no such field")
		}
	}, "")
}

func (f *Floor) checkpoint(d *handlers.Deps, c *fiber.Ctx) error {
	return f.renew(d, c, func(b *engine.Beat, name string, m body.Value) {
		if name != "checkpoint" {
			m.Wrong("there is no such field")
			return
		}
		b.Checkpoint = sized(m, handlers.CheckpointLimit)
	}, "checkpoint")
}

// renew keeps one lease alive with what its body brings; needed is a member that must be there.
func (f *Floor) renew(d *handlers.Deps, c *fiber.Ctx, read func(*engine.Beat, string, body.Value), needed string) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	ref, token, wire, err := f.leaseOf(c)
	if err != nil {
		return err
	}
	v, p, err := single(c)
	if err != nil {
		return err
	}
	beat := engine.Beat{Token: token, Task: ref}
	found := needed == ""
	v.Members(func(name string, m body.Value) {
		found = found || name == needed
		read(&beat, name, m)
	})
	if !found {
		p.Addf(body.Dot("body", needed), "is required")
	}
	if err := p.Err(models.ValidationFailed); err != nil {
		return err
	}
	session, err := handlers.SentSession(c)
	if err != nil {
		return err
	}
	answer, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Heartbeat = &engine.Heartbeat{Env: ref.Env, Task: ref.ID, Session: session, Leases: []engine.Beat{beat}}
	})
	if err != nil {
		return err
	}
	if !answer.Beaten.Leases[0].OK {
		return lost(ref.ID)
	}
	return handlers.Answer(c, fiber.StatusOK, viewBeat(wire, &answer.Beaten.Leases[0]))
}
