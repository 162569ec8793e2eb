package api

import "nightshift/handlers"

// FlowSubmission describes the body of a workflow; it is read as it arrives, not through this type.
type FlowSubmission struct {
	Name        string            `json:"name" required:"true"`
	Tasks       []FlowTask        `json:"tasks" required:"true" doc:"at most 100,000"`
	Priority    int               `json:"priority" minimum:"0" maximum:"100" doc:"of tasks that name none"`
	OnFailure   string            `json:"on_failure" enum:"continue,stop" doc:"stop: after a failure what has not started waits for a retry, rerun or cancel"`
	Budget      BudgetInput       `json:"budget"`
	FinishFirst bool              `json:"finish_first" doc:"its tasks, those added later too, go before those of workflows that came after it, whatever their critical paths"`
	Labels      map[string]string `json:"labels"`
	Lane        string            `json:"lane" doc:"of tasks that name none"`
}

// FlowTask is one task of a workflow: its key and the fields of a task.
type FlowTask struct {
	TaskInput
	Key       string `json:"key" required:"true" doc:"up to 255 bytes, its own in the workflow"`
	DependsOn []any  `json:"depends_on" doc:"keys, or {key, on} or {task, on}; at most 1,000"`
}

var (
	docFlowSubmit = handlers.Doc{
		Tag: "workflows", Summary: "Submit a workflow", Body: FlowSubmission{},
		Query: append([]handlers.Param{{Name: "return", Type: "string", Enum: []string{"minimal"}, About: "minimal leaves the ids of the tasks out"}}, dryParam...),
		Once:  true, Detail: "Tasks take every field of POST /v1/tasks but idempotency_key.",
		Replies: map[int]any{200: FlowDryView{}, 201: FlowView{}},
	}
	docFlows = handlers.Doc{
		Tag: "workflows", Summary: "List workflows",
		Query: handlers.ListParams(handlers.Param{Name: "state", Type: "string", Repeat: true, Enum: []string{"running", "succeeded", "failed", "cancelled", "paused"}},
			handlers.Param{Name: "created_after", Type: "string"}, handlers.Param{Name: "created_before", Type: "string"},
			handlers.Param{Name: "schedule_id", Type: "string", Repeat: true, About: "whose runs made them, and what was rerun of those"}),
		Replies: map[int]any{200: handlers.Page[FlowView]{}},
	}
	docFlow       = handlers.Doc{Tag: "workflows", Summary: "Read a workflow", Replies: map[int]any{200: FlowView{}}}
	docFlowEvents = handlers.Doc{
		Tag: "workflows", Summary: "What happens to a workflow, from its beginning, as server-sent events", ContentType: "text/event-stream",
		Query:   []handlers.Param{{Name: "after", Type: "string", About: "the id of an event, batch.index"}},
		Headers: []handlers.Param{{Name: "Last-Event-ID", Type: "string", About: "resumes after this event"}},
		Replies: map[int]any{200: handlers.Schema{"type": "string"}},
	}
	docFlowEdit   = handlers.Doc{Tag: "workflows", Summary: "Raise a workflow's budget, change its priority or labels", Body: FlowEditInput{}, Replies: map[int]any{200: FlowView{}}}
	docFlowPause  = handlers.Doc{Tag: "workflows", Summary: "Start nothing more of a workflow", Body: reason{}, BodyOptional: true, Replies: map[int]any{200: FlowView{}}}
	docFlowResume = handlers.Doc{Tag: "workflows", Summary: "Let a paused workflow go on", Body: reason{}, BodyOptional: true, Replies: map[int]any{200: FlowView{}}}
	docFlowRetry  = handlers.Doc{Tag: "workflows", Summary: "Give a workflow's dead letters another life", Body: reason{}, BodyOptional: true, Replies: map[int]any{200: FlowView{}, 202: FlowView{}}, Detail: "The answer shows the workflow after it; 202: of more than 1,000 the rest follows."}
	docFlowRerun  = handlers.Doc{
		Tag: "workflows", Summary: "Run a task and all behind it again, as a new workflow", Body: RerunInput{}, Once: true,
		Detail: "What lies before is handed over as it ended.", Query: dryParam, Replies: map[int]any{200: FlowDryView{}, 201: FlowView{}},
	}
	docFlowGrow = handlers.Doc{
		Tag: "workflows", Summary: "Add tasks to a workflow that runs", Body: GrowInput{}, Once: true,
		Query:  append([]handlers.Param{{Name: "return", Type: "string", Enum: []string{"minimal"}, About: "minimal leaves the ids of the tasks out"}}, dryParam...),
		Detail: "All of them or none. The answer's tasks are those that were added.", Replies: map[int]any{200: FlowDryView{}, 201: FlowView{}},
	}
	docFlowSkip = handlers.Doc{
		Tag: "workflows", Summary: "Pass a task over", Body: reason{}, BodyOptional: true, Replies: map[int]any{200: TaskView{}},
		Detail: "Whoever waits for it goes on as if it had succeeded, with the result null.",
	}
	docGraph      = handlers.Doc{Tag: "workflows", Summary: "Read a workflow's graph", Replies: map[int]any{200: GraphView{}}}
	docFlowCancel = handlers.Doc{Tag: "workflows", Summary: "Cancel a workflow", Body: reason{}, BodyOptional: true, Replies: map[int]any{200: FlowView{}, 202: FlowView{}}}
)
