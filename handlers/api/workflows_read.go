package api

import (
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/dag"
	"nightshift/scheduler/engine"
)

func (w *Work) workflowRoutes() []handlers.Route {
	read, write := []string{handlers.TasksRead}, []string{handlers.TasksWrite}
	return tenantRoutes(
		handlers.Route{Method: "POST", Path: "/v1/workflows", Scopes: write, Handler: w.submitFlow, MaxBody: handlers.BulkLimit, Bulk: true, Doc: docFlowSubmit},
		handlers.Route{Method: "GET", Path: "/v1/workflows", Scopes: read, Handler: w.listFlows, Doc: docFlows},
		handlers.Route{Method: "GET", Path: "/v1/workflows/:id", Scopes: read, Handler: w.getFlow, Doc: docFlow},
		handlers.Route{Method: "GET", Path: "/v1/workflows/:id/graph", Scopes: read, Handler: w.graph, Doc: docGraph},
		handlers.Route{Method: "GET", Path: "/v1/workflows/:id/trace", Scopes: read, Handler: w.traceFlow, Doc: docFlowTrace},
		handlers.Route{Method: "GET", Path: "/v1/workflows/:id/events", Scopes: read, Handler: w.followFlow, Doc: docFlowEvents, Long: true},
		handlers.Route{Method: "PATCH", Path: "/v1/workflows/:id", Scopes: write, Handler: w.editFlow, Doc: docFlowEdit},
		handlers.Route{Method: "POST", Path: "/v1/workflows/:id/cancel", Scopes: write, Handler: w.cancelFlow, Doc: docFlowCancel},
		handlers.Route{Method: "POST", Path: "/v1/workflows/:id/pause", Scopes: write, Handler: w.pauseFlow, Doc: docFlowPause},
		handlers.Route{Method: "POST", Path: "/v1/workflows/:id/resume", Scopes: write, Handler: w.resumeFlow, Doc: docFlowResume},
		handlers.Route{Method: "POST", Path: "/v1/workflows/:id/retry", Scopes: write, Handler: w.retryFlow, Doc: docFlowRetry},
		handlers.Route{Method: "POST", Path: "/v1/workflows/:id/rerun", Scopes: write, Handler: w.rerun, Doc: docFlowRerun},
		handlers.Route{Method: "POST", Path: "/v1/workflows/:id/tasks", Scopes: write, Handler: w.grow, MaxBody: handlers.BulkLimit, Bulk: true, Doc: docFlowGrow},
		handlers.Route{Method: "POST", Path: "/v1/workflows/:id/tasks/:key/skip", Scopes: write, Handler: w.skipTask, Doc: docFlowSkip},
	)
}

// FlowView is a workflow as callers see it.
type FlowView struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	State        string            `json:"state" enum:"running,succeeded,failed,cancelled,paused"`
	Priority     int16             `json:"priority"`
	FinishFirst  bool              `json:"finish_first"`
	OnFailure    string            `json:"on_failure"`
	Lane         *string           `json:"lane"`
	Labels       map[string]string `json:"labels"`
	Counts       map[string]int32  `json:"counts" doc:"tasks in each state"`
	Budget       *BudgetView       `json:"budget"`
	CriticalPath []string          `json:"critical_path" doc:"keys of the longest path; null in lists and beyond 20,000 tasks"`
	Tasks        map[string]string `json:"tasks,omitempty" doc:"ids by key, when it is made"`
	Feasible     *bool             `json:"feasible,omitempty" doc:"when it is made: false where one of the first 16 tasks with a deadline or an expiry is expected to start too late, true where all are expected in time; left out where nothing can be said"`
	Late         []string          `json:"infeasible,omitempty" doc:"when it is made: the keys of those that are expected too late"`
	RerunOf      *string           `json:"rerun_of" doc:"the workflow it is a rerun of"`
	ScheduleID   *string           `json:"schedule_id" doc:"whose run made it, or what it is a rerun of"`
	RunID        *string           `json:"run_id"`
	CreatedAt    handlers.Time     `json:"created_at"`
	UpdatedAt    handlers.Time     `json:"updated_at"`
	FinishedAt   handlers.Time     `json:"finished_at"`
}

