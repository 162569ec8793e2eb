package api

import (
	"encoding/json"

	"nightshift/handlers"
	"nightshift/models"
)

// TaskInput describes what is submitted; it is read member by member, not through this type.
type TaskInput struct {
	Type             string             `json:"type" required:"true" doc:"a name, like llm.generate"`
	Payload          json.RawMessage    `json:"payload" doc:"any JSON up to 256 kB"`
	Lane             string             `json:"lane" doc:"left out: routed by type"`
	Priority         int                `json:"priority" minimum:"0" maximum:"100" doc:"50 when left out; a point is worth 60 s of waiting"`
	RunAt            handlers.Time      `json:"run_at" doc:"not before then"`
	DelaySeconds     float64            `json:"delay_seconds" minimum:"0" doc:"counts from acceptance, or from the end of the dependencies"`
	Deadline         handlers.Time      `json:"deadline" doc:"it should have ended by then: orders the tenant's tasks, ends nothing"`
	ExpiresInSeconds float64            `json:"expires_in_seconds" doc:"it must have started by then, from run_at or creation"`
	Resources        ResourcesInput     `json:"resources"`
	Model            any                `json:"model" doc:"a model's name, or {auto: true, quality_target, max_latency_ms, candidates}: the cheapest that fits is chosen"`
	EstimatedCostUSD float64            `json:"estimated_cost_usd" minimum:"0"`
	EstimatedSeconds float64            `json:"estimated_seconds" minimum:"0"`
	Timeout          TimeoutInput       `json:"timeout" doc:"the kind's default when left out"`
	TimeoutSeconds   float64            `json:"timeout_seconds" doc:"short for timeout.hard_seconds"`
	RetryPolicy      models.RetryPolicy `json:"retry_policy"`
	Concurrency      []ConcurrencyInput `json:"concurrency" doc:"at most 16 keys: it starts while fewer than limit live tasks hold each"`
	Ordered          bool               `json:"ordered" doc:"tasks of its keys start in the order in which they became ready"`
	RateKeys         []string           `json:"rate_keys" doc:"at most 16: it starts under the rate limits of these keys"`
	ConcurrencyKey   string             `json:"concurrency_key" doc:"short for one entry of concurrency"`
	ConcurrencyLimit int                `json:"concurrency_limit" minimum:"1"`
	IdempotencyKey   string             `json:"idempotency_key" doc:"while a task of this key is live, dead or succeeded it is answered instead"`
	WorkerSelector   map[string]string  `json:"worker_selector" doc:"labels the worker must have"`
	Labels           map[string]string  `json:"labels" doc:"at most 32"`
	DependsOn        []any              `json:"depends_on" doc:"ids, or {task, on: succeeded|failed|finished}; at most 1,000"`
	OnExhausted      string             `json:"on_attempts_exhausted" enum:"dead_letter,fail"`
	Description      string             `json:"description"`
	RunIf            string             `json:"run_if" doc:"CEL over deps (a list of {key, state, result}), payload and labels: false skips the task; edges then default to finished"`
	Watermark        string             `json:"watermark" doc:"one task of it runs at a time; its success may move it"`
	NeedsApproval    bool               `json:"needs_approval" doc:"it waits until somebody approves it"`
	Dedupe           DedupeView         `json:"dedupe" doc:"while a task holds the key it is answered instead"`
	Budget           BudgetInput        `json:"budget" doc:"what it and all it spawns may use; not for tasks of a workflow or children, which spend of their workflow's"`
}

// ResourcesInput is what a task asks of its worker.
type ResourcesInput struct {
	CPU      float64 `json:"cpu" minimum:"0"`
	MemoryMB int64   `json:"memory_mb" minimum:"0"`
	DiskMB   int64   `json:"disk_mb" minimum:"0"`
	GPU      int     `json:"gpu" minimum:"0" doc:"cards"`
	VRAMMB   int64   `json:"vram_mb" minimum:"0" doc:"that each of its cards must have"`
}

// TimeoutInput is a task's timeouts.
type TimeoutInput struct {
	Soft  float64 `json:"soft_seconds"`
	Hard  float64 `json:"hard_seconds"`
	Total float64 `json:"total_seconds" doc:"from the first start, over all attempts and waits"`
}

// ConcurrencyInput is a key and how many may hold it.
type ConcurrencyInput struct {
	Key   string `json:"key" required:"true"`
	Limit int    `json:"limit" minimum:"1" doc:"1 when left out"`
}

// BatchInput is the body of a batch.
type BatchInput struct {
	Tasks []TaskInput `json:"tasks" required:"true"`
}

// RetryInput is the body of a retry.
type RetryInput struct {
	Payload        json.RawMessage `json:"payload" doc:"instead of the one it had"`
	FromCheckpoint bool            `json:"from_checkpoint" doc:"true when left out for a dead letter, false for a new task"`
	Reason         string          `json:"reason"`
}

