package api

import (
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// steer asks something of the workflow in the path and shows it as it then stands.
func (w *Work) steer(d *handlers.Deps, c *fiber.Ctx, fill func(*engine.Steer)) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	id, err := flowID(c)
	if err != nil {
		return err
	}
	why, err := readReason(c, false)
	if err != nil {
		return err
	}
	answer, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Steer = &engine.Steer{Env: handlers.CallerOf(c).Env, Workflow: id, Reason: why}
		fill(cmd.Steer)
	})
	switch {
	case err != nil:
		return err
	case answer.Cursor != nil: // it goes on
		return w.showFlow(d, c, fiber.StatusAccepted, id)
	}
	return w.showFlow(d, c, fiber.StatusOK, id)
}

func (w *Work) pauseFlow(d *handlers.Deps, c *fiber.Ctx) error {
	return w.steer(d, c, func(s *engine.Steer) { s.Pause = true })
}

func (w *Work) resumeFlow(d *handlers.Deps, c *fiber.Ctx) error {
	return w.steer(d, c, func(s *engine.Steer) { s.Resume = true })
}

func (w *Work) retryFlow(d *handlers.Deps, c *fiber.Ctx) error {
	return w.steer(d, c, func(s *engine.Steer) { s.Retry = true })
}

// FlowEditInput describes what PATCH changes; it is read member by member.
type FlowEditInput struct {
	Budget   BudgetInput        `json:"budget" doc:"limits are only raised"`
	Priority int                `json:"priority" minimum:"0" maximum:"100" doc:"of all its tasks that have not ended"`
	Labels   map[string]*string `json:"labels" doc:"merged; null takes one away"`
}

func (w *Work) editFlow(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	id, err := flowID(c)
	if err != nil {
		return err
	}
	edit, err := readFlowEdit(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	if insisted := handlers.IfMatch(c); insisted.OfVersion() {
		row, err := w.Reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, id)
		if err != nil {
			return err
		}
		version := int64(row.UpdatedAt)
		if err := insisted.Fits(version); err != nil {
			return err
		}
		edit.Version = &version
	}
	if _, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Steer = &engine.Steer{Env: caller.Env, Workflow: id, Edit: edit}
	}); err != nil {
		return err
	}
	return w.showFlow(d, c, fiber.StatusOK, id)
}

func readFlowEdit(c *fiber.Ctx) (*engine.FlowEdit, error) {
	text, err := handlers.ReadBody(c)
	if err != nil {
		return nil, err
	}
	p := &body.Problems{}
	v, err := body.Open(text, "body", p)
	if err != nil {
		return nil, err
	}
	edit := &engine.FlowEdit{}
	v.Members(func(name string, m body.Value) {
		switch {
		case name != "budget" && name != "priority" && name != "labels":
			m.Wrong("there is no such field")
		case m.Null():
			m.Wrong("cannot be taken away")
		case name == "budget":
			budget := readBudget(m)
			edit.Budget = &budget
		case name == "priority":
			priority := int16(m.Int(0, 100))
			edit.Priority = &priority
		default:
			edit.Labels = readLabels(m)
		}
	})
	return edit, p.Err(models.ValidationFailed)
}

// readLabels reads labels to merge; null takes one away.
func readLabels(v body.Value) map[string]*string {
	labels := map[string]*string{}
	v.Members(func(key string, m body.Value) {
		switch {
		case key == "" || len(key) > maxKeyBytes || !handlers.Storable(key):
			m.Wrong("a label's name has 1 to %d bytes", maxKeyBytes)
		case m.Null():
			labels[key] = nil
		default:
			value := m.String(0, maxKeyBytes)
			labels[key] = &value
		}
	})
	if len(labels) > handlers.LabelsMost {
		v.Wrong("must have at most %d entries", handlers.LabelsMost)
	}
	return labels
}

// skipTask passes a task of a workflow over.
func (w *Work) skipTask(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	id, err := flowID(c)
	if err != nil {
		return err
	}
	key, err := handlers.PathParam(c, "key")
	if err != nil {
		return err
	}
	why, err := readReason(c, false)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	task, err := w.Reads.Member(c.UserContext(), caller.Scope(), caller.Env, id, key)
	if err != nil {
		return err
	}
	if _, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Skip = &engine.Skip{Env: caller.Env, Task: task, Reason: why}
	}); err != nil {
		return err
	}
	return w.show(d, c, fiber.StatusOK, task)
}

// followFlow streams what happens to a workflow, from its beginning.
func (w *Work) followFlow(d *handlers.Deps, c *fiber.Ctx) error {
	values, err := handlers.ReadQuery(c, "after")
	if err != nil {
		return err
	}
	id, err := flowID(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	if _, err := w.Reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, id); err != nil {
		return err
	}
	ask := handlers.FollowAsk{Envs: []int32{caller.Env}, Workflow: id, After: handlers.Beginning}
	name, given := "Last-Event-ID", c.Get("Last-Event-ID")
	if list := values["after"]; given == "" && len(list) > 0 {
		name, given = "after", list[0]
	}
	if given != "" {
		if _, err := parsePlace(name, given); err != nil {
			return err
		}
		ask.After = given
	}
	return handlers.StreamEvents(d, c, ask)
}
