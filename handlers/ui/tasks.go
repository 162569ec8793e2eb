package ui

import (
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/templates"
)

const pageRows = 50

func (p *pages) tasks(c *fiber.Ctx) error {
	view, err := p.tasksView(c)
	if err != nil {
		return err
	}
	if c.Query("fragment") == "rows" {
		return show(c, fiber.StatusOK, templates.TaskRows(p.fragment(c, "Tasks", "/tasks"), view))
	}
	page, err := p.whole(c, "Tasks", "/tasks")
	if err != nil {
		return err
	}
	status := fiber.StatusOK
	if view.Wrong != "" {
		status = fiber.StatusUnprocessableEntity
	}
	return show(c, status, templates.Tasks(page, view))
}

// tasksView reads a page of tasks. A query line that can't be read is told beside an empty list.
func (p *pages) tasksView(c *fiber.Ctx) (templates.TasksView, error) {
	view := templates.TasksView{Query: queryLine(c), States: p.stateCounts(c), Earlier: c.Query("cursor") != ""}
	filter, err := readQuery(view.Query, p.Now())
	if err != nil || !handlers.Storable(view.Query) {
		view.Wrong = "This query can't be read."
		if err != nil {
			view.Wrong = sentence(detail(err))
		}
		return view, nil
	}
	filter.Desc, filter.Limit = true, pageRows+1
	if view.Earlier {
		if filter.After, err = models.ParseID(models.TaskPrefix, c.Query("cursor")); err != nil {
			return view, err
		}
	}
	caller := handlers.CallerOf(c)
	rows, err := p.reads.Tasks(c.UserContext(), caller.Scope(), caller.Env, filter)
	if err != nil {
		return view, err
	}
	if len(rows) > pageRows {
		rows = rows[:pageRows]
		view.Next = rows[pageRows-1].ID.Text(models.TaskPrefix)
	}
	view.Rows, err = p.taskRows(c, rows)
	return view, err
}

// queryLine is ?q= with the states of ?state= put before it.
func queryLine(c *fiber.Ctx) string {
	line := strings.TrimSpace(c.Query("q"))
	if state := c.Query("state"); state != "" {
		line = strings.TrimSpace("state:" + state + " " + line)
	}
	return handlers.Shorten(line, 1000)
}

// stateCounts is how many tasks stand where. Of a large environment only the newest tasks are counted: what the brain has
// on its board and the dead letters are known beyond them, of the other states there are at least so many.
func (p *pages) stateCounts(c *fiber.Ctx) []templates.StateCount {
	caller, ctx := handlers.CallerOf(c), c.UserContext()
	counts, err := p.reads.StateCounts(ctx, caller.Scope(), caller.Env)
	if err != nil {
		return nil // the page stands without figures
	}
	large := counts.Total() >= postgres.StatesWithin
	known := map[models.State]templates.StateCount{}
	if large {
		known = p.countedBeyond(c)
	}
	var out []templates.StateCount
	for state := models.Scheduled; state <= models.Skipped; state++ {
		entry, exact := known[state]
		if !exact {
			entry = templates.StateCount{Count: int(counts[state]), More: large && counts[state] > 0}
		}
		entry.State = state.String()
		out = append(out, entry)
	}
	return out
}

// countedBeyond is what is known of all tasks without a long count.
func (p *pages) countedBeyond(c *fiber.Ctx) map[models.State]templates.StateCount {
	caller, known := handlers.CallerOf(c), map[models.State]templates.StateCount{}
	if lanes := p.look(c, &engine.Look{Lanes: caller.Env}).Lanes; len(lanes) > 0 {
		var ready, running int64
		for _, lane := range lanes {
			ready, running = ready+lane.Depth, running+lane.Running
		}
		known[models.Ready], known[models.Running] = templates.StateCount{Count: int(ready)}, templates.StateCount{Count: int(running)}
	}
	dead, more, err := p.reads.CountTasks(c.UserContext(), caller.Scope(), caller.Env, &postgres.TaskFilter{States: []models.State{models.DeadLetter}})
	if err == nil {
		known[models.DeadLetter] = templates.StateCount{Count: int(dead), More: more}
	}
	return known
}

