package ui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/templates"
)

func (p *pages) task(c *fiber.Ctx) error {
	view, err := p.taskView(c)
	if err != nil {
		return err
	}
	if c.Query("fragment") == "task" {
		return show(c, fiber.StatusOK, templates.TaskRegion(p.fragment(c, "Task", "/tasks"), view))
	}
	page, err := p.whole(c, "Task", "/tasks")
	if err != nil {
		return err
	}
	page.Title = view.Type + " " + view.ID
	return show(c, fiber.StatusOK, templates.Task(page, view))
}

func (p *pages) taskView(c *fiber.Ctx) (view templates.TaskView, err error) {
	caller, ctx := handlers.CallerOf(c), c.UserContext()
	id, err := handlers.PathID(c, "id", models.TaskPrefix)
	if err != nil {
		return view, err
	}
	row, err := p.reads.Task(ctx, caller.Scope(), caller.Env, id, postgres.Whole)
	if err != nil {
		return view, err
	}
	attempts, err := p.reads.Attempts(ctx, caller.Scope(), caller.Env, []models.ID{id})
	if err != nil {
		return view, err
	}
	workers, err := p.workerNames(c)
	if err != nil {
		return view, err
	}
	view = describeTask(row)
	view.Worker = workerRef(row.Worker, workers)
	view.Steps = steps(&row.Task, len(row.DependsOn) > 0, attempts[id])
	view.Attempts = viewAttempts(row, attempts[id], workers)
	view.SoftSeconds = overSoft(&row.Task, p.Now())
	p.live(c, row, &view)
	return view, p.lineage(c, row, &view)
}

// describeTask is what the row says by itself.
func describeTask(row *postgres.TaskRow) templates.TaskView {
	input := readInput(row.Input)
	view := templates.TaskView{
		ID: row.ID.Text(models.TaskPrefix), Type: row.Needs.Type, Key: row.Key, Description: input.Description, State: row.State.String(),
		Kind: row.Kind.String(), Lane: row.LaneName, Priority: int(row.Priority), Attempt: int(row.Attempt), MaxAttempts: int(row.MaxAttempts),
		AttemptsUsed: int(row.AttemptsUsed), CreatedAt: row.CreatedAt.Time(), ReadyAt: row.ReadyAt.Time(), StartedAt: row.StartedAt.Time(),
		FinishedAt: row.FinishedAt.Time(), Deadline: row.Deadline.Time(), ExpiresAt: row.ExpiresAt.Time(), Progress: string(row.Progress), Payload: string(row.Payload),
		Resources: resources(&row.Needs), Labels: sortedPairs(input.Labels), Rules: rules(row, &input), Curl: curl(row, &input),
		Cancel: !row.State.Final() && row.State != models.CancelRequested, Retry: row.State.Final() || row.State == models.DeadLetter, Discard: row.State == models.DeadLetter,
		Cost: cost(row.Usages, input.EstimatedCostUSD), Edit: row.State.Waiting(),
		Approve: row.Has(models.NeedsApproval) && !row.Has(models.Approved) && row.State.Waiting(),
		Skip:    !row.Workflow.IsZero() && row.Key != "" && row.Parent.IsZero() && (row.State.Waiting() || row.State == models.DeadLetter),
		Rerun:   !row.Workflow.IsZero() && row.Key != "" && row.Parent.IsZero(),
	}
	switch row.State {
	case models.RetryWait:
		view.NextAttemptAt = row.WakeAt.Time()
	case models.Scheduled:
		view.RunAt = row.WakeAt.Time()
	case models.Succeeded:
		view.Result = string(row.Result)
	}
	if row.State.Live() {
		view.LeaseExpiresAt = row.LeaseUntil.Time()
	}
	if row.State != models.Succeeded {
		view.Error = viewFailure(row.Error)
	}
	return view
}

// overSoft is the soft timeout of a running task that has run past it, in seconds; 0: it has not, or has none.
func overSoft(t *models.Task, now models.Instant) int {
	if t.State.Live() && t.SoftSeconds > 0 && now.Sub(t.StartedAt).Seconds() > float64(t.SoftSeconds) {
		return int(t.SoftSeconds)
	}
	return 0
}

// input is what is kept of a submitted task beside its row.
type input struct {
	RunAt            models.Instant      `json:"run_at"`
	ExpiresInSeconds int32               `json:"expires_in_seconds"`
	EstimatedCostUSD *float64            `json:"estimated_cost_usd"`
	RetryPolicy      *models.RetryPolicy `json:"retry_policy"`
	Labels           map[string]string   `json:"labels"`
	Description      string              `json:"description"`
}

func readInput(text json.RawMessage) (in input) {
	if len(text) > 0 && json.Unmarshal(text, &in) != nil {
		return input{} // the page stands without it
	}
	return in
}