func viewFlow(row *models.Workflow, path []string, now models.Instant) *FlowView {
	var in FlowInput
	_ = json.Unmarshal(row.Input, &in) // written by submit alone
	v := &FlowView{
		ID: row.ID.Text(models.WorkflowPrefix), Name: row.Name, State: row.State.String(), Priority: row.Priority, OnFailure: "continue",
		Lane: handlers.Null(in.Lane), Labels: mapOf(in.Labels), Counts: map[string]int32{}, CriticalPath: path,
		ScheduleID: handlers.Null(in.ScheduleID), RunID: handlers.Null(in.RunID),
		CreatedAt: handlers.Time(row.CreatedAt), UpdatedAt: handlers.Time(row.UpdatedAt), FinishedAt: handlers.Time(row.FinishedAt),
	}
	v.FinishFirst, v.Budget = in.FinishFirst, viewBudget(row, now)
	if row.Stops {
		v.OnFailure = "stop"
	}
	if !row.RerunOf.IsZero() {
		v.RerunOf = handlers.Null(row.RerunOf.Text(models.WorkflowPrefix))
	}
	for _, s := range models.States() {
		v.Counts[s.String()] = row.Counts[s]
	}
	v.Counts[models.Pending.String()] += row.Counts[models.Staged]
	return v
}

// readFlowList reads which workflows a list shows.
func readFlowList(d *handlers.Deps, c *fiber.Ctx, more ...string) (*handlers.ListQuery, *postgres.WorkflowFilter, error) {
	q, err := handlers.ReadList(d, c, append(more, "state", "=created_after", "=created_before")...)
	if err != nil {
		return nil, nil, err
	}
	p := &body.Problems{}
	f := &postgres.WorkflowFilter{Desc: q.Desc, Limit: q.Limit + 1, CreatedAfter: moment(p, q, "created_after"), CreatedBefore: moment(p, q, "created_before")}
	f.Schedules = typedIDs(p, q, "schedule_id", models.SchedulePrefix)
	for _, word := range q.Values["state"] {
		state, ok := parseFlowState(word)
		if !ok {
			p.Addf("query.state", "there is no state %q", handlers.Shorten(word, 40))
		}
		f.States = append(f.States, state)
	}
	if err := p.Err(models.ValidationFailed); err != nil {
		return nil, nil, err
	}
	_, err = q.After(&f.After)
	return q, f, err
}

func (w *Work) listFlows(d *handlers.Deps, c *fiber.Ctx) error {
	q, f, err := readFlowList(d, c, "schedule_id")
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	rows, err := w.Reads.Workflows(c.UserContext(), caller.Scope(), caller.Env, f)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, rows, func(row models.Workflow) *FlowView { return viewFlow(&row, nil, d.Now()) }, func(row models.Workflow) any { return row.ID })
	if err != nil {
		return err
	}
	return answerFlows(w, c, q, f, page)
}

// answerFlows answers a page of workflows, with their number where that was asked.
func answerFlows[T any](w *Work, c *fiber.Ctx, q *handlers.ListQuery, f *postgres.WorkflowFilter, page *handlers.Page[T]) error {
	if q.Count {
		caller := handlers.CallerOf(c)
		n, more, err := w.Reads.CountWorkflows(c.UserContext(), caller.Scope(), caller.Env, f)
		if err != nil {
			return err
		}
		page.Total = total(n, more)
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}

func parseFlowState(word string) (models.WorkflowState, bool) {
	for s := models.WorkflowRunning; s <= models.WorkflowPaused; s++ {
		if s.String() == word {
			return s, true
		}
	}
	return 0, false
}

func flowID(c *fiber.Ctx) (models.ID, error) { return handlers.PathID(c, "id", models.WorkflowPrefix) }

func (w *Work) getFlow(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	id, err := flowID(c)
	if err != nil {
		return err
	}
	return w.showFlow(d, c, fiber.StatusOK, id)
}

func (w *Work) showFlow(d *handlers.Deps, c *fiber.Ctx, status int, id models.ID) error {
	caller := handlers.CallerOf(c)
	row, err := w.Reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, id)
	if err != nil {
		return err
	}
	path, err := w.criticalPath(c, &row)
	if err != nil {
		return err
	}
	handlers.SetETag(c, int64(row.UpdatedAt))
	return handlers.Answer(c, status, viewFlow(&row, path, d.Now()))
}

// criticalMost is up to how many tasks a critical path is worked out.
const criticalMost = 20_000

// criticalPath is the longest chain by how long its tasks took, are thought to take, or one second each.
func (w *Work) criticalPath(c *fiber.Ctx, row *models.Workflow) ([]string, error) {
	if row.Counts.Total() > criticalMost {
		return nil, nil
	}
	caller := handlers.CallerOf(c)
	nodes, edges, _, err := w.Reads.Graph(c.UserContext(), caller.Scope(), caller.Env, row.ID, criticalMost)
	if err != nil {
		return nil, err
	}
	at := make(map[models.ID]dag.Node, len(nodes))
	weights := make([]int64, len(nodes))
	for i, n := range nodes {
		at[n.ID] = dag.Node(i)
		switch {
		case n.StartedAt > 0 && n.FinishedAt > n.StartedAt:
			weights[i] = n.FinishedAt.Sub(n.StartedAt).Milliseconds()
		case n.EstimateMS > 0:
			weights[i] = n.EstimateMS
		default:
			weights[i] = 1000
		}
	}
	between := make([]dag.Edge, 0, len(edges))
	for _, e := range edges {
		if from, inside := at[e.From]; inside {
			between = append(between, dag.Edge{From: from, To: at[e.To]})
		}
	}
	path := []string{}
	for _, n := range dag.Critical(weights, between) {
		path = append(path, nodes[n].Key)
	}
	return path, nil
}

