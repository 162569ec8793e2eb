package api

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// BatchSubmission describes the body of a batch; it is read as it arrives, not through this type.
type BatchSubmission struct {
	Name      string    `json:"name" required:"true"`
	Task      TaskInput `json:"task" required:"true" doc:"what each slice is; its payload is an object or left out"`
	Items     []any     `json:"items" required:"true" doc:"any JSON each"`
	BatchSize int       `json:"batch_size" minimum:"1" maximum:"1000" doc:"items a task, 100 when left out"`
}

// BatchView is a batch as callers see it: its workflow, and how far its items are.
type BatchView struct {
	FlowView
	BatchSize  int           `json:"batch_size"`
	Total      int64         `json:"total" doc:"items"`
	Done       *int64        `json:"done" doc:"items that are done for good; null in lists for more than 5,000 slices"`
	Again      *int64        `json:"retrying_count" doc:"items that failed when last tried and are tried again; null like done"`
	FailedMany *int64        `json:"failed_count" doc:"items that failed and are not tried again by themselves; null like done"`
	Failed     []BatchFailed `json:"failed" doc:"up to 1,000 of them, by index; empty in lists"`
	FailedNext *int64        `json:"failed_next" doc:"there are more: ?failed_from= this index"`
}

// BatchFailed is an item that failed and is not tried again by itself.
type BatchFailed struct {
	Index   int64  `json:"index" doc:"within the batch"`
	Class   string `json:"class"`
	Message string `json:"message"`
}

// BatchDryView says what would happen to a batch.
type BatchDryView struct {
	DryView
	Total int64 `json:"total" doc:"items"`
	Tasks int64 `json:"tasks" doc:"one a slice"`
}

const mostFailedShown = 1_000

var (
	docItems = handlers.Doc{
		Tag: "workflows", Summary: "Submit a batch of items", Body: BatchSubmission{}, Once: true,
		Detail: "It becomes a workflow with one task a slice of batch_size items. A slice's payload is the task's payload with items and first_index. Items that a worker reports as failed are tried again without the others, and alone after a second failure.",
		Query: []handlers.Param{
			{Name: "return", Type: "string", Enum: []string{"minimal"}, About: "minimal leaves the ids of the tasks out"},
			{Name: "dry_run", Type: "boolean", About: "nothing is written; the answer says what would happen"},
		},
		Replies: map[int]any{200: BatchDryView{}, 201: BatchView{}},
	}
	docItemBatches = handlers.Doc{
		Tag: "workflows", Summary: "List batches",
		Query: handlers.ListParams(handlers.Param{Name: "state", Type: "string", Repeat: true, Enum: []string{"running", "succeeded", "failed", "cancelled", "paused"}},
			handlers.Param{Name: "created_after", Type: "string"}, handlers.Param{Name: "created_before", Type: "string"}),
		Replies: map[int]any{200: handlers.Page[BatchView]{}},
	}
	docItemBatch = handlers.Doc{
		Tag: "workflows", Summary: "Read how far a batch is", Replies: map[int]any{200: BatchView{}},
		Query: []handlers.Param{{Name: "failed_from", Type: "integer", About: "list failed items from this index on"}},
	}
)

func (w *Work) batchRoutes() []handlers.Route {
	read, write := []string{handlers.TasksRead}, []string{handlers.TasksWrite}
	return tenantRoutes(
		handlers.Route{Method: "POST", Path: "/v1/batches", Scopes: write, Handler: w.submitItems, MaxBody: handlers.BulkLimit, Bulk: true, Doc: docItems},
		handlers.Route{Method: "GET", Path: "/v1/batches", Scopes: read, Handler: w.listBatches, Doc: docItemBatches},
		handlers.Route{Method: "GET", Path: "/v1/batches/:id", Scopes: read, Handler: w.getBatch, Doc: docItemBatch},
	)
}

