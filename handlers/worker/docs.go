package worker

import (
	"nightshift/handlers"
	"nightshift/workers/protocol"
)

const tag = "workers"

var (
	sessionHeader = handlers.Param{Name: protocol.HeaderSession, Type: "string", About: "the session that registering answered"}
	leaseHeader   = handlers.Param{Name: protocol.HeaderLease, Type: "string", About: "the lease_token of the claim"}

	docRegister = handlers.Doc{Tag: tag, Summary: "Register a worker", Body: protocol.RegisterRequest{}, Replies: map[int]any{201: protocol.RegisterAnswer{}},
		Detail: "The same instance_id again replaces the session; its leases go back unless they are listed."}
	docWorkers = handlers.Doc{Tag: tag, Summary: "List workers", Replies: map[int]any{200: handlers.Page[View]{}},
		Query: handlers.ListParams(handlers.Param{Name: "state", Type: "string", Repeat: true, Enum: []string{"active", "draining", "gone"}, About: "those that are not gone when left out"},
			handlers.Param{Name: "pool", Type: "string", Repeat: true})}
	docWorker = handlers.Doc{Tag: tag, Summary: "Read a worker", Replies: map[int]any{200: View{}}}
	docDrain  = handlers.Doc{Tag: tag, Summary: "Give a worker nothing more", Headers: []handlers.Param{sessionHeader}, Replies: map[int]any{200: View{}}}
	docRemove = handlers.Doc{Tag: tag, Summary: "End a worker; its leases go back at once", Headers: []handlers.Param{sessionHeader}, Replies: map[int]any{204: nil}}
	docClaim  = handlers.Doc{Tag: tag, Summary: "Lease tasks", Body: protocol.ClaimRequest{}, BodyOptional: true, Headers: []handlers.Param{sessionHeader},
		Detail: "Waits up to wait_seconds for work; the list is empty at the end.", Replies: map[int]any{200: protocol.ClaimAnswer{}}}
	docSchedulerClaim = handlers.Doc{Tag: tag, Summary: "Lease tasks, with the worker named in the body", Body: protocol.ClaimRequest{}, Headers: []handlers.Param{sessionHeader},
		Replies: map[int]any{200: protocol.ClaimAnswer{}}}
	docHeartbeat = handlers.Doc{Tag: tag, Summary: "Renew all leases of a session", Body: protocol.HeartbeatRequest{}, Headers: []handlers.Param{sessionHeader},
		Replies: map[int]any{200: protocol.HeartbeatAnswer{}}}
	docResults = handlers.Doc{Tag: tag, Summary: "Report attempts", Body: protocol.ResultsRequest{}, Headers: []handlers.Param{sessionHeader},
		Replies: map[int]any{200: protocol.ResultsAnswer{}}}
	docComplete = handlers.Doc{Tag: tag, Summary: "Report one success", Body: protocol.CompleteRequest{}, BodyOptional: true, Headers: []handlers.Param{leaseHeader},
		Replies: map[int]any{200: protocol.ResultAnswer{}}}
	docFail = handlers.Doc{Tag: tag, Summary: "Report one failure", Body: protocol.FailRequest{}, BodyOptional: true, Headers: []handlers.Param{leaseHeader},
		Replies: map[int]any{200: protocol.ResultAnswer{}}}
	docBeat = handlers.Doc{Tag: tag, Summary: "Renew one lease", Body: protocol.TaskHeartbeat{}, BodyOptional: true, Headers: []handlers.Param{leaseHeader},
		Replies: map[int]any{200: protocol.LeaseState{}}}
	docCheckpoint = handlers.Doc{Tag: tag, Summary: "Keep a checkpoint for the next attempt", Body: protocol.TaskCheckpoint{}, Headers: []handlers.Param{leaseHeader},
		Replies: map[int]any{200: protocol.LeaseState{}}}
	docDependencies = handlers.Doc{Tag: tag, Summary: "List what a task waited for, with results", Query: handlers.ListParams(), Headers: []handlers.Param{leaseHeader},
		Replies: map[int]any{200: handlers.Page[protocol.Dependency]{}}}
)
