package api

import (
	"encoding/json"
	"math"
	"strings"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// TaskView is a task as callers see it: its input, then what became of it.
type TaskView struct {
	ID               string            `json:"id"`
	Type             string            `json:"type"`
	Payload          json.RawMessage   `json:"payload,omitempty" doc:"left out of lists unless ?include=payload"`
	Lane             string            `json:"lane"`
	Priority         int16             `json:"priority"`
	RunAt            handlers.Time     `json:"run_at"`
	DelaySeconds     *int32            `json:"delay_seconds" doc:"null: a delay is answered as run_at"`
	Deadline         handlers.Time     `json:"deadline"`
	ExpiresInSeconds *int32            `json:"expires_in_seconds"`
	ExpiresAt        handlers.Time     `json:"expires_at"`
	Resources        ResourcesView     `json:"resources"`
	Model            ModelView         `json:"model"`
	EstimatedCostUSD *float64          `json:"estimated_cost_usd"`
	EstimatedSeconds *float64          `json:"estimated_seconds"`
	Timeout          TimeoutView       `json:"timeout"`
	RetryPolicy      PolicyView        `json:"retry_policy"`
	Permissions      []string          `json:"permissions"`
	Secrets          map[string]string `json:"secrets"`
	Concurrency      []ConcurrencyView `json:"concurrency"`
	Ordered          bool              `json:"ordered"`
	RateKeys         []string          `json:"rate_keys"`
	IdempotencyKey   *string           `json:"idempotency_key"`
	Dedupe           *DedupeView       `json:"dedupe"`
	WorkerSelector   map[string]string `json:"worker_selector"`
	Labels           map[string]string `json:"labels"`
	Watermark        *string           `json:"watermark"`
	Budget           *TaskBudgetView   `json:"budget" doc:"what it and all it spawns may use; the workflow of workflow_id says what is left"`
	DependsOn        []EdgeView        `json:"depends_on"`
	RunIf            *string           `json:"run_if"`
	NeedsApproval    bool              `json:"needs_approval"`
	OnExhausted      string            `json:"on_attempts_exhausted"`
	Description      *string           `json:"description"`
	Key              *string           `json:"key" doc:"its key in its workflow"`
	State            string            `json:"state"`
	Attempt          int32             `json:"attempt" doc:"starts so far"`
	AttemptsUsed     int32             `json:"attempts_used" doc:"what max_attempts limits"`
	MaxAttempts      int32             `json:"max_attempts"`
	Environment      string            `json:"environment"`
	Kind             string            `json:"kind"`
	WorkflowID       handlers.TypedID  `json:"workflow_id"`
	ParentTaskID     handlers.TypedID  `json:"parent_task_id"`
	ScheduleID       *string           `json:"schedule_id"`
	RunID            *string           `json:"run_id"`
	RedriveOf        handlers.TypedID  `json:"redrive_of"`
	TraceID          string            `json:"trace_id" doc:"of the traceparent that came with the submit, else made from its workflow's id or its own"`
	Remaining        int32             `json:"remaining_dependencies"`
	BlockedBy        []engine.Block    `json:"blocked_by"`
	CreatedAt        handlers.Time     `json:"created_at"`
	ReadyAt          handlers.Time     `json:"ready_at"`
	StartedAt        handlers.Time     `json:"started_at"`
	FinishedAt       handlers.Time     `json:"finished_at"`
	NextAttemptAt    handlers.Time     `json:"next_attempt_at"`
	HeldUntil        handlers.Time     `json:"held_until"`
	UpdatedAt        handlers.Time     `json:"updated_at"`
	WorkerID         handlers.TypedID  `json:"worker_id"`
	LeaseExpiresAt   handlers.Time     `json:"lease_expires_at"`
	Progress         json.RawMessage   `json:"progress,omitempty" doc:"left out of lists unless ?include=progress"`
	Checkpoint       json.RawMessage   `json:"checkpoint,omitempty" doc:"left out of lists unless ?include=checkpoint"`
	Result           json.RawMessage   `json:"result,omitempty" doc:"left out of lists unless ?include=result"`
	Error            *ErrorView        `json:"error"`
	Cost             CostView          `json:"cost"`
	Deduplicated     bool              `json:"deduplicated,omitempty" doc:"an idempotency_key was held: this is its holder"`
	EstimatedStartAt *handlers.Time    `json:"estimated_start_at,omitempty" doc:"in the answer to a submit: with 202, and with a deadline or an expiry (then null where nothing can be said)"`
}

// ResourcesView is what a task asks of its worker.
type ResourcesView struct {
	CPU      float64 `json:"cpu"`
	MemoryMB int64   `json:"memory_mb"`
	DiskMB   int64   `json:"disk_mb"`
	GPU      int32   `json:"gpu"`
	VRAMMB   int64   `json:"vram_mb"`
	Tokens   *int64  `json:"tokens"`
}

// ModelView says which model was asked for and which was chosen.
type ModelView struct {
	Requested any     `json:"requested" doc:"a name, or what the model must be like that is chosen"`
	Chosen    *string `json:"chosen"`
	Reason    *string `json:"reason"`
	Instead   *string `json:"downgraded_from" doc:"the model that a budget did not cover, so that this one was taken; null: none"`
}

// TimeoutView is a task's timeouts in force.
type TimeoutView struct {
	Soft  *int32 `json:"soft_seconds"`
	Hard  *int32 `json:"hard_seconds"`
	Total *int32 `json:"total_seconds"`
}

// PolicyView is a retry policy in force, with all its fields.
type PolicyView struct {
	MaxAttempts  int32                         `json:"max_attempts"`
	Backoff      string                        `json:"backoff" enum:"exponential,linear,fixed"`
	InitialDelay float64                       `json:"initial_delay_seconds"`
	MaxDelay     float64                       `json:"max_delay_seconds"`
	Jitter       bool                          `json:"jitter"`
	Classes      map[string]models.ClassPolicy `json:"classes" doc:"null: all alike"`
}

// ConcurrencyView is a key and how many may hold it.
type ConcurrencyView struct {
	Key   string `json:"key"`
	Limit int32  `json:"limit"`
}

// EdgeView is one thing a task waits for.
type EdgeView struct {
	Task string `json:"task"`
	On   string `json:"on"`
}

// ErrorView is the last failure.
type ErrorView struct {
	Class   string `json:"class"`
	Message string `json:"message"`
}

// CostView is what a task was thought to cost and what its attempts used.
type CostView struct {
	EstimatedUSD *float64 `json:"estimated_usd"`
	ActualUSD    *float64 `json:"actual_usd"`
	TokensIn     int64    `json:"tokens_in"`
	TokensOut    int64    `json:"tokens_out"`
}

// viewTask shows a row; live is what the brain knows of it, or nil.
func viewTask(row *postgres.TaskRow, environment string, in postgres.Include, live *engine.LiveTask) *TaskView {
	input := ParseInput(row.Input)
	v := &TaskView{
		ID: row.ID.Text(models.TaskPrefix), Type: row.Needs.Type, Lane: row.LaneName, Priority: row.Priority, RunAt: runAt(row, &input),
		Deadline: handlers.Time(row.Deadline), ExpiresInSeconds: handlers.Null(input.ExpiresInSeconds), ExpiresAt: handlers.Time(row.ExpiresAt),
		Resources: viewResources(&row.Needs, row.Tokens), Model: viewModel(row), EstimatedCostUSD: input.EstimatedCostUSD,
		Timeout:     TimeoutView{Soft: handlers.Null(row.SoftSeconds), Hard: handlers.Null(row.HardSeconds), Total: handlers.Null(row.TotalSeconds)},
		RetryPolicy: PolicyView(models.DefaultRetryPolicy()), Permissions: handlers.List(row.Needs.Permissions), Secrets: map[string]string{},
		Concurrency: []ConcurrencyView{}, RateKeys: []string{}, IdempotencyKey: handlers.Null(row.IdemKey),
		WorkerSelector: mapOf(row.Needs.Selector), Labels: mapOf(input.Labels), DependsOn: []EdgeView{}, OnExhausted: "dead_letter",
		Description: handlers.Null(input.Description), Key: handlers.Null(row.Key),
	}
	v.Watermark = handlers.Null(input.Watermark)
	v.Dedupe, v.NeedsApproval, v.RunIf = input.Dedupe, row.Has(models.NeedsApproval), handlers.Null(input.RunIf)
	v.ScheduleID, v.RunID = handlers.Null(input.ScheduleID), handlers.Null(input.RunID)
	if input.RetryPolicy != nil {
		v.RetryPolicy = PolicyView(*input.RetryPolicy)
	}
	if row.EstimateMS > 0 {
		seconds := float64(row.EstimateMS) / 1000
		v.EstimatedSeconds = &seconds
	}
	v.Ordered = row.Has(models.Ordered)
	for need := range row.Keys() {
		if need.Rate() {
			v.RateKeys = append(v.RateKeys, need.Name)
		} else {
			v.Concurrency = append(v.Concurrency, ConcurrencyView{need.Name, need.Limit})
		}
	}
	if row.Has(models.FailWhenSpent) {
		v.OnExhausted = "fail"
	}
	for _, e := range row.DependsOn {
		v.DependsOn = append(v.DependsOn, EdgeView{e.From.Text(models.TaskPrefix), e.On.String()})
	}
	v.Budget = viewTaskBudget(input.Budget)
	v.outcome(row, &input, environment, live)
	v.include(row, in, live)
	return v
}

// outcome fills in what became of the task.
func (v *TaskView) outcome(row *postgres.TaskRow, input *Input, environment string, live *engine.LiveTask) {
	v.State, v.Attempt, v.AttemptsUsed, v.MaxAttempts = row.State.String(), row.Attempt, row.AttemptsUsed, row.MaxAttempts
	v.Environment, v.Kind = environment, row.Kind.String()
	v.WorkflowID = handlers.TypedID{Prefix: models.WorkflowPrefix, ID: row.Workflow}
	v.ParentTaskID = handlers.TypedID{Prefix: models.TaskPrefix, ID: row.Parent}
	v.RedriveOf = handlers.TypedID{Prefix: models.TaskPrefix, ID: row.RedriveOf}
	v.TraceID = traceOf(row.Trace, row.Workflow, row.ID)
	v.Remaining, v.BlockedBy = row.Remaining, blockedBy(&row.Task)
	v.CreatedAt, v.ReadyAt, v.StartedAt = handlers.Time(row.CreatedAt), handlers.Time(row.ReadyAt), handlers.Time(row.StartedAt)
	v.FinishedAt, v.UpdatedAt = handlers.Time(row.FinishedAt), handlers.Time(row.UpdatedAt)
	if row.State == models.RetryWait {
		v.NextAttemptAt = handlers.Time(row.WakeAt)
	}
	v.WorkerID = handlers.TypedID{Prefix: models.WorkerPrefix, ID: row.Worker}
	if row.State.Final() || row.State == models.DeadLetter {
		v.WorkerID.ID = row.LastWorker
	}
	if row.State.Live() {
		v.LeaseExpiresAt = handlers.Time(row.LeaseUntil)
		if live != nil && live.LeaseUntil > 0 {
			v.LeaseExpiresAt = handlers.Time(live.LeaseUntil)
		}
	}
	if live != nil {
		v.HeldUntil = handlers.Time(live.HeldUntil)
	}
	if row.State != models.Succeeded {
		switch {
		case outOfTime(row):
			v.Error = &ErrorView{row.ErrorClass, engine.TotalOver(row.TotalSeconds)}
		case row.Error != nil && (row.ErrorClass == row.Error.Class || unreported[row.ErrorClass] == ""):
			v.Error = &ErrorView{row.Error.Class, row.Error.Message}
		case row.ErrorClass != "":
			v.Error = &ErrorView{row.ErrorClass, unreported[row.ErrorClass]}
		}
	}
	v.Cost = viewCost(row.Usages, estimatedCost(row, input.EstimatedCostUSD))
}

// unreported says what happened where no worker did.
var unreported = map[string]string{
	"worker_lost": "its worker stopped answering while it ran",
	"timeout":     "it ran out of the time it was given",
}

var null = json.RawMessage("null")

func (v *TaskView) include(row *postgres.TaskRow, in postgres.Include, live *engine.LiveTask) {
	pick := func(on bool, value json.RawMessage) json.RawMessage {
		switch {
		case !on:
			return nil
		case len(value) == 0:
			return null
		}
		return value
	}
	progress := row.Progress
	if live != nil && len(live.Progress) > 0 {
		progress = live.Progress
	}
	result := row.Result
	if row.State != models.Succeeded {
		result = nil
	}
	v.Payload, v.Result = pick(in.Payload, row.Payload), pick(in.Result, result)
	v.Progress, v.Checkpoint = pick(in.Progress, progress), pick(in.Checkpoint, row.Checkpoint)
}

// runAt is the moment a task was or is meant for: a delay counts from acceptance, or from the end of the dependencies.
func runAt(row *postgres.TaskRow, in *Input) handlers.Time {
	switch {
	case in.RunAt > 0:
		return handlers.Time(in.RunAt)
	case in.DelaySeconds == 0:
		return 0
	case row.State == models.Scheduled && row.WakeAt > 0:
		return handlers.Time(row.WakeAt)
	case len(row.DependsOn) == 0:
		return handlers.Time(row.CreatedAt.Add(models.Seconds(int(in.DelaySeconds))))
	}
	return handlers.Time(row.ReadyAt)
}

func viewResources(c *models.Class, tokens int64) ResourcesView {
	return ResourcesView{CPU: float64(c.CPUMilli) / 1000, MemoryMB: c.MemoryMB, DiskMB: c.DiskMB, GPU: c.GPU, VRAMMB: c.VRAMMB, Tokens: handlers.Null(tokens)}
}

// viewModel shows what was asked for, and what came of it.
func viewModel(row *postgres.TaskRow) ModelView {
	if choice := row.Choice; choice != nil {
		v := ModelView{Chosen: handlers.Null(choice.Chosen), Reason: &choice.Reason}
		if len(choice.Ranking) > 0 {
			v.Instead = handlers.Null(choice.Ranking[0].Instead)
		}
		if v.Requested = choice.Named; choice.Named == "" {
			v.Requested = viewAsk(choice.Asked)
		}
		return v
	}
	v := ModelView{Chosen: handlers.Null(row.Model)}
	if row.Needs.Model != "" {
		reason := "requested by name"
		v.Requested, v.Chosen, v.Reason = row.Needs.Model, &row.Needs.Model, &reason
	}
	return v
}

// AskView is what a task wants of the model that is chosen for it.
type AskView struct {
	Auto          bool     `json:"auto"`
	QualityTarget *float64 `json:"quality_target"`
	MaxLatencyMS  *int64   `json:"max_latency_ms"`
	Candidates    []string `json:"candidates" doc:"empty: all"`
}

func viewAsk(ask *models.ModelAsk) AskView {
	if ask == nil {
		ask = &models.ModelAsk{}
	}
	return AskView{true, handlers.Null(ask.QualityTarget), handlers.Null(ask.MaxLatencyMS), handlers.List(ask.Candidates)}
}

// estimatedCost is what a task was thought to cost: by its caller's word, else on the model that was chosen.
func estimatedCost(row *postgres.TaskRow, said *float64) *float64 {
	if said != nil || row.Choice == nil || row.Choice.Chosen == "" || len(row.Choice.Ranking) == 0 {
		return said
	}
	usd := dollars(row.Choice.Ranking[0].CostMicro)
	return &usd
}

// usage is what is counted of a reported usage.
type usage struct {
	TokensIn  int64    `json:"tokens_in"`
	TokensOut int64    `json:"tokens_out"`
	CostUSD   *float64 `json:"cost_usd"`
}

func viewCost(usages []json.RawMessage, estimated *float64) CostView {
	v := CostView{EstimatedUSD: estimated}
	for _, text := range usages {
		var u usage
		if json.Unmarshal(text, &u) != nil {
			continue
		}
		v.TokensIn += u.TokensIn
		v.TokensOut += u.TokensOut
		if u.CostUSD != nil {
			sum := *u.CostUSD
			if v.ActualUSD != nil {
				sum += *v.ActualUSD
			}
			sum = math.Round(sum*1e6) / 1e6
			v.ActualUSD = &sum
		}
	}
	return v
}

// blockedBy is what the row alone says of why a task does not run; explain asks the brain.
func blockedBy(t *models.Task) []engine.Block {
	blocks := []engine.Block{}
	switch {
	case t.State == models.Scheduled:
		blocks = append(blocks, engine.Block{Reason: "run_at", Detail: "it starts no earlier than " + handlers.Time(t.WakeAt).String()})
	case t.State == models.Pending && t.Remaining > 0:
		blocks = append(blocks, engine.Block{Reason: "dependencies", Detail: plural(int64(t.Remaining), "task") + " it waits for must end first"})
	case t.State == models.RetryWait:
		blocks = append(blocks, engine.Block{Reason: "run_at", Detail: "it is tried again at " + handlers.Time(t.WakeAt).String()})
	case t.State == models.Ready && t.Gate == "approval":
		blocks = append(blocks, engine.Block{Reason: "approval", Detail: "it waits for somebody to approve it"})
	case t.State == models.Ready && t.Gate == models.ModelGate:
		blocks = append(blocks, engine.Block{Reason: "model_unavailable", Detail: "no model fits what it wants; explain says why"})
	case t.State == models.Ready && strings.HasPrefix(t.Gate, "workflow:"):
		blocks = append(blocks, engine.Block{Reason: "workflow_stopped", Detail: "its workflow lets nothing start; explain says why"})
	case t.State == models.Ready && t.LimitKey != "" && t.Gate == "key:"+t.LimitKey:
		blocks = append(blocks, engine.Block{Reason: "concurrency_key", Detail: "the key " + t.LimitKey + " is held by as many tasks as it admits"})
	case t.State == models.Ready && strings.HasPrefix(t.Gate, "keys:"):
		blocks = append(blocks, engine.Block{Reason: "concurrency_key", Detail: "one of its keys does not let it start; explain says which"})
	case t.State == models.Ready && models.IsBudgetGate(t.Gate):
		reason := "tenant_budget"
		if g, ok := models.ParseBudgetGate(t.Gate); ok && g.Workflow {
			reason = "workflow_budget"
		}
		blocks = append(blocks, engine.Block{Reason: reason, Detail: "what is left of a budget does not cover it; explain says which"})
	case t.State == models.Ready && strings.HasPrefix(t.Gate, "rate:"):
		blocks = append(blocks, engine.Block{Reason: "rate_limit", Detail: "a rate of its keys is used up; explain says until when"})
	}
	return blocks
}

// mapOf gives {} instead of null.
func mapOf(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
