package api

import (
	"bytes"
	"fmt"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// Bounds and presets of schedules that gather.
const (
	mostDebounce   = 86_400
	mostWait       = 7 * 86_400
	mostEvents     = 10_000
	mostItems      = 10_000
	mostBatch      = 1_000
	presetItems    = 1_000
	presetBatch    = 100
	mostFedPayload = 64 << 10 // of a task that events are added to
	eventsAPage    = 4 << 20  // bytes of events in a list of runs
)

// EventRuleView says which triggers a schedule is for, and when those that have gathered become a run.
type EventRuleView struct {
	Name     string   `json:"name" required:"true"`
	Debounce float64  `json:"debounce_seconds" doc:"so long no new one; 0 when left out: at once"`
	MaxWait  *float64 `json:"max_wait_seconds" doc:"but no longer than this after the first; null: no bound"`
	MaxCount *int32   `json:"max_events" doc:"and at once when there are so many; null: no bound. A run takes at most 1,000 and 128 kB of them; the rest goes to the next"`
}

// DrainRuleView says which queue a schedule empties, and in what portions.
type DrainRuleView struct {
	Queue     string `json:"queue" required:"true"`
	MaxItems  int32  `json:"max_items" doc:"a run, which makes at most 500 portions and 1,000 tasks; 1,000 when left out"`
	BatchSize int32  `json:"batch_size" doc:"a portion, or 256 kB of them; 100 when left out. The task, or all of the workflow, is made once a portion"`
}

func viewEventRule(r *models.EventRule) *EventRuleView {
	if r == nil {
		return nil
	}
	return &EventRuleView{r.Name, r.DebounceSeconds, handlers.Null(r.MaxWaitSeconds), handlers.Null(r.MaxEvents)}
}

func viewDrainRule(r *models.DrainRule) *DrainRuleView {
	if r == nil {
		return nil
	}
	return &DrainRuleView{r.Queue, r.MaxItems, r.BatchSize}
}

func (d *scheduleDraft) event(v body.Value) {
	if d.rule.Event = nil; v.Null() {
		return
	}
	r := &models.EventRule{}
	d.rule.Event = r
	v.Members(func(name string, m body.Value) {
		switch {
		case name == "name":
			r.Name = m.Name()
		case name != "debounce_seconds" && name != "max_wait_seconds" && name != "max_events":
			m.Wrong("there is no such field")
		case m.Null():
		case name == "debounce_seconds":
			r.DebounceSeconds = m.Number(0, mostDebounce)
		case name == "max_wait_seconds":
			r.MaxWaitSeconds = m.Number(0, mostWait)
		default:
			r.MaxEvents = int32(m.Int(1, mostEvents))
		}
	})
	if r.Name == "" && !d.problem.Any() {
		d.problem.Addf("body.event.name", "is needed")
	}
}

func (d *scheduleDraft) drain(v body.Value) {
	if d.rule.Drain = nil; v.Null() {
		return
	}
	r := &models.DrainRule{MaxItems: presetItems, BatchSize: presetBatch}
	d.rule.Drain = r
	v.Members(func(name string, m body.Value) {
		switch {
		case name == "queue":
			r.Queue = m.Name()
		case name != "max_items" && name != "batch_size":
			m.Wrong("there is no such field")
		case m.Null():
		case name == "max_items":
			r.MaxItems = int32(m.Int(1, mostItems))
		default:
			r.BatchSize = int32(m.Int(1, mostBatch))
		}
	})
	if d.problem.Any() {
		return
	}
	if r.Queue == "" {
		d.problem.Addf("body.drain.queue", "is needed")
	}
}

// finishFeed checks what a schedule that gathers says together. Its work was weighed before.
func (d *scheduleDraft) finishFeed() {
	r := d.rule
	if !r.Gathers() || d.problem.Any() || d.unsound != nil {
		return
	}
	if r.Drain != nil {
		if r.Partitions > engine.MostPortions {
			d.problem.Addf("body.partitions", "is at most %d with kind drain", engine.MostPortions)
		}
		if r.Bytes*int64(engine.Portions(r)) > mostRunBytes {
			d.problem.Addf(workField(r), "the payloads of all portions have at most %d bytes together", mostRunBytes)
		}
		return
	}
	t, err := engine.ReadTemplate(d.row.Work.Task)
	if err != nil {
		return // it was weighed before
	}
	for i := range t.Tasks {
		if len(t.Tasks[i].DependsOn) == 0 {
			d.takesEvents(taskField(r, i), &t.Tasks[i])
		}
	}
	if n := engine.FedTasks(r); n > engine.MostFed {
		d.problem.Addf(workField(r), "at most %d tasks of a run get its events, and %d of its tasks wait for no other", engine.MostFed, n)
	}
}

// takesEvents refuses a payload that events can't be added to.
func (d *scheduleDraft) takesEvents(at string, t *engine.NewTask) {
	switch payload := bytes.TrimSpace(t.Payload); {
	case len(payload) > 0 && payload[0] != '{' && string(payload) != "null":
		d.problem.Addf(body.Dot(at, "payload"), "must be an object: event and events are added to it")
	case len(payload) > mostFedPayload:
		d.problem.Addf(body.Dot(at, "payload"), "must have at most %d bytes: event and events are added to it", mostFedPayload)
	}
}

// workField is where the work of a rule stands, taskField one of its tasks.
func workField(r *models.ScheduleRule) string {
	if r.Workflow {
		return "body.workflow"
	}
	return "body.task"
}

func taskField(r *models.ScheduleRule, i int) string {
	if r.Workflow {
		return fmt.Sprintf("body.workflow.tasks[%d]", i)
	}
	return "body.task"
}

// EventView is a trigger that a run took.
type EventView struct {
	ID   string        `json:"id"`
	Name string        `json:"name"`
	Data any           `json:"data"`
	At   handlers.Time `json:"at"`
}

// TakenView is a trigger or an item that a run took.
type TakenView struct {
	EventView
	DedupeKey *string `json:"dedupe_key"`
}

func viewTaken(m models.Message) TakenView {
	prefix := models.EventPrefix
	if m.Source == models.FromQueue {
		prefix = models.ItemPrefix
	}
	return TakenView{EventView{m.ID.Text(prefix), m.Name, m.Data, handlers.Time(m.At)}, handlers.Null(m.Key)}
}

// viewRuns shows runs with what they took.
func viewRuns(d *handlers.Deps, c *fiber.Ctx, runs []postgres.RunRow) (func(postgres.RunRow) RunView, error) {
	caller, ids := handlers.CallerOf(c), make([]models.ID, len(runs))
	for i := range runs {
		ids[i] = runs[i].ID
	}
	takes, err := d.World.TakesOf(c.UserContext(), caller.Scope(), caller.Env, ids)
	if err != nil {
		return nil, err
	}
	var whole []models.ID // whose events come along
	var bytes int64
	for _, id := range ids {
		for _, t := range takes[id] {
			if t.Source == models.FromTrigger && bytes+t.Bytes+100*int64(t.Count) <= eventsAPage {
				bytes += t.Bytes + 100*int64(t.Count)
				whole = append(whole, id)
			}
		}
	}
	events := map[models.ID][]models.Message{}
	if len(whole) > 0 {
		if events, err = d.World.EventsOf(c.UserContext(), caller.Scope(), caller.Env, whole); err != nil {
			return nil, err
		}
	}
	return func(row postgres.RunRow) RunView {
		v := viewRun(row)
		for _, t := range takes[row.ID] {
			v.Taken += t.Count
		}
		if v.Taken > 0 {
			url := "/v1/schedules/" + v.ScheduleID + "/runs/" + v.ID + "/taken"
			v.TakenURL = &url
		}
		for _, m := range events[row.ID] {
			v.Events = append(v.Events, viewTaken(m).EventView)
		}
		return v
	}, nil
}

// runOf is the run in the path, of the schedule in the path.
func runOf(d *handlers.Deps, c *fiber.Ctx) (postgres.RunRow, error) {
	id, err := handlers.PathID(c, "run", models.RunPrefix)
	if err != nil {
		return postgres.RunRow{}, err
	}
	of, err := readSchedule(d, c)
	if err != nil {
		return postgres.RunRow{}, err
	}
	run, err := d.World.Run(c.UserContext(), handlers.CallerOf(c).Scope(), of.Env, id)
	if err == nil && run.Schedule != of.ID {
		err = models.Errorf(models.NotFound, "there is no run %q of this schedule", id.Text(models.RunPrefix))
	}
	return run, err
}

func getRun(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	run, err := runOf(d, c)
	if err != nil {
		return err
	}
	show, err := viewRuns(d, c, []postgres.RunRow{run})
	if err != nil {
		return err
	}
	return handlers.Answer(c, fiber.StatusOK, show(run))
}

// listTaken lists what a run took.
func listTaken(d *handlers.Deps, c *fiber.Ctx) error {
	q, err := handlers.ReadList(d, c)
	if err != nil {
		return err
	}
	ask := postgres.TakenList{Desc: q.Desc, Limit: q.Limit + 1}
	if _, err := q.After(&ask.After); err != nil {
		return err
	}
	run, err := runOf(d, c)
	if err != nil {
		return err
	}
	rows, total, err := d.World.TakenMessages(c.UserContext(), handlers.CallerOf(c).Scope(), run.Env, run.ID, ask)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, rows, viewTaken, func(m models.Message) any { return m.Seq })
	if err != nil {
		return err
	}
	if q.Count {
		page.Total = &handlers.Total{Value: total, Relation: "eq"}
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}