var filterParams = []handlers.Param{
	{Name: "state", Type: "string", Repeat: true, Enum: stateWords()},
	{Name: "type", Type: "string", Repeat: true},
	{Name: "lane", Type: "string", Repeat: true},
	{Name: "kind", Type: "string", Repeat: true, Enum: []string{"realtime", "io", "compute", "batch"}},
	{Name: "workflow_id", Type: "string", Repeat: true},
	{Name: "schedule_id", Type: "string", Repeat: true},
	{Name: "worker_id", Type: "string", Repeat: true, About: "what a worker runs now"},
	{Name: "label.{key}", Type: "string", Repeat: true, About: "a label's value"},
	{Name: "created_after", Type: "string"},
	{Name: "created_before", Type: "string"},
	{Name: "include", Type: "string", Repeat: true, Enum: []string{"payload", "result", "progress", "checkpoint"}},
}

func stateWords() (words []string) {
	for _, s := range models.States() {
		words = append(words, s.String())
	}
	return words
}

var (
	docSubmit = handlers.Doc{
		Tag: "tasks", Summary: "Submit a task", Body: TaskInput{},
		Query: []handlers.Param{{Name: "dry_run", Type: "boolean", About: "true: nothing is written, the answer says what would happen"}},
		Once:  true, Headers: []handlers.Param{{Name: "traceparent", Type: "string", About: "handed to the worker"}},
		Detail:  "201 with the task; 202 when its lane is past its high-water mark; 200 with the holder of its idempotency_key, or for a dry run.",
		Replies: map[int]any{201: MadeTaskView{}, 202: MadeTaskView{}, 200: TaskView{}},
	}
	docBatch = handlers.Doc{
		Tag: "tasks", Summary: "Submit up to 10,000 tasks, all or nothing", Body: BatchInput{}, Query: dryParam,
		Once: true, Replies: map[int]any{200: DryAnswer{}, 201: BatchAnswer{}},
	}
	docTasks = handlers.Doc{
		Tag: "tasks", Summary: "List tasks", Query: handlers.ListParams(filterParams...),
		Replies: map[int]any{200: handlers.Page[TaskView]{}},
	}
	docTask     = handlers.Doc{Tag: "tasks", Summary: "Read a task", Replies: map[int]any{200: TaskView{}}}
	docAttempts = handlers.Doc{Tag: "tasks", Summary: "List a task's attempts, oldest first", Replies: map[int]any{200: AttemptsAnswer{}}}
	docWait     = handlers.Doc{
		Tag: "tasks", Summary: "Wait until a task is final or a dead letter",
		Query:   []handlers.Param{{Name: "timeout_seconds", Type: "number", About: "30 when left out, at most 60"}},
		Replies: map[int]any{200: TaskView{}, 202: TaskView{}},
	}
	docExplain = handlers.Doc{Tag: "tasks", Summary: "Say why a task does not run", Replies: map[int]any{200: ExplainView{}}}
	docCancel  = handlers.Doc{Tag: "tasks", Summary: "Cancel a task", Body: reason{}, BodyOptional: true, Replies: map[int]any{200: TaskView{}, 202: TaskView{}}}
	docRetry   = handlers.Doc{
		Tag: "tasks", Summary: "Give a dead letter another life, or make a new task like one that ended", Body: RetryInput{}, BodyOptional: true,
		Detail: "With dry_run a task that lives is no error: it stands among the refusals.",
		Query:  dryParam, Once: true, Replies: map[int]any{200: handlers.Either{TaskView{}, DryView{}}, 201: MadeTaskView{}},
	}
	docChildren = handlers.Doc{Tag: "tasks", Summary: "List what a task spawned", Query: handlers.ListParams(), Replies: map[int]any{200: handlers.Page[TaskView]{}}}
	docLineage  = handlers.Doc{Tag: "tasks", Summary: "Show whom a task comes from and what came of it", Replies: map[int]any{200: LineageView{}}}
	docApprove  = handlers.Doc{Tag: "tasks", Summary: "Approve a task that needs it", Body: reason{}, BodyOptional: true, Replies: map[int]any{200: TaskView{}}}
	docReject   = handlers.Doc{Tag: "tasks", Summary: "Reject a task that needs approval: it is cancelled", Body: reason{}, Replies: map[int]any{200: TaskView{}}}
	docSignal   = handlers.Doc{
		Tag: "tasks", Summary: "Send a running task a signal", Body: SignalInput{}, Replies: map[int]any{202: TaskView{}},
		Detail: "Its worker is told once, in its next heartbeat or claim. 409 unless the task runs.",
	}
	docEdit = handlers.Doc{
		Tag: "tasks", Summary: "Change a task that waits", Body: EditInput{}, Replies: map[int]any{200: TaskView{}},
		Detail: "A member that is left out stays; null takes a deadline, expires_at or labels away and lets run_at be now.",
	}
	docJudge     = handlers.Doc{Tag: "tasks", Summary: "Say how good a result was", Body: QualityInput{}, Replies: map[int]any{200: QualityView{}}}
	docQualities = handlers.Doc{Tag: "tasks", Summary: "List what was said of a result", Replies: map[int]any{200: QualitiesAnswer{}}}
	docLogs      = handlers.Doc{Tag: "tasks", Summary: "List the lines a task's attempts wrote, oldest first", Query: handlers.OldestFirstParams(), Replies: map[int]any{200: handlers.Page[LogView]{}}}
	docDiscard   = handlers.Doc{Tag: "tasks", Summary: "Give a dead letter up", Body: reason{}, Replies: map[int]any{200: TaskView{}}}
)
