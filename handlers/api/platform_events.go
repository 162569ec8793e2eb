package api

import (
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
)

// place is an event's id: the batch that told it and its index there.
type place struct {
	batch int64
	index int
}

func (p place) String() string { return strconv.FormatInt(p.batch, 10) + "." + strconv.Itoa(p.index) }

func parsePlace(name, text string) (place, error) {
	batch, index, ok := strings.Cut(text, ".")
	b, err1 := strconv.ParseInt(batch, 10, 64)
	i, err2 := strconv.ParseInt(index, 10, 32)
	p := place{b, int(i)}
	if !ok || err1 != nil || err2 != nil || b < 0 || i < 0 || p.String() != text {
		return p, handlers.QueryError(name, "%q is not the id of an event", handlers.Shorten(text, 60))
	}
	return p, nil
}

// eventQuery reads which events are asked for.
func eventQuery(c *fiber.Ctx, names ...string) (map[string][]string, models.ID, models.ID, error) {
	values, err := handlers.ReadQuery(c, append(names, "after", "name", "task_id", "workflow_id")...)
	if err != nil {
		return nil, models.ID{}, models.ID{}, err
	}
	id := func(name, prefix string) (id models.ID) {
		if given := values[name]; len(given) > 0 && err == nil {
			if id, err = models.ParseID(prefix, given[0]); err != nil {
				err = models.Invalid("query."+name, "%q is no id", handlers.Shorten(given[0], 60))
			}
		}
		return id
	}
	task, workflow := id("task_id", models.TaskPrefix), id("workflow_id", models.WorkflowPrefix)
	return values, task, workflow, err
}

// listEvents tells what happened, oldest first, from the oldest kept or after an event.
func listEvents(d *handlers.Deps, c *fiber.Ctx) error {
	values, task, workflow, err := eventQuery(c, "limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := eventLimit(values["limit"])
	if err != nil {
		return err
	}
	after := place{batch: -1}
	for _, name := range []string{"after", "cursor"} {
		if given := values[name]; len(given) > 0 {
			if after, err = parsePlace(name, given[0]); err != nil {
				return err
			}
		}
	}
	caller := handlers.CallerOf(c)
	page := handlers.Page[handlers.Event]{Data: []handlers.Event{}}
	for read := after.batch - 1; ; { // its own batch again: it may hold more
		rows, err := d.DB.Events(c.UserContext(), []int32{caller.Env}, read, limit+1)
		if err != nil {
			return err
		}
		for _, row := range rows {
			read = row.Batch
			for i := range row.Items {
				e, at := &row.Items[i], place{row.Batch, i}
				if at.batch == after.batch && i <= after.index || !task.IsZero() && e.Task != task || !workflow.IsZero() && e.Workflow != workflow ||
					len(values["name"]) > 0 && !models.MatchPattern(values["name"], e.Name) {
					continue
				}
				if len(page.Data) == limit {
					page.NextCursor = &page.Data[limit-1].ID
					return handlers.Answer(c, fiber.StatusOK, page)
				}
				page.Data = append(page.Data, handlers.ShowEvent(at.String(), e))
			}
		}
		if len(rows) <= limit {
			return handlers.Answer(c, fiber.StatusOK, page)
		}
	}
}

func eventLimit(given []string) (int, error) {
	if len(given) == 0 {
		return handlers.PageDefault, nil
	}
	n, err := strconv.Atoi(given[0])
	if err != nil || n < 1 {
		return 0, handlers.QueryError("limit", "%q is no whole number from 1", handlers.Shorten(given[0], 40))
	}
	return min(n, handlers.PageMost), nil
}

// streamEvents follows the events; Last-Event-ID resumes.
func streamEvents(d *handlers.Deps, c *fiber.Ctx) error {
	values, task, workflow, err := eventQuery(c)
	if err != nil {
		return err
	}
	ask := handlers.FollowAsk{Envs: []int32{handlers.CallerOf(c).Env}, Task: task, Workflow: workflow, Names: values["name"], After: handlers.Live}
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

func eventRoutes() []handlers.Route {
	const tag = "Events"
	filters := []handlers.Param{
		{Name: "after", Type: "string", About: "the id of an event, batch.index"},
		{Name: "name", Type: "string", Repeat: true, About: "exact, or ending in *"},
		{Name: "task_id", Type: "string"},
		{Name: "workflow_id", Type: "string"},
	}
	list := endpoint(get, "/v1/events", seeing, true, tag, "What happened, oldest first", listEvents, nil, 200, handlers.Page[handlers.Event]{})
	list.Doc.Query = append(filters[:len(filters):len(filters)], handlers.Param{Name: "limit", Type: "integer"}, handlers.Param{Name: "cursor", Type: "string"})
	stream := endpoint(get, "/v1/events/stream", seeing, true, tag, "What happens, as server-sent events", streamEvents, nil, 200, handlers.Schema{"type": "string"})
	stream.Doc.Query, stream.Doc.ContentType, stream.Long = filters, "text/event-stream", true
	stream.Doc.Headers = []handlers.Param{{Name: "Last-Event-ID", Type: "string", About: "resumes after this event"}}
	return []handlers.Route{list, stream}
}