// live adds what only the brain knows: the lease, progress, and why it waits.
func (p *pages) live(c *fiber.Ctx, row *postgres.TaskRow, view *templates.TaskView) {
	ref := models.TaskRef{Env: row.Env, ID: row.ID}
	switch {
	case row.State.Live():
		for _, live := range p.look(c, &engine.Look{Live: []models.TaskRef{ref}}).Live {
			view.LeaseExpiresAt = live.LeaseUntil.Time()
			if len(live.Progress) > 0 {
				view.Progress = string(live.Progress)
			}
		}
	case row.State.Waiting():
		explained := p.look(c, &engine.Look{Explain: &ref}).Explain
		if explained == nil {
			if code := waitsFor(&row.Task); code != "" {
				view.Why = []templates.Reason{{Code: code, Detail: "The brain does not answer now; this is what was saved last."}}
			}
			return
		}
		place := explained.Position
		if explained.Beyond {
			var err error
			if place, err = p.reads.Position(c.UserContext(), handlers.CallerOf(c).Scope(), &row.Task); err != nil {
				place = 0 // the page stands without it
			}
		}
		view.Position, view.StartsAt = int(place), explained.EstimatedStart.Time()
		for _, block := range explained.BlockedBy {
			view.Why = append(view.Why, templates.Reason{Code: block.Reason, Detail: sentence(block.Detail)})
		}
	}
}

// lineage adds what the task belongs to and waits for.
func (p *pages) lineage(c *fiber.Ctx, row *postgres.TaskRow, view *templates.TaskView) (err error) {
	caller := handlers.CallerOf(c)
	if view.Workflow, err = p.workflowRef(c, row.Workflow, map[models.ID]string{}); err != nil {
		return err
	}
	view.Parent = templates.Ref{ID: row.Parent.Text(models.TaskPrefix)}
	view.RedriveOf = templates.Ref{ID: row.RedriveOf.Text(models.TaskPrefix)}
	ids := make([]models.ID, 0, len(row.DependsOn))
	on := map[models.ID]models.On{}
	for _, edge := range row.DependsOn {
		ids, on[edge.From] = append(ids, edge.From), edge.On
	}
	if len(ids) > 0 {
		rows, err := p.reads.TasksByID(c.UserContext(), caller.Scope(), caller.Env, ids, postgres.Include{})
		if err != nil {
			return err
		}
		for i := range rows {
			view.Dependencies = append(view.Dependencies, dependencyRef(&rows[i], on[rows[i].ID]))
		}
	}
	return p.descent(c, row, view)
}

// lineageMost is how many of each a page names.
const lineageMost = 50

// descent adds what waits for the task and what it spawned.
func (p *pages) descent(c *fiber.Ctx, row *postgres.TaskRow, view *templates.TaskView) error {
	caller, ctx := handlers.CallerOf(c), c.UserContext()
	if row.Has(models.HasDependants) {
		waiting, err := p.reads.Dependants(ctx, caller.Scope(), row.Env, row.ID, lineageMost)
		if err != nil {
			return err
		}
		for i := range waiting {
			view.Dependants = append(view.Dependants, dependencyRef(&waiting[i], waiting[i].DependsOn[0].On))
		}
	}
	children, err := p.reads.Children(ctx, caller.Scope(), row.Env, row.ID, lineageMost)
	for i := range children {
		view.Children = append(view.Children, taskRef(&children[i]))
	}
	return err
}

func dependencyRef(row *postgres.TaskRow, on models.On) templates.Ref {
	ref := taskRef(row)
	if on != models.OnSucceeded {
		ref.Note = "on " + on.String()
	}
	return ref
}

func taskRef(row *postgres.TaskRow) templates.Ref {
	name := row.Key
	if name == "" {
		name = row.Needs.Type
	}
	return templates.Ref{ID: row.ID.Text(models.TaskPrefix), Name: name, State: row.State.String()}
}

func viewAttempts(row *postgres.TaskRow, ended []models.Attempt, workers map[models.ID]string) []templates.Attempt {
	out := make([]templates.Attempt, 0, len(ended)+1)
	for _, a := range ended {
		out = append(out, templates.Attempt{
			Number: int(a.N), Outcome: a.Outcome.String(), Worker: workerRef(a.Worker, workers), Version: a.WorkerVersion, Model: a.Model,
			StartedAt: a.StartedAt.Time(), FinishedAt: a.FinishedAt.Time(), Error: viewFailure(a.Error), Usage: usagePairs(a.Usage),
		})
	}
	if row.State.Live() {
		out = append(out, templates.Attempt{Number: int(row.Attempt), Outcome: "running", Worker: workerRef(row.Worker, workers), StartedAt: row.StartedAt.Time()})
	}
	return out
}

func viewFailure(e *models.TaskError) *templates.Failure {
	if e == nil {
		return nil
	}
	return &templates.Failure{Class: e.Class, Message: e.Message, Stack: e.Stack, Response: string(e.ProviderResponse)}
}

func sortedPairs(values map[string]string) []templates.Pair {
	var out []templates.Pair
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, templates.Pair{Name: name, Value: values[name]})
	}
	return out
}

func resources(class *models.Class) []templates.Pair {
	var out []templates.Pair
	add := func(on bool, name, value string) {
		if on {
			out = append(out, templates.Pair{Name: name, Value: value})
		}
	}
	add(class.CPUMilli > 0, "CPU", strconv.FormatFloat(float64(class.CPUMilli)/1000, 'f', -1, 64))
	add(class.MemoryMB > 0, "Memory", fmt.Sprintf("%d MB", class.MemoryMB))
	add(class.DiskMB > 0, "Disk", fmt.Sprintf("%d MB", class.DiskMB))
	add(class.GPU > 0, "GPU", fmt.Sprintf("%d with %d MB each", class.GPU, class.VRAMMB))
	add(class.Model != "", "Model", class.Model)
	for _, pair := range sortedPairs(class.Selector) {
		add(true, "Worker "+pair.Name, pair.Value)
	}
	return out
}
