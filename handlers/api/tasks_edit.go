package api

import (
	"maps"
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// EditInput describes the body of an edit; it is read member by member.
type EditInput struct {
	Priority  int               `json:"priority" minimum:"0" maximum:"100"`
	Deadline  handlers.Time     `json:"deadline"`
	Lane      string            `json:"lane"`
	RunAt     handlers.Time     `json:"run_at"`
	ExpiresAt handlers.Time     `json:"expires_at"`
	Labels    map[string]string `json:"labels" doc:"merged: null takes a label away"`
	Reason    string            `json:"reason"`
}

// changes is the body of an edit while it is read.
type changes struct {
	edit     engine.Edit
	relabel  bool
	wipe     bool              // labels: null
	labels   map[string]string // set
	unlabels []string          // taken away
}

func readEdit(c *fiber.Ctx) (*changes, error) {
	text, err := handlers.ReadBody(c)
	if err != nil {
		return nil, err
	}
	p := &body.Problems{}
	v, err := body.Open(text, "body", p)
	if err != nil {
		return nil, err
	}
	in := &changes{}
	v.Members(in.member)
	return in, p.Err(models.ValidationFailed)
}

func (in *changes) member(name string, m body.Value) {
	moment := func() *models.Instant {
		var at models.Instant
		if !m.Null() {
			at = m.Time()
		}
		return &at
	}
	switch name {
	case "priority":
		n := int16(m.Int(0, 100))
		in.edit.Priority = &n
	case "lane":
		lane := m.Name()
		in.edit.Lane = &lane
	case "deadline":
		in.edit.Deadline = moment()
	case "run_at":
		in.edit.RunAt = moment()
	case "expires_at":
		in.edit.ExpiresAt = moment()
	case "labels":
		in.readLabels(m)
	case "reason":
		if !m.Null() {
			in.edit.Reason = m.String(0, maxReasonBytes)
		}
	default:
		m.Wrong("there is no such field, or it can't be changed")
	}
}

func (in *changes) readLabels(m body.Value) {
	in.relabel = true
	if m.Null() {
		in.wipe = true
		return
	}
	in.labels = map[string]string{}
	m.Members(func(key string, v body.Value) {
		switch {
		case key == "" || len(key) > maxKeyBytes || !handlers.Storable(key):
			v.Wrong("a label's key has 1 to %d bytes without NUL", maxKeyBytes)
		case v.Null():
			in.unlabels = append(in.unlabels, key)
		default:
			in.labels[key] = v.String(0, maxKeyBytes)
		}
	})
}

// edit changes a task that waits.
func (w *Work) edit(d *handlers.Deps, c *fiber.Ctx) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	in, err := readEdit(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	if lane := in.edit.Lane; lane != nil {
		if err := mayEnter(caller, *lane); err != nil {
			return err
		}
	}
	insisted := handlers.IfMatch(c)
	for tries := edits(0); ; {
		row, err := w.Reads.Task(c.UserContext(), caller.Scope(), caller.Env, id, postgres.Include{})
		if err != nil {
			return err
		}
		if err := insisted.Fits(int64(row.UpdatedAt)); err != nil {
			return err
		}
		edit, err := in.of(row)
		if err != nil {
			return err
		}
		_, err = ask(d, c, func(cmd *engine.Command) { cmd.Edit = edit })
		if err == nil {
			return w.show(d, c, fiber.StatusOK, id)
		}
		if more, err := tries.again(c.UserContext(), err); !more {
			return err
		}
	}
}

// of is the edit of a task as it stands.
func (in *changes) of(row *postgres.TaskRow) (*engine.Edit, error) {
	edit := in.edit
	edit.Env, edit.Task, edit.Seen = row.Env, row.ID, row.UpdatedAt
	input := ParseInput(row.Input)
	if edit.RunAt != nil {
		input.RunAt, input.DelaySeconds = *edit.RunAt, 0
	}
	if edit.ExpiresAt != nil {
		input.ExpiresInSeconds = 0
	}
	if in.relabel {
		old := input.Labels
		input.Labels = map[string]string{}
		if !in.wipe {
			maps.Copy(input.Labels, old)
		}
		maps.Copy(input.Labels, in.labels)
		for _, key := range in.unlabels {
			delete(input.Labels, key)
		}
		if len(input.Labels) > handlers.LabelsMost {
			return nil, models.Invalid("body.labels", "a task has at most %d labels", handlers.LabelsMost)
		}
		edit.Relabel, edit.Before, edit.Labels = true, labelRows(row, old), labelRows(row, input.Labels)
	}
	edit.Input = input.text()
	return &edit, nil
}

func labelRows(row *postgres.TaskRow, labels map[string]string) (out []models.Label) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, models.Label{Env: row.Env, Task: row.ID, Key: key, Value: labels[key]})
	}
	return out
}
