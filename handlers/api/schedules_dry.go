package api

import (
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/engine"
)

// ScheduleDryView says what a new schedule would do. Lane, kind, class and model are those of all tasks of its work, null where
// they differ; the cost is that of one run, of kind drain of one portion.
type ScheduleDryView struct {
	DryView
	Tasks int          `json:"tasks" doc:"that a run makes; of kind drain a portion of it"`
	Next  []previewRow `json:"next" doc:"its first ten runs; none of kind event and drain, which follow no clock"`
	Words string       `json:"words" doc:"the rule in words"`
}

// RunDryView says what would become of a run by hand. Lane, kind, class, model and cost are as with a schedule.
type RunDryView struct {
	DryView
	Outcome    *string `json:"outcome" enum:"dispatched,skipped_overlap,failed" doc:"null: it would wait for the run before it, or be refused"`
	Cause      *string `json:"cause"`
	Tasks      int     `json:"tasks" doc:"that it would make"`
	Taken      int64   `json:"taken" doc:"triggers or items that it would take"`
	Cancels    int     `json:"cancels" doc:"runs that it would cancel"`
	Supersedes bool    `json:"supersedes" doc:"it would take the place of the run that waits"`
}

func refusals(list []models.Error) []RefusalView {
	out := []RefusalView{}
	for _, r := range list {
		out = append(out, RefusalView{r.Code, r.Detail, handlers.List(r.Fields)})
	}
	return out
}

// ofWork is what the tasks of a schedule's work have in common; times is how often they are made.
func ofWork(work *models.ScheduleWork, r *engine.Rehearsed, times int) (DryView, int, error) {
	t, err := engine.ReadTemplate(work.Task)
	if err != nil {
		return DryView{}, 0, err
	}
	views := make([]DryView, len(r.Dry))
	for i := range r.Dry {
		views[i] = *viewDry(&t.Tasks[i], &r.Dry[i])
	}
	v := together(views)
	if cost := v.EstimatedCostUSD; cost != nil {
		*cost *= float64(times)
	}
	v.EstimatedStartAt, v.Feasible, v.Refusals = 0, nil, refusals(r.Refusals)
	return v, len(t.Tasks) * times, nil
}

// rehearseSchedule answers what a new schedule would do.
func rehearseSchedule(d *handlers.Deps, c *fiber.Ctx, row *models.Schedule) error {
	answer, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Configure = &engine.Configure{Schedule: row, New: true, Dry: true}
	})
	if err != nil {
		return err
	}
	times := max(1, int(row.Rule.Partitions))
	if row.Rule.Drain != nil {
		times = 1
	}
	out := ScheduleDryView{Next: []previewRow{}, Words: calendar.GatherWords(&row.Rule)}
	if out.DryView, out.Tasks, err = ofWork(&row.Work, answer.Rehearsed, times); err != nil {
		return err
	}
	if !row.Rule.Gathers() {
		if err := out.foresee(d, c, row); err != nil {
			return err
		}
	}
	return handlers.Answer(c, fiber.StatusOK, out)
}

// foresee lists the first runs of a rule.
func (v *ScheduleDryView) foresee(d *handlers.Deps, c *fiber.Ctx, row *models.Schedule) error {
	now, caller := d.Now(), handlers.CallerOf(c)
	table, err := calendar.Of(&row.Rule, now)
	if err != nil {
		return err
	}
	env, err := d.World.Environment(c.UserContext(), caller.Tenant, caller.Environment)
	if err != nil {
		return err
	}
	table.Freezes = calendar.FreezesOf(env.Freezes)
	v.Words = table.Rule.Words()
	for at := now.Time(); len(v.Next) < presetPreview; {
		o, ok := table.NextRun(at)
		if !ok {
			break
		}
		at = o.At
		v.Next = append(v.Next, viewOccurrence(o))
	}
	if len(v.Next) > 0 && !row.Rule.Disabled {
		v.EstimatedStartAt = handlers.Time(models.InstantOf(v.Next[0].At))
	}
	return nil
}

// rehearseRun answers what would become of a run by hand.
func rehearseRun(d *handlers.Deps, c *fiber.Ctx, row *postgres.ScheduleRow) error {
	answer, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Trigger = &engine.Trigger{Env: row.Env, Schedule: row.ID, Run: d.Mint(), Dry: true}
	})
	if err != nil {
		return err
	}
	r := answer.Rehearsed
	out := RunDryView{Outcome: handlers.Null(r.Outcome), Cause: handlers.Null(r.Cause), Taken: r.Taken, Cancels: r.Cancels, Supersedes: r.Supersedes}
	if out.DryView, out.Tasks, err = ofWork(&row.Work, r, r.Times); err != nil {
		return err
	}
	if r.Outcome == string(calendar.Dispatched) {
		out.EstimatedStartAt = earliest(r.Dry)
	} else {
		out.Tasks, out.EstimatedCostUSD = 0, nil
	}
	return handlers.Answer(c, fiber.StatusOK, out)
}

// earliest is when the first of tasks is expected to start, 0 where nobody can say.
func earliest(tasks []engine.DryTask) (at handlers.Time) {
	for i := range tasks {
		if start := handlers.Time(tasks[i].EstimatedStart); start > 0 && (at == 0 || start < at) {
			at = start
		}
	}
	return at
}
