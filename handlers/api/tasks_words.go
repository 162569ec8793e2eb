package api

import (
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

func (w *Work) approve(d *handlers.Deps, c *fiber.Ctx) error { return w.decide(d, c, false) }

func (w *Work) reject(d *handlers.Deps, c *fiber.Ctx) error { return w.decide(d, c, true) }

// decide says yes or no to a task that needs it.
func (w *Work) decide(d *handlers.Deps, c *fiber.Ctx, reject bool) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	why, err := readReason(c, reject)
	if err != nil {
		return err
	}
	if _, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Approve = &engine.Approve{Env: handlers.CallerOf(c).Env, Task: id, Reject: reject, Reason: why}
	}); err != nil {
		return err
	}
	return w.show(d, c, fiber.StatusOK, id)
}

// SignalInput is what is sent to a running task.
type SignalInput struct {
	Name string          `json:"name" required:"true"`
	Data json.RawMessage `json:"data" doc:"any JSON up to 64 kB"`
}

// readMembers opens a body and reads its members; read answers false for a name that is none of them.
func readMembers(c *fiber.Ctx, read func(name string, m body.Value) bool, needed func() string) error {
	text, err := handlers.ReadBody(c)
	if err != nil {
		return err
	}
	p := &body.Problems{}
	v, err := body.Open(text, "body", p)
	if err != nil {
		return err
	}
	v.Members(func(name string, m body.Value) {
		if !read(name, m) {
			m.Wrong("there is no such field")
		}
	})
	if missing := needed(); missing != "" && !p.Any() {
		p.Addf("body."+missing, "is required")
	}
	return p.Err(models.ValidationFailed)
}

func readSignal(c *fiber.Ctx) (in SignalInput, err error) {
	err = readMembers(c, func(name string, m body.Value) bool {
		switch {
		case name == "name":
			in.Name = m.Name()
		case name != "data":
			return false
		case !m.Null():
			in.Data = m.Raw(handlers.CheckpointLimit)
		}
		return true
	}, func() string {
		if in.Name == "" {
			return "name"
		}
		return ""
	})
	return in, err
}

func (w *Work) signal(d *handlers.Deps, c *fiber.Ctx) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	in, err := readSignal(c)
	if err != nil {
		return err
	}
	if _, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Signal = &engine.Signal{Env: handlers.CallerOf(c).Env, Task: id, Name: in.Name, Data: in.Data}
	}); err != nil {
		return err
	}
	return w.show(d, c, fiber.StatusAccepted, id)
}

// QualityInput says how good a result was.
type QualityInput struct {
	Score  float64 `json:"score" minimum:"0" maximum:"1" required:"true"`
	Source string  `json:"source" required:"true" doc:"who says so; its last word stands"`
}

// QualityView is the last word of a source on a task.
type QualityView struct {
	TaskID string        `json:"task_id"`
	Source string        `json:"source"`
	Score  float64       `json:"score"`
	At     handlers.Time `json:"at"`
}

// QualitiesAnswer lists what was said of a task.
type QualitiesAnswer struct {
	Data []QualityView `json:"data"`
}

func readQuality(c *fiber.Ctx) (in QualityInput, err error) {
	scored := false
	err = readMembers(c, func(name string, m body.Value) bool {
		switch name {
		case "score":
			scored, in.Score = true, m.Number(0, 1)
		case "source":
			in.Source = m.String(1, maxKeyBytes)
		default:
			return false
		}
		return true
	}, func() string {
		switch {
		case !scored:
			return "score"
		case in.Source == "":
			return "source"
		}
		return ""
	})
	return in, err
}

func (w *Work) judge(d *handlers.Deps, c *fiber.Ctx) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	in, err := readQuality(c)
	if err != nil {
		return err
	}
	if _, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Judge = &engine.Judge{Env: handlers.CallerOf(c).Env, Task: id, Score: in.Score, Source: in.Source}
	}); err != nil {
		return err
	}
	v := QualityView{TaskID: id.Text(models.TaskPrefix), Source: in.Source, Score: in.Score, At: handlers.Time(d.Now())}
	return handlers.Answer(c, fiber.StatusOK, v)
}

func (w *Work) qualities(_ *handlers.Deps, c *fiber.Ctx) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	if _, err := w.Reads.State(c.UserContext(), caller.Scope(), caller.Env, id); err != nil {
		return err
	}
	rows, err := w.Reads.Qualities(c.UserContext(), caller.Scope(), caller.Env, id)
	if err != nil {
		return err
	}
	answer := QualitiesAnswer{Data: []QualityView{}}
	for _, q := range rows {
		answer.Data = append(answer.Data, QualityView{TaskID: id.Text(models.TaskPrefix), Source: q.Source, Score: q.Score, At: handlers.Time(q.At)})
	}
	return handlers.Answer(c, fiber.StatusOK, answer)
}

// LogView is one line that an attempt wrote.
type LogView struct {
	At      handlers.Time `json:"at"`
	Level   string        `json:"level"`
	Message string        `json:"message"`
	Attempt int32         `json:"attempt"`
}

// logs lists what the attempts wrote, oldest first unless asked otherwise.
func (w *Work) logs(d *handlers.Deps, c *fiber.Ctx) error {
	q, err := handlers.ReadOldestFirst(d, c)
	if err != nil {
		return err
	}
	id, err := taskID(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	if _, err := w.Reads.State(c.UserContext(), caller.Scope(), caller.Env, id); err != nil {
		return err
	}
	var after int64
	if _, err := q.After(&after); err != nil {
		return err
	}
	list := postgres.LogList{After: after, Desc: q.Desc, Limit: q.Limit + 1}
	rows, err := w.Reads.Logs(c.UserContext(), caller.Scope(), caller.Env, id, list)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, rows, func(l postgres.LogRow) LogView {
		return LogView{At: handlers.Time(l.At), Level: l.Level, Message: l.Message, Attempt: l.Attempt}
	}, func(l postgres.LogRow) any { return l.ID })
	if err != nil {
		return err
	}
	if q.Count {
		n, err := w.Reads.CountLogs(c.UserContext(), caller.Scope(), caller.Env, id)
		if err != nil {
			return err
		}
		page.Total = total(n, false)
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}