func (w *Work) submitItems(d *handlers.Deps, c *fiber.Ctx) error {
	minimal, dry, err := howMade(c)
	if err != nil {
		return err
	}
	b, err := w.readItems(d, c, dry)
	if err != nil {
		return err
	}
	if dry {
		return w.dryItems(d, c, b)
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) { return w.makeBatch(d, c, b, once, minimal) })
}

// input is what is kept of a batch beside its workflow's row.
func (b *batchReader) input() (json.RawMessage, error) {
	text, err := json.Marshal(FlowInput{Lane: b.like.Lane, BatchSize: b.size})
	if err != nil {
		return nil, models.Errorf(models.Internal, "the batch's input can't be written: %w", err)
	}
	return text, nil
}

func (w *Work) makeBatch(d *handlers.Deps, c *fiber.Ctx, b *batchReader, once *engine.Once, minimal bool) (*handlers.Made, error) {
	input, err := b.input()
	if err != nil {
		return nil, err
	}
	flow := &engine.NewWorkflow{ID: b.id, Name: b.name, Priority: b.like.Priority, Input: input, Items: int32(b.sliced)}
	var ids []models.ID
	var answer *engine.Answer
	if len(b.stager.ids) > 0 {
		if err := b.flush(); err != nil {
			return nil, err
		}
		ids = b.stager.ids
		answer, err = b.stager.flip(flow, once)
	} else {
		for i := range b.pending {
			ids = append(ids, b.pending[i].ID)
		}
		answer, err = ask(d, c, func(cmd *engine.Command) {
			cmd.Submit = &engine.Submit{Env: handlers.CallerOf(c).Env, Tasks: b.pending, Workflow: flow, Once: once}
		})
	}
	if err != nil {
		return nil, ofTemplate(err)
	}
	if answer.Replay {
		return w.batchReplay(d, c, answer.Made), nil
	}
	answer.Submitted.Workflow.Items = int32(b.sliced)
	v := &BatchView{FlowView: *viewFlow(answer.Submitted.Workflow, nil, d.Now()), Failed: []BatchFailed{}}
	v.foresee(answer.Submitted.Tasks)
	v.BatchSize, v.Total, v.Done, v.Again, v.FailedMany = b.size, int64(b.sliced), new(int64), new(int64), new(int64)
	if !minimal {
		v.Tasks = make(map[string]string, len(ids))
		for n, id := range ids {
			v.Tasks[keyOfSlice(n)] = id.Text(models.TaskPrefix)
		}
	}
	return &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/batches/" + v.ID, Body: v}, nil
}

func (w *Work) batchReplay(d *handlers.Deps, c *fiber.Ctx, made []models.ID) *handlers.Made {
	return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) {
		if len(made) == 0 {
			return nil, models.Errorf(models.StateConflict, "the answer of the first call with this Idempotency-Key got lost: look at what it made, or use a new key")
		}
		row, err := w.flowOf(c, made[0])
		if err != nil {
			return nil, err
		}
		v, err := w.viewBatch(d, c, row, 0)
		if err != nil {
			return nil, err
		}
		return &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/batches/" + v.ID, Body: v}, nil
	}}
}

func (w *Work) dryItems(d *handlers.Deps, c *fiber.Ctx, b *batchReader) error {
	task := b.like
	task.ID = d.Mint()
	answer, err := w.dryAsk(d, c, task)
	if err != nil {
		return err
	}
	v := BatchDryView{DryView: *answer, Total: int64(b.sliced), Tasks: int64(b.count)}
	if v.EstimatedCostUSD != nil {
		all := *v.EstimatedCostUSD * float64(b.count)
		v.EstimatedCostUSD = &all
	}
	for _, r := range v.Refusals {
		for i := range r.Errors {
			r.Errors[i].Location = inTemplate(r.Errors[i].Location)
		}
	}
	return handlers.Answer(c, fiber.StatusOK, v)
}

var bodyTask = regexp.MustCompile(`^body(\.tasks\[\d+\])?`)

