package ui

import (
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/templates"
)

// actOnTask is an action of the API on the task in the path, with a reason.
func (p *pages) actOnTask(verb, text string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := handlers.PathID(c, "id", models.TaskPrefix)
		if err != nil {
			return err
		}
		name := id.Text(models.TaskPrefix)
		return p.act(c, place(c, templates.ObjectPath("/tasks", name)), text, apiPath("tasks", name, verb), reasonOf(c))
	}
}

// editTask changes the priority or the lane of a task that waits.
func (p *pages) editTask(c *fiber.Ctx) error {
	id, err := handlers.PathID(c, "id", models.TaskPrefix)
	if err != nil {
		return err
	}
	name, change := id.Text(models.TaskPrefix), reasonOf(c)
	if text := strings.TrimSpace(c.FormValue("priority")); text != "" {
		change["priority"] = numberOr(text)
	}
	if lane := strings.TrimSpace(c.FormValue("lane")); lane != "" {
		change["lane"] = lane
	}
	_, err = p.call(c, fiber.MethodPatch, apiPath("tasks", name), change)
	return done(c, place(c, templates.ObjectPath("/tasks", name)), "The task is changed.", err)
}

// numberOr is a typed number; what is none stays a text, for the API to refuse under its name.
func numberOr(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil && x == x && x-x == 0 {
		return x
	}
	return text
}

// retryTask gives a dead letter another life, or makes a task like one that has ended, and goes to whichever it is.
func (p *pages) retryTask(c *fiber.Ctx) error {
	id, err := handlers.PathID(c, "id", models.TaskPrefix)
	if err != nil {
		return err
	}
	name, body := id.Text(models.TaskPrefix), reasonOf(c)
	edited := c.FormValue("edited") != ""
	if edited {
		payload, err := jsonField(c, "payload")
		if err != nil {
			return p.showRetry(c, fiber.StatusUnprocessableEntity, err)
		}
		if body["payload"] = payload; payload == nil {
			body["payload"] = nil
		}
	}
	if c.FormValue("afresh") != "" {
		body["from_checkpoint"] = false
	}
	reply, err := p.call(c, fiber.MethodPost, apiPath("tasks", name, "retry"), body)
	if edited && err != nil && understood(err) {
		return p.showRetry(c, fiber.StatusUnprocessableEntity, err)
	}
	text := "The task got new attempts."
	if err == nil && reply.Status == fiber.StatusCreated {
		text, name = "This is a new task with the same input.", lastPart(reply.Location)
	}
	return done(c, place(c, templates.ObjectPath("/tasks", name)), text, err)
}

func lastPart(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// editRetry offers the payload of a task, to run it again with another one.
func (p *pages) editRetry(c *fiber.Ctx) error { return p.showRetry(c, fiber.StatusOK, nil) }

func (p *pages) showRetry(c *fiber.Ctx, status int, refused error) error {
	id, err := handlers.PathID(c, "id", models.TaskPrefix)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	row, err := p.reads.Task(c.UserContext(), caller.Scope(), caller.Env, id, postgres.Include{Payload: true})
	if err != nil {
		return err
	}
	view := templates.RetryView{
		Task: row.ID.Text(models.TaskPrefix), Type: row.Needs.Type, State: row.State.String(), Payload: pretty(row.Payload),
		Checkpoint: row.State == models.DeadLetter, Wrong: faults(refused),
	}
	if refused != nil {
		view.Payload, view.Reason, view.Afresh = c.FormValue("payload"), c.FormValue("reason"), c.FormValue("afresh") != ""
	}
	page, err := p.whole(c, "Run again", "/tasks")
	if err != nil {
		return err
	}
	return show(c, status, templates.Retry(page, view))
}

// actOnFlow is an action of the API on the workflow in the path.
func (p *pages) actOnFlow(verb, text string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := handlers.PathID(c, "id", models.WorkflowPrefix)
		if err != nil {
			return err
		}
		name := id.Text(models.WorkflowPrefix)
		return p.act(c, place(c, templates.ObjectPath("/workflows", name)), text, apiPath("workflows", name, verb), reasonOf(c))
	}
}

