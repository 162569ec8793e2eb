package api

import "nightshift/handlers"

// BulkInput describes the body of a redrive or discard of many.
type BulkInput struct {
	TaskIDs      []string       `json:"task_ids" doc:"up to 1,000; or fingerprint, or filter"`
	Filter       map[string]any `json:"filter" doc:"names of the task list's filters, each a value or a list"`
	PayloadPatch any            `json:"payload_patch" doc:"merged into each payload (RFC 7396)"`
	Rate         float64        `json:"rate_per_second"`
	Sample       int            `json:"sample" doc:"only so many of them, the oldest"`
	Fingerprint  string         `json:"fingerprint"`
	Reason       string         `json:"reason" doc:"needed to discard"`
	DryRun       bool           `json:"dry_run" doc:"true: only count"`
}

// ActionInput describes the body of a bulk action.
type ActionInput struct {
	BulkInput
	Action   string `json:"action" required:"true" enum:"cancel,retry,discard,reprioritise,move"`
	Priority int    `json:"priority" minimum:"0" maximum:"100" doc:"for reprioritise"`
	Lane     string `json:"lane" doc:"for move"`
}

func docSteerBulk(verb string) handlers.Doc {
	return handlers.Doc{Tag: "dead letters", Summary: verb + " a bulk action", Body: reason{}, BodyOptional: true, Replies: map[int]any{200: BulkView{}}}
}

var (
	docDeadGroups = handlers.Doc{
		Tag: "dead letters", Summary: "List dead letters in groups that died of the same thing",
		Query: handlers.ListParams(handlers.Param{Name: "type", Type: "string", Repeat: true}), Replies: map[int]any{200: handlers.Page[DeadGroupView]{}},
	}
	docDeadTasks = handlers.Doc{
		Tag: "dead letters", Summary: "List dead letters with their evidence",
		Query:   handlers.ListParams(append([]handlers.Param{{Name: "fingerprint", Type: "string", Repeat: true}}, filterParams[1:]...)...),
		Replies: map[int]any{200: handlers.Page[DeadView]{}},
	}
	docRedrive     = handlers.Doc{Tag: "dead letters", Summary: "Give dead letters another life", Body: BulkInput{}, Query: dryParam, Once: true, Replies: map[int]any{200: MatchedView{}, 202: BulkView{}}}
	docDiscardAll  = handlers.Doc{Tag: "dead letters", Summary: "Give dead letters up", Body: BulkInput{}, Query: dryParam, Once: true, Replies: map[int]any{200: MatchedView{}, 202: BulkView{}}}
	docBulkActions = handlers.Doc{Tag: "dead letters", Summary: "Do one thing to all tasks of a filter", Body: ActionInput{}, Query: dryParam, Once: true, Replies: map[int]any{200: MatchedView{}, 202: BulkView{}}}
	docBulkAction  = handlers.Doc{Tag: "dead letters", Summary: "Read a bulk action", Replies: map[int]any{200: BulkView{}}}
)
