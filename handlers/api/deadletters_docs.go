package api

import "nightshift/handlers"

// BulkInput describes the body of a redrive or discard of many.
type BulkInput struct {
	TaskIDs     []string `json:"task_ids" doc:"up to 1,000; or fingerprint"`
	Fingerprint string   `json:"fingerprint"`
	Reason      string   `json:"reason" doc:"needed to discard"`
	DryRun      bool     `json:"dry_run" doc:"true: only count"`
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
	docRedrive    = handlers.Doc{Tag: "dead letters", Summary: "Give dead letters another life", Body: BulkInput{}, Once: true, Replies: map[int]any{200: MatchedView{}, 202: BulkView{}}}
	docDiscardAll = handlers.Doc{Tag: "dead letters", Summary: "Give dead letters up", Body: BulkInput{}, Once: true, Replies: map[int]any{200: MatchedView{}, 202: BulkView{}}}
	docBulkAction = handlers.Doc{Tag: "dead letters", Summary: "Read a bulk action", Replies: map[int]any{200: BulkView{}}}
)
