package api

import (
	"bytes"
	"crypto/sha256"
	"io"
	"mime"
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// reader begins reading the tasks of a request.
func reader(d *handlers.Deps, c *fiber.Ctx) *taskReader {
	caller := handlers.CallerOf(c)
	return &taskReader{
		may: caller.Permissions, schemas: func(env int32) (map[string]*handlers.InputSchema, error) {
			return d.Schemas.Of(c.UserContext(), env)
		},
		env: caller.Env, mint: inOrder(d), trace: traceparent(c.Get("traceparent")), lanes: caller.Lanes,
		problem: &body.Problems{}, priority: defaultPriority,
	}
}

// inOrder mints ids that rise within a request, so that lists show a body's tasks in its order.
func inOrder(d *handlers.Deps) func() models.ID {
	var last models.ID
	return func() models.ID {
		if last.IsZero() {
			last = d.Mint()
			return last
		}
		for i := len(last) - 1; i > 8; i-- {
			if last[i]++; last[i] != 0 {
				break
			}
		}
		return last
	}
}

func (w *Work) submit(d *handlers.Deps, c *fiber.Ctx) error {
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	text, err := handlers.ReadBody(c)
	if err != nil {
		return err
	}
	task, err := readOne(d, c, text)
	if err != nil {
		return err
	}
	if dry {
		return w.dryRun(d, c, task)
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		made, err := w.submitOne(d, c, task, once)
		if models.CodeOf(err) == models.SchemaChanged { // it is held to the one that stands now
			if task, err = readOne(d, c, text); err == nil {
				made, err = w.submitOne(d, c, task, once)
			}
		}
		return made, err
	})
}

func readOne(d *handlers.Deps, c *fiber.Ctx, text []byte) (engine.NewTask, error) {
	r := reader(d, c)
	v, err := body.Open(text, "body", r.problem)
	if err != nil {
		return engine.NewTask{}, err
	}
	task := r.task(v)
	return task, r.err()
}

func (w *Work) submitOne(d *handlers.Deps, c *fiber.Ctx, task engine.NewTask, once *engine.Once) (*handlers.Made, error) {
	caller := handlers.CallerOf(c)
	answer, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Submit = &engine.Submit{Env: caller.Env, Tasks: []engine.NewTask{task}, Once: once, Single: true, InBatch: true}
	})
	if err != nil {
		return nil, err
	}
	if answer.Replay {
		return w.madeBefore(d, c, answer)
	}
	made := &answer.Submitted.Tasks[0]
	if made.Deduplicated {
		v, err := w.view(d, c, made.Row.ID)
		if err != nil {
			return nil, err
		}
		v.Deduplicated = true
		return &handlers.Made{Status: fiber.StatusOK, Location: "/v1/tasks/" + v.ID, Body: v}, nil
	}
	v := &MadeTaskView{TaskView: *w.viewNew(d, c, &task, made)}
	if f := made.Foresight; f != nil {
		start := handlers.Time(f.Start)
		v.Feasible, v.EstimatedStartAt = f.Feasible, &start
	}
	status := fiber.StatusCreated
	if answer.Submitted.HighWater {
		status = fiber.StatusAccepted
		start := handlers.Time(answer.Submitted.EstimatedStart)
		v.EstimatedStartAt = &start
	}
	return &handlers.Made{Status: status, Location: "/v1/tasks/" + v.ID, Body: v}, nil
}

// MadeTaskView is a task that was just made.
type MadeTaskView struct {
	TaskView
	Feasible *bool `json:"feasible,omitempty" doc:"whether it is expected to start in time for its deadline and its expiry; left out: it has neither, or nothing can be said"`
}

// madeBefore says what an earlier call with the same Idempotency-Key made.
func (w *Work) madeBefore(d *handlers.Deps, c *fiber.Ctx, answer *engine.Answer) (*handlers.Made, error) {
	return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) {
		if len(answer.Made) != 1 {
			return nil, models.Errorf(models.StateConflict, "the answer of the first call with this Idempotency-Key got lost: look at what it made, or use a new key")
		}
		v, err := w.view(d, c, answer.Made[0])
		if err != nil {
			return nil, err
		}
		return &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/tasks/" + v.ID, Body: v}, nil
	}}, nil
}

