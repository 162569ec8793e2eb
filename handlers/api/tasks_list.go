package api

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
)

func (w *Work) list(d *handlers.Deps, c *fiber.Ctx) error {
	q, err := handlers.ReadList(d, c, "state", "type", "lane", "kind", "workflow_id", "worker_id", "=label.", "=created_after", "=created_before",
		"include", "schedule_id", "=q")
	if err != nil {
		return err
	}
	f, err := taskFilter(q)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	rows, err := w.Reads.Tasks(c.UserContext(), caller.Scope(), caller.Env, f)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, rows, func(row postgres.TaskRow) *TaskView { return viewTask(&row, caller.Environment, f.Include, nil) },
		func(row postgres.TaskRow) any { return row.ID })
	if err != nil {
		return err
	}
	if q.Count {
		n, more, err := w.Reads.CountTasks(c.UserContext(), caller.Scope(), caller.Env, f)
		if err != nil {
			return err
		}
		page.Total = total(n, more)
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}

func total(n int64, more bool) *handlers.Total {
	if more {
		return &handlers.Total{Value: n, Relation: "gte"}
	}
	return &handlers.Total{Value: n, Relation: "eq"}
}

// unbuiltFilters are named by the API and not available yet.
func unbuiltFilters(q *handlers.ListQuery, names ...string) error {
	p := &body.Problems{}
	for _, name := range names {
		if _, given := q.Values[name]; given {
			p.Addf("query."+name, "is not available in this version")
		}
	}
	return p.Err(models.ValidationFailed)
}

func taskFilter(q *handlers.ListQuery) (*postgres.TaskFilter, error) {
	if err := unbuiltFilters(q, "q"); err != nil {
		return nil, err
	}
	p := &body.Problems{}
	f := &postgres.TaskFilter{
		Desc: q.Desc, Limit: q.Limit + 1, Types: names(p, q, "type"), Lanes: names(p, q, "lane"),
		Workflows: typedIDs(p, q, "workflow_id", models.WorkflowPrefix), Schedules: typedIDs(p, q, "schedule_id", models.SchedulePrefix), Workers: typedIDs(p, q, "worker_id", models.WorkerPrefix),
		CreatedAfter: moment(p, q, "created_after"), CreatedBefore: moment(p, q, "created_before"), Include: included(p, q),
	}
	for _, word := range q.Values["state"] {
		state, ok := models.ParseState(word)
		if !ok {
			p.Addf("query.state", "there is no state %q", handlers.Shorten(word, 40))
		}
		f.States = append(f.States, state)
	}
	for _, word := range q.Values["kind"] {
		kind, ok := models.ParseKind(word)
		if !ok {
			p.Addf("query.kind", "there is no kind %q", handlers.Shorten(word, 40))
		}
		f.Kinds = append(f.Kinds, kind)
	}
	for name, values := range q.Values {
		if key, is := strings.CutPrefix(name, "label."); is {
			if key == "" || !handlers.Storable(key) {
				return nil, handlers.QueryError(name, "names no label")
			}
			if f.Labels == nil {
				f.Labels = map[string][]string{}
			}
			for _, value := range values { // a comma may stand between values or in one
				f.Labels[key] = append(f.Labels[key], value)
				if parts := strings.Split(value, ","); len(parts) > 1 {
					f.Labels[key] = append(f.Labels[key], parts...)
				}
			}
		}
	}
	if _, err := q.After(&f.After); err != nil {
		return nil, err
	}
	return f, p.Err(models.ValidationFailed)
}

func names(p *body.Problems, q *handlers.ListQuery, name string) []string {
	for _, word := range q.Values[name] {
		if !handlers.IsName(word) {
			p.Addf("query."+name, "%q is no name", handlers.Shorten(word, 40))
		}
	}
	return q.Values[name]
}

func typedIDs(p *body.Problems, q *handlers.ListQuery, name, prefix string) (ids []models.ID) {
	for _, word := range q.Values[name] {
		id, err := models.ParseID(prefix, word)
		if err != nil {
			p.Addf("query."+name, "%q is no id of this sort", handlers.Shorten(word, 40))
		}
		ids = append(ids, id)
	}
	return ids
}

func moment(p *body.Problems, q *handlers.ListQuery, name string) models.Instant {
	if _, given := q.Values[name]; !given {
		return 0
	}
	at, err := handlers.ParseTime("query."+name, strings.ReplaceAll(q.One(name), " ", "+")) // a plus that nobody escaped
	if err != nil {
		p.Addf("query."+name, "must be a time as RFC 3339 writes it, like 2026-09-17T21:00:00Z")
	}
	return at
}

func included(p *body.Problems, q *handlers.ListQuery) (in postgres.Include) {
	for _, word := range q.Values["include"] {
		switch word {
		case "payload":
			in.Payload = true
		case "result":
			in.Result = true
		case "progress":
			in.Progress = true
		case "checkpoint":
			in.Checkpoint = true
		default:
			p.Addf("query.include", "%q is none of payload, result, progress, checkpoint", handlers.Shorten(word, 40))
		}
	}
	return in
}