func inTemplate(location string) string { return bodyTask.ReplaceAllString(location, "body.task") }

// ofTemplate says where in the body of a batch stands what was wrong with a slice.
func ofTemplate(err error) error {
	var refusal *models.Error
	if errors.As(err, &refusal) {
		for i := range refusal.Fields {
			refusal.Fields[i].Location = inTemplate(refusal.Fields[i].Location)
		}
	}
	return err
}

func (w *Work) getBatch(d *handlers.Deps, c *fiber.Ctx) error {
	values, err := handlers.ReadQuery(c, "failed_from")
	if err != nil {
		return err
	}
	from, err := readIndex(values["failed_from"])
	if err != nil {
		return err
	}
	id, err := flowID(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	row, err := w.Reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, id)
	if err != nil {
		return err
	}
	if row.Items == 0 {
		return models.Errorf(models.NotFound, "there is no %q here", id.Text(models.WorkflowPrefix))
	}
	v, err := w.viewBatch(d, c, &row, from)
	if err != nil {
		return err
	}
	handlers.SetETag(c, int64(row.UpdatedAt))
	return handlers.Answer(c, fiber.StatusOK, v)
}

func (w *Work) viewBatch(d *handlers.Deps, c *fiber.Ctx, row *models.Workflow, from int64) (*BatchView, error) {
	caller := handlers.CallerOf(c)
	counts, err := w.Reads.BatchCounts(c.UserContext(), caller.Scope(), caller.Env, []models.ID{row.ID})
	if err != nil {
		return nil, err
	}
	v := viewBatch(row, counts, d.Now())
	failed, err := w.Reads.FailedItems(c.UserContext(), caller.Scope(), caller.Env, row.ID, from, mostFailedShown+1)
	if err != nil {
		return nil, err
	}
	if len(failed) > mostFailedShown {
		v.FailedNext = &failed[mostFailedShown].Index
		failed = failed[:mostFailedShown]
	}
	for _, f := range failed {
		v.Failed = append(v.Failed, BatchFailed(f))
	}
	return v, nil
}

func viewBatch(row *models.Workflow, counts map[models.ID]postgres.BatchCounts, now models.Instant) *BatchView {
	var in FlowInput
	_ = json.Unmarshal(row.Input, &in) // written by submit alone
	v := &BatchView{FlowView: *viewFlow(row, nil, now), BatchSize: in.BatchSize, Total: int64(row.Items), Failed: []BatchFailed{}}
	if n, known := counts[row.ID]; known {
		v.Done, v.Again, v.FailedMany = &n.Done, &n.Again, &n.Failed
	}
	return v
}

func (w *Work) listBatches(d *handlers.Deps, c *fiber.Ctx) error {
	q, f, err := readFlowList(d, c)
	if err != nil {
		return err
	}
	f.Batches = true
	caller := handlers.CallerOf(c)
	rows, err := w.Reads.Workflows(c.UserContext(), caller.Scope(), caller.Env, f)
	if err != nil {
		return err
	}
	var few []models.ID
	for i := range rows {
		if rows[i].Counts.Total() <= postgres.CountsLive {
			few = append(few, rows[i].ID)
		}
	}
	counts, err := w.Reads.BatchCounts(c.UserContext(), caller.Scope(), caller.Env, few)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, rows, func(row models.Workflow) *BatchView { return viewBatch(&row, counts, d.Now()) }, func(row models.Workflow) any { return row.ID })
	if err != nil {
		return err
	}
	return answerFlows(w, c, q, f, page)
}

// keyOfSlice is the key of a slice in its workflow.
func keyOfSlice(n int) string { return strconv.Itoa(n) }

// readIndex reads a place in a batch; it is left out for the first.
func readIndex(values []string) (int64, error) {
	if len(values) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(values[0], 10, 32)
	if err != nil || n < 0 || len(values) > 1 {
		return 0, handlers.QueryError("failed_from", "it is the index of an item, from 0")
	}
	return n, nil
}