// rerunFlow makes a new workflow of a task and all behind it, and goes there.
func (p *pages) rerunFlow(c *fiber.Ctx) error {
	id, err := handlers.PathID(c, "id", models.WorkflowPrefix)
	if err != nil {
		return err
	}
	name, body := id.Text(models.WorkflowPrefix), reasonOf(c)
	body["from"] = c.FormValue("from")
	reply, err := p.call(c, fiber.MethodPost, apiPath("workflows", name, "rerun"), body)
	if err == nil {
		name = lastPart(reply.Location)
	}
	return done(c, place(c, templates.ObjectPath("/workflows", name)), "This is a new workflow, from "+handlers.Shorten(c.FormValue("from"), 80)+" on.", err)
}

// skipInFlow passes a task of a workflow over.
func (p *pages) skipInFlow(c *fiber.Ctx) error {
	id, err := handlers.PathID(c, "id", models.WorkflowPrefix)
	if err != nil {
		return err
	}
	name, key := id.Text(models.WorkflowPrefix), c.FormValue("key")
	to := place(c, templates.ObjectPath("/workflows", name))
	if key == "" {
		return done(c, to, "", models.Errorf(models.ValidationFailed, "name the task by its key"))
	}
	return p.act(c, to, handlers.Shorten(key, 80)+" is passed over; what waited for it goes on.", apiPath("workflows", name, "tasks", key, "skip"), reasonOf(c))
}

// redriveDead gives the dead letters of a group another life: all, some as a sample, at a pace, with a changed payload.
func (p *pages) redriveDead(c *fiber.Ctx) error {
	body, err := p.deadBody(c)
	to := place(c, "/dead-letters")
	if err != nil {
		return done(c, to, "", err)
	}
	n, err := p.bulk(c, "redrive", body)
	return done(c, to, words(n, "dead letter gets", "dead letters get")+" new attempts.", err)
}

func (p *pages) discardDead(c *fiber.Ctx) error {
	n, err := p.bulk(c, "discard", fieldsOfGroup(c))
	return done(c, place(c, "/dead-letters"), words(n, "dead letter is", "dead letters are")+" given up.", err)
}

func fieldsOfGroup(c *fiber.Ctx) fields {
	body := reasonOf(c)
	body["fingerprint"] = c.FormValue("fingerprint")
	return body
}

func (p *pages) deadBody(c *fiber.Ctx) (fields, error) {
	body := fieldsOfGroup(c)
	for form, name := range map[string]string{"sample": "sample", "rate": "rate_per_second"} {
		if text := strings.TrimSpace(c.FormValue(form)); text != "" {
			body[name] = numberOr(text)
		}
	}
	change, err := jsonField(c, "payload_patch")
	if change != nil {
		body["payload_patch"] = change
	}
	return body, err
}

// bulk starts the work on the dead letters of a group; it goes on after the answer.
func (p *pages) bulk(c *fiber.Ctx, verb string, body fields) (int64, error) {
	reply, err := p.call(c, fiber.MethodPost, apiPath("dead-letters", verb), body)
	if err != nil {
		return 0, err
	}
	var made struct {
		Matched int64 `json:"matched"`
	}
	if err := reply.Into(&made); err != nil {
		return 0, err
	}
	if made.Matched == 0 {
		return 0, models.Errorf(models.NotFound, "this group has no dead letters any more")
	}
	return made.Matched, nil
}

// countDead says how many dead letters of a group an action would reach now.
func (p *pages) countDead(c *fiber.Ctx) error {
	reply, err := p.call(c, fiber.MethodPost, apiPath("dead-letters", "redrive"), fields{"fingerprint": c.Query("fingerprint"), "dry_run": true})
	if err != nil {
		return err
	}
	var would struct {
		Matched int64 `json:"matched"`
	}
	if err := reply.Into(&would); err != nil {
		return err
	}
	return show(c, fiber.StatusOK, templates.DeadCount(words(would.Matched, "dead letter of this group now.", "dead letters of this group now.")))
}

// actOnLane is pause, resume or drain of a lane.
func (p *pages) actOnLane(verb, text string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		name, err := handlers.PathParam(c, "name")
		if err != nil {
			return err
		}
		return p.act(c, place(c, "/lanes"), strings.ReplaceAll(text, "%", name), apiPath("lanes", name, verb), reasonOf(c))
	}
}
