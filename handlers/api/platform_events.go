package api

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
)

// place is an event's id: the batch that told it and its index there.
type place struct {
	batch int64
	index int
}

func (p place) String() string { return strconv.FormatInt(p.batch, 10) + "." + strconv.Itoa(p.index) }

func (p place) before(o place) bool {
	return p.batch < o.batch || p.batch == o.batch && p.index < o.index
}

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

// eventFilter says which events are asked for.
type eventFilter struct {
	names          []string
	task, workflow models.ID
}

func readEventFilter(values map[string][]string) (f eventFilter, err error) {
	id := func(name, prefix string) (id models.ID) {
		if given := values[name]; len(given) > 0 && err == nil {
			if id, err = models.ParseID(prefix, given[0]); err != nil {
				err = models.Invalid("query."+name, "%q is no id", handlers.Shorten(given[0], 60))
			}
		}
		return id
	}
	f = eventFilter{values["name"], id("task_id", models.TaskPrefix), id("workflow_id", models.WorkflowPrefix)}
	return f, err
}

func (f *eventFilter) wants(e *models.Event) bool {
	return (f.task.IsZero() || e.Task == f.task) && (f.workflow.IsZero() || e.Workflow == f.workflow) &&
		(len(f.names) == 0 || models.MatchPattern(f.names, e.Name))
}

// Bounds of one call: rows of a batch that it looks through, and how far it counts.
const (
	eventRowsMost  = 20_000
	eventCountMost = 10_000
	eventRows      = 500
)

// eventWalk looks through what is kept of one environment, between two places.
type eventWalk struct {
	db       *postgres.DB
	env      int32
	low, top place // what is asked for lies between them
	desc     bool
	filter   eventFilter
}

// each shows the events that are wanted to see until it has enough. It answers where it stopped looking when there may be
// more: after what was seen last, or after as many rows as one call looks through.
func (w *eventWalk) each(ctx context.Context, see func(place, *models.Event) (enough bool)) (*place, error) {
	from, to := w.low.batch, w.top.batch
	for looked := 0; ; {
		rows, err := w.db.EventsBetween(ctx, postgres.EventRange{Env: w.env, From: from, To: to, Desc: w.desc, Limit: eventRows})
		if err != nil {
			return nil, err
		}
		for r := range rows {
			if at := w.row(&rows[r], see); at != nil {
				return at, nil
			}
		}
		if looked += len(rows); len(rows) < eventRows {
			return nil, nil
		}
		last := &rows[len(rows)-1]
		at := place{last.Batch, len(last.Items) - 1}
		if from = last.Batch + 1; w.desc {
			from, to, at.index = w.low.batch, last.Batch-1, 0
		}
		if looked >= eventRowsMost {
			return &at, nil
		}
	}
}

// row shows the events of one batch; the place is that of the one that was enough.
func (w *eventWalk) row(row *postgres.PackedEvents, see func(place, *models.Event) bool) *place {
	for n := range row.Items {
		at := place{row.Batch, n}
		if w.desc {
			at.index = len(row.Items) - 1 - n
		}
		e := &row.Items[at.index]
		if w.low.before(at) && at.before(w.top) && w.filter.wants(e) && see(at, e) {
			return &at
		}
	}
	return nil
}

// listEvents tells what happened, oldest first, from the oldest kept or after an event.
func listEvents(d *handlers.Deps, c *fiber.Ctx) error {
	q, all, err := readEvents(d, c)
	if err != nil {
		return err
	}
	page := handlers.Page[handlers.Event]{Data: []handlers.Event{}}
	if q.Count {
		if page.Total, err = all.count(c.UserContext()); err != nil {
			return err
		}
	}
	left, err := all.continued(q)
	if err != nil {
		return err
	}
	var last place
	stopped, err := left.each(c.UserContext(), func(at place, e *models.Event) bool {
		if len(page.Data) == q.Limit {
			return true
		}
		page.Data, last = append(page.Data, handlers.ShowEvent(at.String(), e)), at
		return false
	})
	if err != nil {
		return err
	}
	if stopped != nil && len(page.Data) == q.Limit {
		stopped = &last
	}
	if stopped != nil {
		page.NextCursor, err = q.Next(true, []int64{stopped.batch, int64(stopped.index)})
	}
	if err != nil {
		return err
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}

func readEvents(d *handlers.Deps, c *fiber.Ctx) (*handlers.ListQuery, eventWalk, error) {
	w := eventWalk{db: d.DB, env: handlers.CallerOf(c).Env, low: place{batch: -1}, top: place{batch: math.MaxInt64}}
	q, err := handlers.ReadOldestFirst(d, c, "after", "name", "task_id", "workflow_id")
	if err != nil {
		return nil, w, err
	}
	w.desc = q.Desc
	if given := q.Values["after"]; given != nil {
		if w.low, err = parsePlace("after", given[0]); err != nil {
			return nil, w, err
		}
	}
	w.filter, err = readEventFilter(q.Values)
	return q, w, err
}

// continued is what is left behind the page before.
func (w eventWalk) continued(q *handlers.ListQuery) (eventWalk, error) {
	var at []int64
	switch more, err := q.After(&at); {
	case err != nil || !more:
		return w, err
	case w.desc:
		w.top = place{at[0], int(at[1])}
	default:
		w.low = place{at[0], int(at[1])}
	}
	return w, nil
}

// count says how many there are, as far as it counts.
func (w eventWalk) count(ctx context.Context) (*handlers.Total, error) {
	total := &handlers.Total{Relation: "eq"}
	stopped, err := w.each(ctx, func(place, *models.Event) bool {
		total.Value++
		return total.Value > eventCountMost
	})
	if stopped != nil {
		total.Relation, total.Value = "gte", min(total.Value, eventCountMost)
	}
	return total, err
}

// streamEvents follows the events; Last-Event-ID resumes.
func streamEvents(d *handlers.Deps, c *fiber.Ctx) error {
	values, err := handlers.ReadQuery(c, "after", "name", "task_id", "workflow_id")
	if err != nil {
		return err
	}
	filter, err := readEventFilter(values)
	if err != nil {
		return err
	}
	ask := handlers.FollowAsk{Envs: []int32{handlers.CallerOf(c).Env}, Task: filter.task, Workflow: filter.workflow, Names: filter.names, After: handlers.Live}
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
	list.Doc.Query = handlers.OldestFirstParams(filters[:len(filters):len(filters)]...)
	list.Doc.Detail = "A page may hold fewer than its limit, or none, and still have a next_cursor: one call looks through a bounded stretch."
	stream := endpoint(get, "/v1/events/stream", seeing, true, tag, "What happens, as server-sent events", streamEvents, nil, 200, handlers.Schema{"type": "string"})
	stream.Doc.Query, stream.Doc.ContentType, stream.Long = filters, "text/event-stream", true
	stream.Doc.Headers = []handlers.Param{{Name: "Last-Event-ID", Type: "string", About: "resumes after this event"}}
	own := endpoint(get, "/v1/scheduler/events", platform, false, tag, "What happened to workers that serve every tenant and to brains, oldest first", listEvents, nil, 200, handlers.Page[handlers.Event]{})
	own.Doc.Query, own.Doc.Detail = list.Doc.Query, list.Doc.Detail
	return []handlers.Route{list, stream, own}
}
