package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
)

// TraceView is where the time of a task or workflow went.
type TraceView struct {
	TraceID string     `json:"trace_id" doc:"of the traceparent that came with the submit, else made from the id"`
	Spans   []SpanView `json:"spans" doc:"the server's own (the task, each wait, each attempt) and those that workers reported"`
	// Complete is false when there is more than is shown.
	Complete bool `json:"complete"`
}

// SpanView is a stretch of time.
type SpanView struct {
	SpanID       string          `json:"span_id"`
	ParentSpanID *string         `json:"parent_span_id"`
	Name         string          `json:"name"`
	Start        handlers.Time   `json:"start"`
	End          handlers.Time   `json:"end" doc:"null: it goes on"`
	Attributes   json.RawMessage `json:"attributes"`
}

var (
	docTrace     = handlers.Doc{Tag: "tasks", Summary: "Read a task's trace", Replies: map[int]any{200: TraceView{}}}
	docFlowTrace = handlers.Doc{Tag: "workflows", Summary: "Read a workflow's trace", Detail: "Up to 2,000 tasks of it.", Replies: map[int]any{200: TraceView{}}}
)

func (w *Work) trace(_ *handlers.Deps, c *fiber.Ctx) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	t, err := w.Reads.TraceOf(c.UserContext(), caller.Scope(), caller.Env, id)
	if err != nil {
		return err
	}
	v := &TraceView{TraceID: traceOf(t.Trace, t.Workflow, t.ID), Spans: []SpanView{}, Complete: true}
	v.task(t)
	return handlers.Answer(c, fiber.StatusOK, v)
}

func (w *Work) traceFlow(_ *handlers.Deps, c *fiber.Ctx) error {
	id, err := flowID(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	row, err := w.Reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, id)
	if err != nil {
		return err
	}
	tasks, more, err := w.Reads.TraceOfFlow(c.UserContext(), caller.Scope(), caller.Env, id)
	if err != nil {
		return err
	}
	v := &TraceView{TraceID: hex.EncodeToString(id[:]), Spans: []SpanView{}, Complete: !more}
	parent := ""
	if len(tasks) > 0 && tasks[0].Trace != "" {
		v.TraceID, parent = traceID(tasks[0].Trace), parentSpan(tasks[0].Trace)
	}
	v.add(spanOf(id), parent, row.Name, row.CreatedAt, row.FinishedAt, map[string]any{"workflow_id": id.Text(models.WorkflowPrefix), "state": row.State.String()})
	for _, t := range tasks {
		v.task(t)
	}
	return handlers.Answer(c, fiber.StatusOK, v)
}

// parentSpan is the span of a traceparent.
func parentSpan(trace string) string {
	if len(trace) < 52 {
		return ""
	}
	return trace[36:52]
}

// spanOf is the span of a task, workflow or attempt: the part of its id that was drawn by chance. Ids of one body rise by
// one, so no two are alike.
func spanOf(id models.ID) string { return hex.EncodeToString(id[8:]) }

func (v *TraceView) add(id, parent, name string, start, end models.Instant, attributes map[string]any) {
	text, err := json.Marshal(attributes)
	if err != nil {
		text = []byte("{}")
	}
	v.Spans = append(v.Spans, SpanView{id, handlers.Null(parent), name, handlers.Time(start), handlers.Time(end), text})
}

// task adds a task's own span, its waits, its attempts and what these reported.
func (v *TraceView) task(t *postgres.Traced) {
	own, parent := spanOf(t.ID), ""
	switch {
	case !t.Parent.IsZero():
		parent = spanOf(t.Parent)
	case !t.Workflow.IsZero():
		parent = spanOf(t.Workflow)
	default:
		parent = parentSpan(t.Trace)
	}
	about := map[string]any{"task_id": t.ID.Text(models.TaskPrefix), "type": t.Type, "lane": t.LaneName, "state": t.State.String()}
	if t.Key != "" {
		about["key"] = t.Key
	}
	v.add(own, parent, t.Type, t.CreatedAt, t.FinishedAt, about)
	waits := t.ReadyAt // since when it could have started
	attempts := map[int32]string{}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		v.queued(t, a.N, waits, a.StartedAt)
		v.attempt(t, a)
		attempts[a.N], waits = spanOf(a.ID), a.FinishedAt
	}
	switch {
	case t.State.Live():
		v.queued(t, t.Attempt, waits, t.StartedAt)
		running := models.Attempt{N: t.Attempt, ID: t.AttemptID, Worker: t.Worker, StartedAt: t.StartedAt}
		v.attempt(t, &running)
		attempts[t.Attempt] = spanOf(t.AttemptID)
	case t.State == models.Ready || t.State == models.RetryWait:
		v.queued(t, t.Attempt+1, waits, 0)
	}
	for i := range t.Spans {
		s := &t.Spans[i]
		parent := s.Parent
		if parent == "" {
			if parent = attempts[s.Attempt]; parent == "" {
				parent = own
			}
		}
		v.Spans = append(v.Spans, SpanView{s.ID, handlers.Null(parent), s.Name, handlers.Time(s.Began), handlers.Time(s.Ended), s.Attributes})
	}
}

// queued adds the time a task waited for an attempt; end 0: it still does.
func (v *TraceView) queued(t *postgres.Traced, attempt int32, from, end models.Instant) {
	if from == 0 || end != 0 && end < from {
		return
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%x %d", t.ID, attempt))
	v.add(hex.EncodeToString(sum[:8]), spanOf(t.ID), "queued", from, end, map[string]any{"attempt": attempt})
}

func (v *TraceView) attempt(t *postgres.Traced, a *models.Attempt) {
	about := map[string]any{"attempt": a.N, "attempt_id": a.ID.Text(models.AttemptPrefix), "worker_id": a.Worker.Text(models.WorkerPrefix), "outcome": a.Outcome.String()}
	if a.Pool != "" {
		about["pool"] = a.Pool
	}
	if a.Model != "" {
		about["model"] = a.Model
	}
	if a.Error != nil {
		about["error_class"] = a.Error.Class
	}
	v.add(spanOf(a.ID), spanOf(t.ID), fmt.Sprintf("attempt %d", a.N), a.StartedAt, a.FinishedAt, about)
}
