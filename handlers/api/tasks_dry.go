package api

import (
	"cmp"
	"errors"
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// DryAnswer has a row a task, in order.
type DryAnswer struct {
	Data []DryView `json:"data"`
}

// FlowDryView says what would happen to a workflow. Lane, kind, class and model are those of all its tasks, null where they
// differ; the cost is that of all.
type FlowDryView struct {
	DryView
	Tasks int `json:"tasks" doc:"how many it has; of more than 1,000 the first 1,000 are looked at"`
}

// howMade reads how a workflow is to be made: its answer without the ids of its tasks, or not at all.
func howMade(c *fiber.Ctx) (minimal, dry bool, err error) {
	values, err := handlers.ReadQuery(c, "return", "dry_run")
	if err != nil {
		return false, false, err
	}
	if given := values["return"]; len(given) > 0 {
		if minimal = len(given) == 1 && given[0] == "minimal"; !minimal {
			return false, false, handlers.QueryError("return", "it is minimal, or left out")
		}
	}
	dry, err = handlers.DryRun(c, "return")
	return minimal, dry, err
}

// dryAsk asks what would happen to a task.
func (w *Work) dryAsk(d *handlers.Deps, c *fiber.Ctx, task engine.NewTask) (*DryView, error) {
	answer, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Submit = &engine.Submit{Env: handlers.CallerOf(c).Env, Tasks: []engine.NewTask{task}, Single: true, InBatch: true, Dry: true}
	})
	if err != nil {
		return nil, err
	}
	return viewDry(&task, &answer.Submitted.Dry[0]), nil
}

// dryAll asks what would happen to tasks, a slice at a time: to those of the workflow into, or to others. Beyond says that there
// are more of them than these.
func (w *Work) dryAll(d *handlers.Deps, c *fiber.Ctx, tasks []engine.NewTask, into models.ID, beyond bool) ([]DryView, error) {
	views := make([]DryView, 0, len(tasks))
	for some := range slices.Chunk(tasks, stageAbove) {
		answer, err := ask(d, c, func(cmd *engine.Command) {
			cmd.Submit = &engine.Submit{Env: handlers.CallerOf(c).Env, Tasks: some, Into: into, InBatch: true, Dry: true, Beyond: beyond}
		})
		if err != nil {
			return nil, err
		}
		for i := range answer.Submitted.Dry {
			views = append(views, *viewDry(&some[i], &answer.Submitted.Dry[i]))
		}
	}
	return views, nil
}

func viewDry(task *engine.NewTask, dry *engine.DryTask) *DryView {
	v := &DryView{
		Lane: handlers.Null(dry.Lane), Kind: handlers.Null(dry.Kind), Class: handlers.Null(dry.Class), Model: handlers.Null(dry.Model),
		EstimatedCostUSD: ParseInput(task.Input).EstimatedCostUSD, EstimatedStartAt: handlers.Time(dry.EstimatedStart), Feasible: dry.Feasible, Refusals: []RefusalView{},
	}
	if v.EstimatedCostUSD == nil && dry.EstimatedCost != nil {
		cost := float64(*dry.EstimatedCost) / 1e6
		v.EstimatedCostUSD = &cost
	}
	if dry.Lane != "" {
		kept, usual := ParseInput(dry.Input), models.DefaultRetryPolicy()
		v.Timeout = &TimeoutView{handlers.Null(dry.SoftSeconds), handlers.Null(dry.HardSeconds), handlers.Null(dry.TotalSeconds)}
		v.RetryPolicy, v.ExpiresInSeconds = (*PolicyView)(cmp.Or(kept.RetryPolicy, &usual)), handlers.Null(kept.ExpiresInSeconds)
	}
	for _, r := range dry.Refusals {
		v.Refusals = append(v.Refusals, RefusalView{r.Code, r.Detail, handlers.List(r.Fields)})
	}
	return v
}

// dryFlow says what would happen to the first tasks of n that a workflow begins with, or that go into one, and why it would be
// refused as a whole.
func (w *Work) dryFlow(d *handlers.Deps, c *fiber.Ctx, tasks []engine.NewTask, into models.ID, n int, refused error) error {
	views, err := w.dryAll(d, c, tasks, into, n > len(tasks))
	if err != nil {
		return err
	}
	out := FlowDryView{Tasks: n, DryView: together(views)}
	var refusal *models.Error
	if errors.As(refused, &refusal) {
		out.Refusals = append(out.Refusals, RefusalView{refusal.Code, refusal.Detail, handlers.List(refusal.Fields)})
	}
	return handlers.Answer(c, fiber.StatusOK, out)
}

// together is what tasks have in common, with what all of them cost.
func together(views []DryView) (out DryView) {
	for i := range views {
		v := &views[i]
		if i == 0 {
			out = *v
			out.Refusals, out.EstimatedCostUSD = []RefusalView{}, nil
			out.Timeout, out.RetryPolicy, out.ExpiresInSeconds = nil, nil, nil
		}
		out.Lane, out.Kind, out.Model, out.Class = common(out.Lane, v.Lane), common(out.Kind, v.Kind), common(out.Model, v.Model), common(out.Class, v.Class)
		if v.EstimatedCostUSD != nil {
			sum := *v.EstimatedCostUSD
			if out.EstimatedCostUSD != nil {
				sum += *out.EstimatedCostUSD
			}
			out.EstimatedCostUSD = &sum
		}
		for _, r := range v.Refusals {
			if !slices.ContainsFunc(out.Refusals, func(o RefusalView) bool { return o.Code == r.Code && o.Detail == r.Detail }) {
				out.Refusals = append(out.Refusals, r)
			}
		}
	}
	return out
}

// overBudget refuses a workflow of more tasks than its own budget has.
func overBudget(b *models.FlowBudget, tasks int) error {
	if b.Tasks == 0 || int(b.Tasks) >= tasks {
		return nil
	}
	return models.Errorf(models.WorkflowBudgetExceeded, "it has %d tasks, and max_tasks of its budget is %d", tasks, b.Tasks)
}

func common[T comparable](a, b *T) *T {
	if a == nil || b == nil || *a != *b {
		return nil
	}
	return a
}
