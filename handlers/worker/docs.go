package worker

import (
	"nightshift/handlers"
	"nightshift/workers/protocol"
)

const tag = "workers"

// Some members have two forms on the wire, which no Go type shows.

type registerBody struct {
	protocol.RegisterRequest
	Name       string `json:"name" required:"true"`
	InstanceID string `json:"instance_id" required:"true" doc:"tells a process that comes again from another one"`
	Slots      any    `json:"slots" doc:"a number, or {io: 200, compute: 2}; 1 when left out"`
}

type freeBody struct {
	protocol.Free
	Slots any `json:"slots" doc:"a number, or a number a kind"`
}

type claimBody struct {
	protocol.ClaimRequest
	Free freeBody `json:"free" doc:"left out: what is registered minus what is leased"`
}

type heartbeatBody struct {
	protocol.HeartbeatRequest
	Leases []protocol.HeartbeatLease `json:"leases" required:"true" doc:"every lease that is held"`
	Free   freeBody                  `json:"free"`
}

type claimReply struct {
	protocol.ClaimAnswer
	Signals []signalReply `json:"signals"`
}

type signalReply struct {
	LeaseToken string `json:"lease_token"`
	Signal     any    `json:"signal" doc:"cancel, soft_timeout, checkpoint, or {name, data}"`
}

type leaseReply struct {
	protocol.LeaseState
	Signals []any `json:"signals" doc:"cancel, soft_timeout, checkpoint, or {name, data}"`
}

type heartbeatReply struct {
	protocol.HeartbeatAnswer
	Leases []leaseReply `json:"leases"`
}

var (
	sessionHeader = handlers.Param{Name: protocol.HeaderSession, Type: "string", About: "the session that registering answered"}
	leaseHeader   = handlers.Param{Name: protocol.HeaderLease, Type: "string", About: "the lease_token of the claim"}

	docRegister = handlers.Doc{
		Tag: tag, Summary: "Register a worker", Body: registerBody{}, Replies: map[int]any{201: protocol.RegisterAnswer{}},
		Detail: "The same instance_id again replaces the session; its leases go back unless they are listed.",
	}
	docWorkers = handlers.Doc{
		Tag: tag, Summary: "List workers", Replies: map[int]any{200: handlers.Page[View]{}},
		Query: handlers.ListParams(handlers.Param{Name: "state", Type: "string", Repeat: true, Enum: []string{"active", "draining", "gone"}, About: "those that are not gone when left out"},
			handlers.Param{Name: "pool", Type: "string", Repeat: true}),
	}
	docWorker = handlers.Doc{Tag: tag, Summary: "Read a worker", Replies: map[int]any{200: View{}}}
	docDrain  = handlers.Doc{Tag: tag, Summary: "Give a worker nothing more", Headers: []handlers.Param{sessionHeader, handlers.IfMatchHeader}, Replies: map[int]any{200: View{}}}
	docRemove = handlers.Doc{Tag: tag, Summary: "End a worker; its leases go back at once", Headers: []handlers.Param{sessionHeader}, Replies: map[int]any{204: nil}}
	docClaim  = handlers.Doc{
		Tag: tag, Summary: "Lease tasks", Body: claimBody{}, BodyOptional: true, Headers: []handlers.Param{sessionHeader},
		Detail: "Waits up to wait_seconds for work; the list is empty at the end.", Replies: map[int]any{200: claimReply{}},
	}
	docSchedulerClaim = handlers.Doc{
		Tag: tag, Summary: "Lease tasks, with the worker named in the body", Body: claimBody{}, Headers: []handlers.Param{sessionHeader},
		Replies: map[int]any{200: claimReply{}},
	}
	docHeartbeat = handlers.Doc{
		Tag: tag, Summary: "Renew all leases of a session", Body: heartbeatBody{}, Headers: []handlers.Param{sessionHeader},
		Replies: map[int]any{200: heartbeatReply{}},
	}
	docResults = handlers.Doc{
		Tag: tag, Summary: "Report attempts", Body: protocol.ResultsRequest{}, Headers: []handlers.Param{sessionHeader},
		Replies: map[int]any{200: protocol.ResultsAnswer{}},
	}
	docComplete = handlers.Doc{
		Tag: tag, Summary: "Report one success", Body: protocol.CompleteRequest{}, BodyOptional: true, Headers: []handlers.Param{leaseHeader},
		Replies: map[int]any{200: protocol.ResultAnswer{}},
	}
	docFail = handlers.Doc{
		Tag: tag, Summary: "Report one failure", Body: protocol.FailRequest{}, BodyOptional: true, Headers: []handlers.Param{leaseHeader},
		Replies: map[int]any{200: protocol.ResultAnswer{}},
	}
	docBeat = handlers.Doc{
		Tag: tag, Summary: "Renew one lease", Body: protocol.TaskHeartbeat{}, BodyOptional: true, Headers: []handlers.Param{leaseHeader},
		Replies: map[int]any{200: leaseReply{}},
	}
	docCheckpoint = handlers.Doc{
		Tag: tag, Summary: "Keep a checkpoint for the next attempt", Body: protocol.TaskCheckpoint{}, Headers: []handlers.Param{leaseHeader},
		Replies: map[int]any{200: leaseReply{}},
	}
	docLogs = handlers.Doc{
		Tag: tag, Summary: "Keep lines that an attempt wrote", Body: protocol.LogsRequest{}, Headers: []handlers.Param{leaseHeader}, Replies: map[int]any{204: nil},
	}
	docDependencies = handlers.Doc{
		Tag: tag, Summary: "List what a task waited for, with results, by the ids of what it waited for", Query: handlers.OldestFirstParams(), Headers: []handlers.Param{leaseHeader},
		Replies: map[int]any{200: handlers.Page[protocol.Dependency]{}},
	}
)
