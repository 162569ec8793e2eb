package api

import (
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// TriggerInput is a trigger as it is sent.
type TriggerInput struct {
	Name      string          `json:"name" required:"true" doc:"schedules of kind event are for a name"`
	Data      json.RawMessage `json:"data" doc:"any JSON up to 64 kB"`
	DedupeKey string          `json:"dedupe_key" doc:"the same one counts once in 24 hours, for a name"`
}

// TriggerAnswer says what became of a trigger.
type TriggerAnswer struct {
	ID           *string `json:"id" doc:"null in a dry run; with a dedupe key that came before: of the one that counts"`
	Matched      int32   `json:"matched" doc:"schedules that it is for"`
	Deduplicated bool    `json:"deduplicated"`
}

// TriggerDryView says what would become of a trigger. What it would start depends on the schedules that it is for.
type TriggerDryView struct {
	TriggerAnswer
	DryView
}

// TriggerView is a trigger that was kept.
type TriggerView struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Data      json.RawMessage `json:"data"`
	At        handlers.Time   `json:"at"`
	DedupeKey *string         `json:"dedupe_key"`
	Matched   int32           `json:"matched" doc:"schedules that it was for"`
}

// ItemInput is an item of a queue as it is sent.
type ItemInput struct {
	Data      json.RawMessage `json:"data" doc:"any JSON up to 64 kB"`
	DedupeKey string          `json:"dedupe_key" doc:"the same one counts once in 24 hours, in a queue"`
}

// ItemsInput puts items into a queue.
type ItemsInput struct {
	Items []ItemInput `json:"items" required:"true" doc:"1 to 1,000"`
}

// ItemsAnswer says what became of items.
type ItemsAnswer struct {
	Queue        string       `json:"queue"`
	Accepted     int32        `json:"accepted"`
	Deduplicated int32        `json:"deduplicated"`
	Depth        *int64       `json:"depth" doc:"that wait in the queue now; null in a replay"`
	Data         []ItemAnswer `json:"data" doc:"in the order of the items"`
}

// ItemsDryView says what would become of items.
type ItemsDryView struct {
	ItemsAnswer
	DryView
}

// ItemAnswer says which item stands for one that was sent.
type ItemAnswer struct {
	ID           *string `json:"id" doc:"null in a dry run"`
	Deduplicated bool    `json:"deduplicated"`
}

// QueueView is a queue that holds something, or that a schedule drains.
type QueueView struct {
	Name          string        `json:"name"`
	Depth         int64         `json:"depth" doc:"items that wait"`
	OldestAt      handlers.Time `json:"oldest_at"`
	OldestSeconds *float64      `json:"oldest_age_seconds"`
	NewestAt      handlers.Time `json:"newest_at"`
	Schedules     []string      `json:"schedules" doc:"of kind drain"`
}

func (w *Work) messageRoutes() []handlers.Route {
	read, write := []string{handlers.TasksRead}, []string{handlers.TasksWrite}
	const tag = "triggers and queues"
	return tenantRoutes(
		handlers.Route{Method: "POST", Path: "/v1/triggers", Scopes: write, Handler: w.sendTrigger, Doc: handlers.Doc{
			Tag: tag, Summary: "Tell the schedules of kind event that are for a name",
			Detail: "Each of them gets it in one run, in the order of acceptance. 200: its dedupe key came within the last 24 hours, and it counts once.",
			Query:  dryParam, Body: TriggerInput{}, Once: true, Replies: map[int]any{200: handlers.Either{TriggerAnswer{}, TriggerDryView{}}, 202: TriggerAnswer{}},
		}},
		handlers.Route{Method: "GET", Path: "/v1/triggers/:id", Scopes: read, Handler: w.trigger, Doc: handlers.Doc{
			Tag: tag, Summary: "Read a trigger", Replies: map[int]any{200: TriggerView{}},
		}},
		handlers.Route{Method: "POST", Path: "/v1/queues/:name/items", Scopes: write, Handler: w.putItems, Doc: handlers.Doc{
			Tag: tag, Summary: "Put items into a queue, all or none",
			Detail: "A schedule of kind drain takes them out in their order, each once. 200: all of them came before by their dedupe keys.",
			Query:  dryParam, Body: ItemsInput{}, Once: true, Replies: map[int]any{200: handlers.Either{ItemsAnswer{}, ItemsDryView{}}, 202: ItemsAnswer{}},
		}},
		handlers.Route{Method: "GET", Path: "/v1/queues", Scopes: read, Handler: w.queues, Doc: handlers.Doc{
			Tag: tag, Summary: "List the queues that hold something or are drained", Query: handlers.ByNameParams(), Replies: map[int]any{200: handlers.Page[QueueView]{}},
		}},
		handlers.Route{Method: "GET", Path: "/v1/queues/:name", Scopes: read, Handler: w.queue, Doc: handlers.Doc{
			Tag: tag, Summary: "Read a queue", Replies: map[int]any{200: QueueView{}},
		}},
	)
}