// viewNew shows a task that was just made, from what was sent and the row it got: nothing is read back.
func (w *Work) viewNew(d *handlers.Deps, c *fiber.Ctx, task *engine.NewTask, made *engine.SubmittedTask) *TaskView {
	row, input := made.Row, task.Input
	if made.Input != nil {
		input = made.Input
	}
	lane := w.laneOf(d, c, row.Lane)
	whole := &postgres.TaskRow{
		Task: row, Input: input, Payload: task.Payload, Trace: task.Trace, RedriveOf: task.RedriveOf,
		Needs: task.Class, LaneName: lane.name, Kind: lane.kind,
	}
	if whole.Choice = made.Choice; made.Choice != nil {
		whole.Needs.Model, whole.Needs.Chosen = made.Choice.Chosen, true
	}
	for _, dep := range task.DependsOn {
		whole.DependsOn = append(whole.DependsOn, models.Edge{From: dep.Task, To: row.ID, On: dep.On})
	}
	return viewTask(whole, handlers.CallerOf(c).Environment, postgres.Whole, nil)
}

// DryView says what would happen to a task.
type DryView struct {
	Lane             *string       `json:"lane"`
	Kind             *string       `json:"kind"`
	Class            *int32        `json:"class" doc:"null: its requirements are new"`
	Model            *string       `json:"model"`
	EstimatedCostUSD *float64      `json:"estimated_cost_usd"`
	EstimatedStartAt handlers.Time `json:"estimated_start_at" doc:"null: it depends on what nobody can foresee"`
	Feasible         *bool         `json:"feasible" doc:"whether that is in time for its deadline and its expiry; null: it has neither, or nothing can be said"`
	Refusals         []RefusalView `json:"refusals"`

	// Of one task, with what its lane gives to those that say nothing themselves.
	Timeout          *TimeoutView `json:"timeout,omitempty"`
	RetryPolicy      *PolicyView  `json:"retry_policy,omitempty"`
	ExpiresInSeconds *int32       `json:"expires_in_seconds,omitempty"`
}

// RefusalView is one reason why a submit would be refused.
type RefusalView struct {
	Code   models.Code         `json:"code"`
	Detail string              `json:"detail"`
	Errors []models.FieldError `json:"errors"`
}

func (w *Work) dryRun(d *handlers.Deps, c *fiber.Ctx, task engine.NewTask) error {
	v, err := w.dryAsk(d, c, task)
	if err != nil {
		return err
	}
	return handlers.Answer(c, fiber.StatusOK, v)
}

func wantsJSON(c *fiber.Ctx) error {
	media, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || media != fiber.MIMEApplicationJSON {
		return models.Errorf(models.UnsupportedMediaType, "send application/json, not %q", handlers.Shorten(c.Get(fiber.HeaderContentType), 80))
	}
	return nil
}

// optionalBody reads a body that may be left out; it is then an empty object.
func optionalBody(c *fiber.Ctx) ([]byte, error) {
	text, err := handlers.RawBody(c)
	if err != nil {
		return nil, err
	}
	handlers.NoteDigest(c, sha256.Sum256(text))
	if len(bytes.TrimSpace(text)) == 0 {
		return []byte("{}"), nil
	}
	return text, wantsJSON(c)
}

// stream opens a bulk body: its content type is checked, its digest kept for Create once it has been read.
func stream(c *fiber.Ctx) (r io.Reader, read func(), err error) {
	if n := c.Request().Header.ContentLength(); n == 0 || n == -2 { // -2: neither a length nor chunks
		return nil, nil, models.Errorf(models.InvalidJSON, "this call needs a JSON body")
	}
	if err := wantsJSON(c); err != nil {
		return nil, nil, err
	}
	sum := sha256.New()
	return io.TeeReader(handlers.BodyOf(c), sum), func() {
		var digest [sha256.Size]byte
		sum.Sum(digest[:0])
		handlers.NoteDigest(c, digest)
	}, nil
}