// GraphView is a workflow drawn: its tasks and what waits for what.
type GraphView struct {
	Nodes []NodeView     `json:"nodes"`
	Edges []FlowEdgeView `json:"edges"`
	// Complete is false when the workflow has more tasks than are shown.
	Complete bool `json:"complete"`
}

// NodeView is one task of a graph.
type NodeView struct {
	ID         string        `json:"id"`
	Key        string        `json:"key"`
	Type       string        `json:"type"`
	State      string        `json:"state"`
	Attempt    int32         `json:"attempt"`
	StartedAt  handlers.Time `json:"started_at"`
	FinishedAt handlers.Time `json:"finished_at"`
}

// FlowEdgeView says that one task waits for another.
type FlowEdgeView struct {
	From  string `json:"from"`
	To    string `json:"to"`
	On    string `json:"on"`
	State string `json:"state" enum:"open,fired,killed"`
}

var edgeStates = [...]string{models.EdgeOpen: "open", models.EdgeFired: "fired", models.EdgeKilled: "killed"}

func (w *Work) graph(_ *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
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
	nodes, edges, more, err := w.Reads.Graph(c.UserContext(), caller.Scope(), caller.Env, id, criticalMost)
	if err != nil {
		return err
	}
	v := GraphView{Nodes: make([]NodeView, len(nodes)), Edges: make([]FlowEdgeView, len(edges)), Complete: !more}
	for i, n := range nodes {
		v.Nodes[i] = NodeView{n.ID.Text(models.TaskPrefix), n.Key, n.Type, n.State.String(), n.Attempt, handlers.Time(n.StartedAt), handlers.Time(n.FinishedAt)}
	}
	for i, e := range edges {
		v.Edges[i] = FlowEdgeView{e.From.Text(models.TaskPrefix), e.To.Text(models.TaskPrefix), e.On.String(), edgeStates[e.State]}
	}
	return handlers.Answer(c, fiber.StatusOK, v)
}

// cancelFlow answers 202 while anything of the workflow lives.
func (w *Work) cancelFlow(d *handlers.Deps, c *fiber.Ctx) error {
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
		cmd.Cancel = &engine.Cancel{Env: handlers.CallerOf(c).Env, Workflow: id, Reason: why}
	})
	if err != nil {
		return err
	}
	if answer.Workflow != nil && !answer.Workflow.State.Final() {
		return w.showFlow(d, c, fiber.StatusAccepted, id)
	}
	return w.showFlow(d, c, fiber.StatusOK, id)
}

// flowBefore rebuilds what an earlier call with the same Idempotency-Key made, from the tasks it made.
func (w *Work) flowBefore(d *handlers.Deps, c *fiber.Ctx, made []models.ID, minimal bool) *handlers.Made {
	return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) {
		gone := models.Errorf(models.StateConflict, "the answer of the first call with this Idempotency-Key got lost: look at what it made, or use a new key")
		if len(made) == 0 {
			return nil, gone
		}
		caller := handlers.CallerOf(c)
		row, err := w.flowOf(c, made[0])
		if err != nil {
			return nil, err
		}
		v := viewFlow(row, nil, d.Now())
		if !minimal {
			nodes, _, _, err := w.Reads.Graph(c.UserContext(), caller.Scope(), caller.Env, row.ID, handlers.WorkflowMost)
			if err != nil {
				return nil, err
			}
			v.Tasks = map[string]string{}
			for _, n := range nodes {
				v.Tasks[n.Key] = n.ID.Text(models.TaskPrefix)
			}
		}
		return &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/workflows/" + v.ID, Body: v}, nil
	}}
}

// flowOf finds the workflow that an id names or that a task of this id belongs to.
func (w *Work) flowOf(c *fiber.Ctx, id models.ID) (*models.Workflow, error) {
	caller := handlers.CallerOf(c)
	row, err := w.Reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, id)
	if models.CodeOf(err) == models.NotFound {
		task, terr := w.Reads.Task(c.UserContext(), caller.Scope(), caller.Env, id, postgres.Include{})
		if terr != nil {
			return nil, terr
		}
		row, err = w.Reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, task.Workflow)
	}
	return &row, err
}