var dryParam = []handlers.Param{{Name: "dry_run", Type: "boolean", About: "true: nothing is written"}}

// message reads one member of a message; false when it has no such.
func message(m *engine.NewMessage, name string, v body.Value) bool {
	switch name {
	case "data":
		m.Data = v.Raw(handlers.DataLimit)
	case "dedupe_key":
		if !v.Null() {
			m.Key = v.String(1, handlers.KeyMost)
		}
	default:
		return false
	}
	return true
}

// keep fills in what was left out.
func keepMessage(d *handlers.Deps, m *engine.NewMessage) {
	if m.ID = d.Mint(); len(m.Data) == 0 {
		m.Data = json.RawMessage("null")
	}
}

func (w *Work) sendTrigger(d *handlers.Deps, c *fiber.Ctx) error {
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	name, m := "", engine.NewMessage{}
	err = readMembers(c, func(member string, v body.Value) bool {
		if member == "name" {
			name = v.Name()
			return true
		}
		return message(&m, member, v)
	}, func() string {
		if name == "" {
			return "name"
		}
		return ""
	})
	if err != nil {
		return err
	}
	keepMessage(d, &m)
	x := engine.Publish{Env: handlers.CallerOf(c).Env, Source: models.FromTrigger, Name: name, Messages: []engine.NewMessage{m}, Dry: dry}
	if dry {
		p, refusals, err := tryPublish(d, c, &x)
		if err != nil {
			return err
		}
		return handlers.Answer(c, fiber.StatusOK, TriggerDryView{TriggerAnswer{Matched: p.Matched, Deduplicated: p.New < 1}, DryView{Refusals: refusals}})
	}
	return w.publish(d, c, &x, func(p *engine.Published) any {
		id := p.Messages[0].ID.Text(models.EventPrefix)
		return TriggerAnswer{ID: &id, Matched: p.Matched, Deduplicated: p.Messages[0].Deduplicated}
	}, func(ids []models.ID) (any, error) {
		row, err := w.Reads.Message(c.UserContext(), handlers.CallerOf(c).Scope(), x.Env, models.FromTrigger, ids[0])
		id := row.ID.Text(models.EventPrefix)
		return TriggerAnswer{ID: &id, Matched: row.Matched}, err
	})
}

func (w *Work) putItems(d *handlers.Deps, c *fiber.Ctx) error {
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	queue, err := queueName(c)
	if err != nil {
		return err
	}
	x := engine.Publish{Env: handlers.CallerOf(c).Env, Source: models.FromQueue, Name: queue, Dry: dry}
	mint := inOrder(d)
	err = readMembers(c, func(member string, v body.Value) bool {
		if member != "items" {
			return false
		}
		n := v.Elements(func(i int, e body.Value) {
			if i < handlers.ItemsMost {
				x.Messages = append(x.Messages, readItem(mint, e))
			}
		})
		if n > handlers.ItemsMost {
			v.Wrong("must have at most %d items", handlers.ItemsMost)
		}
		return true
	}, func() string {
		if len(x.Messages) == 0 {
			return "items"
		}
		return ""
	})
	if err != nil {
		return err
	}
	view := func(p *engine.Published) ItemsAnswer { return viewItems(queue, p, dry) }
	if dry {
		p, refusals, err := tryPublish(d, c, &x)
		if err != nil {
			return err
		}
		return handlers.Answer(c, fiber.StatusOK, ItemsDryView{view(p), DryView{Refusals: refusals}})
	}
	return w.publish(d, c, &x, func(p *engine.Published) any { return view(p) }, func(ids []models.ID) (any, error) {
		p := &engine.Published{New: int32(len(ids))}
		for _, id := range ids {
			p.Messages = append(p.Messages, engine.PublishedMessage{ID: id})
		}
		v := view(p)
		v.Depth = nil
		return v, nil
	})
}

func readItem(mint func() models.ID, e body.Value) engine.NewMessage {
	m := engine.NewMessage{ID: mint(), Data: json.RawMessage("null")}
	e.Members(func(name string, v body.Value) {
		if !message(&m, name, v) {
			v.Wrong("there is no such field")
		}
	})
	return m
}