// BatchRow is one task of a batch as it stands.
type BatchRow struct {
	ID           string `json:"id"`
	State        string `json:"state"`
	Deduplicated bool   `json:"deduplicated,omitempty" doc:"its idempotency_key was held: this is the holder"`
	// Of the first tasks of a body that must start by some moment.
	EstimatedStartAt *handlers.Time `json:"estimated_start_at,omitempty" doc:"of the first 16 tasks with a deadline or an expiry, in a body of up to 1,000 tasks; null where nothing can be said"`
	Feasible         *bool          `json:"feasible,omitempty" doc:"whether that is in time; left out where nothing can be said"`
}

// BatchAnswer has a row a task, in order.
type BatchAnswer struct {
	Data []BatchRow `json:"data"`
}

func (w *Work) batch(d *handlers.Deps, c *fiber.Ctx) error {
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	tasks, err := readBatch(d, c)
	if err != nil {
		return err
	}
	bound := slices.ContainsFunc(tasks, func(t engine.NewTask) bool { // to what is there: they go into one command
		return t.IdemKey != "" || t.Dedupe != nil || t.Own != nil || len(t.DependsOn) > 0
	})
	if bound {
		if err := fits(tasks); err != nil {
			return err
		}
	}
	if dry {
		views, err := w.dryAll(d, c, tasks, models.ID{}, false)
		if err != nil {
			return err
		}
		return handlers.Answer(c, fiber.StatusOK, DryAnswer{views})
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		if heavy(tasks) && !bound {
			return w.stageBatch(d, c, tasks, once)
		}
		answer, err := ask(d, c, func(cmd *engine.Command) {
			cmd.Submit = &engine.Submit{Env: handlers.CallerOf(c).Env, Tasks: tasks, Once: once, InBatch: true}
		})
		if err != nil {
			return nil, err
		}
		rows := make([]BatchRow, 0, len(tasks))
		if answer.Replay {
			return w.batchBefore(c, answer.Made), nil
		}
		for _, t := range answer.Submitted.Tasks {
			row := BatchRow{ID: t.Row.ID.Text(models.TaskPrefix), State: t.Row.State.String(), Deduplicated: t.Deduplicated}
			if f := t.Foresight; f != nil {
				start := handlers.Time(f.Start)
				row.Feasible, row.EstimatedStartAt = f.Feasible, &start
			}
			rows = append(rows, row)
		}
		return &handlers.Made{Status: fiber.StatusCreated, Body: BatchAnswer{rows}}, nil
	})
}

func readBatch(d *handlers.Deps, c *fiber.Ctx) ([]engine.NewTask, error) {
	from, read, err := stream(c)
	if err != nil {
		return nil, err
	}
	r := reader(d, c)
	given := false
	var tasks []engine.NewTask
	err = body.Stream(from, "body", "tasks", r.problem, func(name string, v body.Value) error {
		v.Wrong("there is no such field")
		return nil
	}, func(i int, v body.Value) error {
		given = true
		if i == handlers.BatchMost {
			return models.Invalid("body.tasks", "a batch has at most %d tasks", handlers.BatchMost)
		}
		if r.problem.Full() {
			return r.problem.Err(models.ValidationFailed)
		}
		tasks = append(tasks, r.task(v))
		return nil
	})
	read()
	if err == nil && !given {
		r.problem.Addf("body.tasks", "is required, with at least one task")
	}
	if err == nil {
		err = r.err()
	}
	return tasks, err
}

// batchBefore rebuilds the answer of an earlier call from the ids it made.
func (w *Work) batchBefore(c *fiber.Ctx, ids []models.ID) *handlers.Made {
	return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) {
		caller := handlers.CallerOf(c)
		found, err := w.Reads.TasksByID(c.UserContext(), caller.Scope(), caller.Env, ids, postgres.Include{})
		if err != nil {
			return nil, err
		}
		rows := make([]BatchRow, 0, len(found))
		for i := range found {
			rows = append(rows, BatchRow{ID: found[i].ID.Text(models.TaskPrefix), State: found[i].State.String()})
		}
		return &handlers.Made{Status: fiber.StatusCreated, Body: BatchAnswer{rows}}, nil
	}}
}