// taskRows adds the names of workers and workflows to rows.
func (p *pages) taskRows(c *fiber.Ctx, rows []postgres.TaskRow) ([]templates.TaskRow, error) {
	workers, err := p.workerNames(c)
	if err != nil {
		return nil, err
	}
	flows := map[models.ID]string{}
	last, err := p.lastWorkers(c, rows)
	if err != nil {
		return nil, err
	}
	out := make([]templates.TaskRow, 0, len(rows))
	for i := range rows {
		row := viewTaskRow(&rows[i])
		row.OverSoft = overSoft(&rows[i].Task, p.Now()) > 0
		row.Worker = workerRef(last[rows[i].ID], workers)
		if row.Workflow, err = p.workflowRef(c, rows[i].Workflow, flows); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, nil
}

// lastWorkers says which worker has each task, or had it last.
func (p *pages) lastWorkers(c *fiber.Ctx, rows []postgres.TaskRow) (map[models.ID]models.ID, error) {
	caller, last := handlers.CallerOf(c), map[models.ID]models.ID{}
	var ended []models.ID
	for i := range rows {
		if rows[i].Worker.IsZero() && rows[i].Attempt > 0 {
			ended = append(ended, rows[i].ID)
		} else {
			last[rows[i].ID] = rows[i].Worker
		}
	}
	if len(ended) == 0 {
		return last, nil
	}
	attempts, err := p.reads.Attempts(c.UserContext(), caller.Scope(), caller.Env, ended)
	for id, of := range attempts {
		last[id] = of[len(of)-1].Worker
	}
	return last, err
}

func viewTaskRow(row *postgres.TaskRow) templates.TaskRow {
	view := templates.TaskRow{
		ID: row.ID.Text(models.TaskPrefix), Type: row.Needs.Type, Key: row.Key, State: row.State.String(), Lane: row.LaneName,
		Attempt: int(row.Attempt), MaxAttempts: int(row.MaxAttempts), Priority: int(row.Priority),
		CreatedAt: row.CreatedAt.Time(), ReadyAt: row.ReadyAt.Time(), StartedAt: row.StartedAt.Time(), FinishedAt: endOf(row),
		Waits: waitsFor(&row.Task),
	}
	if row.State != models.Succeeded && row.Error != nil {
		view.ErrorClass, view.Error = row.Error.Class, row.Error.Message
	}
	return view
}

// endOf is when the last attempt ended; a dead letter has no finish of its own.
func endOf(row *postgres.TaskRow) time.Time {
	if row.State == models.DeadLetter {
		return row.UpdatedAt.Time()
	}
	return row.FinishedAt.Time()
}

// waitsFor is what the row alone says of why it waits.
func waitsFor(t *models.Task) string {
	switch {
	case t.State == models.Scheduled, t.State == models.RetryWait:
		return "run_at"
	case t.State == models.Pending:
		return "dependencies"
	case t.State == models.Ready && (strings.HasPrefix(t.Gate, "key:") || strings.HasPrefix(t.Gate, "keys:")):
		return "concurrency_key"
	case t.State == models.Ready && strings.HasPrefix(t.Gate, "rate:"):
		return "rate_limit"
	case t.State == models.Ready && models.IsBudgetGate(t.Gate):
		if g, ok := models.ParseBudgetGate(t.Gate); ok && g.Workflow {
			return "workflow_budget"
		}
		return "tenant_budget"
	default:
		return ""
	}
}

// workerNames are those of the workers that the viewer may see.
func (p *pages) workerNames(c *fiber.Ctx) (map[models.ID]string, error) {
	caller := handlers.CallerOf(c)
	rows, err := p.reads.Workers(c.UserContext(), &postgres.WorkerFilter{Tenant: caller.Tenant, Platform: caller.Platform, Limit: mostWorkers})
	names := make(map[models.ID]string, len(rows))
	for i := range rows {
		names[rows[i].ID] = rows[i].Name
	}
	return names, err
}

func workerRef(id models.ID, names map[models.ID]string) templates.Ref {
	return templates.Ref{ID: id.Text(models.WorkerPrefix), Name: names[id]}
}

// workflowRef names a workflow; names that were read are kept for the next row.
func (p *pages) workflowRef(c *fiber.Ctx, id models.ID, names map[models.ID]string) (templates.Ref, error) {
	if id.IsZero() {
		return templates.Ref{}, nil
	}
	name, known := names[id]
	if !known {
		caller := handlers.CallerOf(c)
		flow, err := p.reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, id)
		if err != nil && models.CodeOf(err) != models.NotFound {
			return templates.Ref{}, err
		}
		name = flow.Name
		names[id] = name
	}
	return templates.Ref{ID: id.Text(models.WorkflowPrefix), Name: name}, nil
}

func words(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}
