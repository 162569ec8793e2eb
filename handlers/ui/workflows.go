package ui

import (
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/templates"
)

const (
	graphMost = 25_000 // tasks read for a graph
	flowRows  = 20     // tasks listed beside it
)

func (p *pages) workflows(c *fiber.Ctx) error {
	view, err := p.workflowsView(c)
	if err != nil {
		return err
	}
	if c.Query("fragment") == "rows" {
		return show(c, fiber.StatusOK, templates.WorkflowsRegion(p.fragment(c, "Workflows", "/workflows"), view))
	}
	page, err := p.whole(c, "Workflows", "/workflows")
	if err != nil {
		return err
	}
	return show(c, fiber.StatusOK, templates.Workflows(page, view))
}

func (p *pages) workflowsView(c *fiber.Ctx) (view templates.WorkflowsView, err error) {
	filter := &postgres.WorkflowFilter{Desc: true, Limit: pageRows + 1}
	view.State, view.Earlier = c.Query("state"), c.Query("cursor") != ""
	if view.State != "" {
		state, ok := parseWorkflowState(view.State)
		if !ok {
			return view, models.Errorf(models.InvalidQuery, "there is no state %q", handlers.Shorten(view.State, 40))
		}
		filter.States = []models.WorkflowState{state}
	}
	if view.Earlier {
		if filter.After, err = models.ParseID(models.WorkflowPrefix, c.Query("cursor")); err != nil {
			return view, err
		}
	}
	caller := handlers.CallerOf(c)
	rows, err := p.reads.Workflows(c.UserContext(), caller.Scope(), caller.Env, filter)
	if len(rows) > pageRows {
		rows = rows[:pageRows]
		view.Next = rows[pageRows-1].ID.Text(models.WorkflowPrefix)
	}
	for i := range rows {
		view.Rows = append(view.Rows, workflowRow(&rows[i]))
	}
	return view, err
}

func parseWorkflowState(name string) (models.WorkflowState, bool) {
	for s := models.WorkflowRunning; s <= models.WorkflowPaused; s++ {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

func workflowRow(w *models.Workflow) templates.WorkflowRow {
	return templates.WorkflowRow{
		ID: w.ID.Text(models.WorkflowPrefix), Name: w.Name, State: w.State.String(), Counts: viewCounts(&w.Counts),
		CreatedAt: w.CreatedAt.Time(), FinishedAt: w.FinishedAt.Time(),
	}
}

// viewCounts leaves empty states out; what is still staged counts as pending.
func viewCounts(counts *models.Counts) []templates.StateCount {
	var out []templates.StateCount
	for _, state := range models.States() {
		n := counts[state]
		if state == models.Pending {
			n += counts[models.Staged]
		}
		if n > 0 {
			out = append(out, templates.StateCount{State: state.String(), Count: int(n)})
		}
	}
	return out
}

func (p *pages) workflow(c *fiber.Ctx) error {
	caller := handlers.CallerOf(c)
	id, err := handlers.PathID(c, "id", models.WorkflowPrefix)
	if err != nil {
		return err
	}
	flow, err := p.reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, id)
	if err != nil {
		return err
	}
	view, part := describeWorkflow(&flow), c.Query("fragment")
	if part != "head" && part != "tasks" {
		if err := p.graph(c, &flow, &view); err != nil {
			return err
		}
	}
	if part != "head" && part != "graph" {
		if err := p.flowTasks(c, &flow, &view); err != nil {
			return err
		}
	}
	return p.showWorkflow(c, part, view)
}

func (p *pages) showWorkflow(c *fiber.Ctx, part string, view templates.WorkflowView) error {
	page := p.fragment(c, "Workflow", "/workflows")
	switch part {
	case "head":
		return show(c, fiber.StatusOK, templates.WorkflowHead(page, view))
	case "graph":
		return show(c, fiber.StatusOK, templates.WorkflowGraph(page, view))
	case "tasks":
		return show(c, fiber.StatusOK, templates.WorkflowTasks(page, view))
	}
	page, err := p.whole(c, "Workflow", "/workflows")
	if err != nil {
		return err
	}
	page.Title = view.Name
	return show(c, fiber.StatusOK, templates.Workflow(page, view))
}

func describeWorkflow(flow *models.Workflow) templates.WorkflowView {
	var in struct {
		Labels    map[string]string `json:"labels"`
		OnFailure string            `json:"on_failure"`
	}
	if len(flow.Input) > 0 && json.Unmarshal(flow.Input, &in) != nil {
		in.Labels = nil // the page stands without them
	}
	if in.OnFailure == "" {
		in.OnFailure = "continue"
	}
	return templates.WorkflowView{
		WorkflowRow: workflowRow(flow), OnFailure: in.OnFailure, Labels: sortedPairs(in.Labels),
		Cancel: !flow.State.Final() && !flow.Cancelling, Retry: flow.Counts[models.DeadLetter] > 0 && !flow.Cancelling,
		Pause: flow.State == models.WorkflowRunning && !flow.Cancelling, Resume: flow.State == models.WorkflowPaused,
		Rerun: flow.Counts.Total() > 0,
	}
}

func (p *pages) graph(c *fiber.Ctx, flow *models.Workflow, view *templates.WorkflowView) error {
	caller := handlers.CallerOf(c)
	nodes, edges, _, err := p.reads.Graph(c.UserContext(), caller.Scope(), caller.Env, flow.ID, graphMost)
	if err != nil {
		return err
	}
	view.Beyond = max(0, int(flow.Counts.Total())-graphMost)
	for _, n := range nodes {
		view.Nodes = append(view.Nodes, templates.Node{ID: n.ID.Text(models.TaskPrefix), Key: n.Key, Type: n.Type, State: n.State.String()})
	}
	for _, e := range edges {
		view.Edges = append(view.Edges, templates.Edge{
			From: e.From.Text(models.TaskPrefix), To: e.To.Text(models.TaskPrefix), On: e.On.String(), Fired: e.State == models.EdgeFired,
		})
	}
	return nil
}

// flowTasks lists those that matter: what died first, then what runs, then what waits.
func (p *pages) flowTasks(c *fiber.Ctx, flow *models.Workflow, view *templates.WorkflowView) error {
	caller := handlers.CallerOf(c)
	var picked []postgres.TaskRow
	for _, states := range [][]models.State{
		{models.DeadLetter, models.Failed}, {models.Running, models.CancelRequested}, {models.RetryWait, models.Ready, models.Scheduled, models.Pending},
	} {
		if len(picked) >= flowRows || !holdsAny(&flow.Counts, states) {
			continue
		}
		rows, err := p.reads.Tasks(c.UserContext(), caller.Scope(), caller.Env, &postgres.TaskFilter{
			Workflows: []models.ID{flow.ID}, States: states, Limit: flowRows - len(picked),
		})
		if err != nil {
			return err
		}
		picked = append(picked, rows...)
	}
	var err error
	view.Tasks, err = p.taskRows(c, picked)
	view.More = int(flow.Counts.Total()) - len(picked)
	return err
}

func holdsAny(counts *models.Counts, states []models.State) bool {
	for _, state := range states {
		if counts[state] > 0 || state == models.Pending && counts[models.Staged] > 0 {
			return true
		}
	}
	return false
}