func viewItems(queue string, p *engine.Published, dry bool) ItemsAnswer {
	v := ItemsAnswer{Queue: queue, Accepted: p.New, Deduplicated: int32(len(p.Messages)) - p.New, Depth: &p.Depth, Data: []ItemAnswer{}}
	for i := range p.Messages {
		row := ItemAnswer{Deduplicated: p.Messages[i].Deduplicated}
		if id := p.Messages[i].ID.Text(models.ItemPrefix); !dry {
			row.ID = &id
		}
		v.Data = append(v.Data, row)
	}
	return v
}

// publish hands messages to the brain, once for each Idempotency-Key. What only came before is 200.
func (w *Work) publish(d *handlers.Deps, c *fiber.Ctx, x *engine.Publish, view func(*engine.Published) any, again func([]models.ID) (any, error)) error {
	made := func(v any, fresh bool) *handlers.Made {
		m := &handlers.Made{Status: fiber.StatusOK, Body: v}
		if fresh {
			m.Status = fiber.StatusAccepted
		}
		if t, is := v.(TriggerAnswer); is {
			m.Location = "/v1/triggers/" + *t.ID
		}
		return m
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		x.Once = once
		answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Publish = x })
		switch {
		case err != nil:
			return nil, err
		case answer.Replay:
			return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) {
				v, err := again(answer.Made)
				if err != nil {
					return nil, err
				}
				return made(v, true), nil
			}}, nil
		}
		return made(view(answer.Published), answer.Published.New > 0), nil
	})
}

// tryPublish asks what would happen. A refusal is part of the answer.
func tryPublish(d *handlers.Deps, c *fiber.Ctx, x *engine.Publish) (*engine.Published, []RefusalView, error) {
	answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Publish = x })
	refusals, err := refusalsOf(err)
	switch {
	case err != nil:
		return nil, nil, err
	case len(refusals) > 0:
		return &engine.Published{New: 1}, refusals, nil
	}
	return answer.Published, refusals, nil
}

func (w *Work) trigger(_ *handlers.Deps, c *fiber.Ctx) error {
	id, err := handlers.PathID(c, "id", models.EventPrefix)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	row, err := w.Reads.Message(c.UserContext(), caller.Scope(), caller.Env, models.FromTrigger, id)
	if err != nil {
		return err
	}
	return handlers.Answer(c, fiber.StatusOK, TriggerView{
		ID: row.ID.Text(models.EventPrefix), Name: row.Name, Data: row.Data, At: handlers.Time(row.At), DedupeKey: handlers.Null(row.Key), Matched: row.Matched,
	})
}

// queueName is the name of a queue in the path: one that can't be names none.
func queueName(c *fiber.Ctx) (string, error) {
	name, err := handlers.PathParam(c, "name")
	if err != nil {
		return "", err
	}
	if !handlers.IsName(name) {
		return "", models.Invalid("path.name", "must match %s", "^[a-z0-9][a-z0-9._:-]{0,127}$")
	}
	return name, nil
}

// queues asks the brain what waits where. They are listed by name.
func (w *Work) queues(d *handlers.Deps, c *fiber.Ctx) error {
	var now models.Instant
	name := func(row engine.QueueStats) string { return row.Name }
	return byName(d, c, func(after string, desc bool, most int) ([]engine.QueueStats, int64, error) {
		answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Look = &engine.Look{Queues: handlers.CallerOf(c).Env} })
		if err != nil {
			return nil, 0, err
		}
		now = answer.Looked.Now
		list := answer.Looked.Queues
		return following(list, after, desc, most, name), int64(len(list)), nil
	}, func(row engine.QueueStats) QueueView { return viewQueue(now)(row) }, name)
}

func (w *Work) queue(d *handlers.Deps, c *fiber.Ctx) error {
	name, err := handlers.PathParam(c, "name")
	if err != nil {
		return err
	}
	answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Look = &engine.Look{Queues: handlers.CallerOf(c).Env} })
	if err != nil {
		return err
	}
	for _, row := range answer.Looked.Queues {
		if row.Name == name {
			return handlers.Answer(c, fiber.StatusOK, viewQueue(answer.Looked.Now)(row))
		}
	}
	return models.Errorf(models.NotFound, "there is no queue %q: nothing waits in it, and no schedule drains it", name)
}

func viewQueue(now models.Instant) func(engine.QueueStats) QueueView {
	return func(row engine.QueueStats) QueueView {
		v := QueueView{Name: row.Name, Depth: row.Depth, OldestAt: handlers.Time(row.OldestAt), NewestAt: handlers.Time(row.NewestAt), Schedules: []string{}}
		if row.OldestAt > 0 {
			age := now.Sub(row.OldestAt).Seconds()
			v.OldestSeconds = &age
		}
		for _, id := range row.Schedules {
			v.Schedules = append(v.Schedules, id.Text(models.SchedulePrefix))
		}
		return v
	}
}
