package workertest

import (
	"net/http"
	"time"

	"nightshift/workers/protocol"
)

func (s *Server) heartbeat(w http.ResponseWriter, r *http.Request, who *worker) {
	var in protocol.HeartbeatRequest
	if !read(w, r, &in) {
		return
	}
	out := protocol.HeartbeatAnswer{Leases: []protocol.LeaseState{}, Signals: []string{}}
	listed := map[string]bool{}
	for _, row := range in.Leases {
		listed[row.LeaseToken] = true
		out.Leases = append(out.Leases, s.beat(who, row))
	}
	s.releaseMissing(who, listed)
	if s.drain {
		out.Signals = append(out.Signals, protocol.SignalDrain)
	}
	answer(w, http.StatusOK, out)
}

func (s *Server) beat(who *worker, row protocol.HeartbeatLease) protocol.LeaseState {
	state := protocol.LeaseState{LeaseToken: row.LeaseToken, State: protocol.LeaseLost, Signals: []protocol.Signal{}}
	t := s.leases[row.LeaseToken]
	if t == nil || t.worker != who.id {
		return state
	}
	t.missing = time.Time{}
	t.Expires = time.Now().Add(time.Duration(who.leaseSeconds) * time.Second)
	if row.Progress != nil {
		t.Progress = row.Progress
	}
	if row.Checkpoint != nil {
		t.Checkpoint = row.Checkpoint
	}
	at := protocol.At(t.Expires)
	state.State, state.LeaseExpiresAt = protocol.LeaseOK, &at
	state.Signals = append(state.Signals, t.signals...)
	t.signals = nil
	return state
}

// releaseMissing gives back what two beats did not list.
func (s *Server) releaseMissing(who *worker, listed map[string]bool) {
	for token, t := range s.leases {
		if t.worker != who.id || listed[token] || time.Since(t.granted) < 2*time.Second {
			continue
		}
		if t.missing.IsZero() {
			t.missing = time.Now()
		} else if time.Since(t.missing) >= time.Duration(who.leaseSeconds)*time.Second/6 {
			s.unlease(t, "ready")
		}
	}
}

func (s *Server) results(w http.ResponseWriter, r *http.Request, who *worker) {
	var in protocol.ResultsRequest
	if !read(w, r, &in) {
		return
	}
	for _, result := range in.Results {
		if status := s.refuse[string(result.Result)]; status != 0 {
			refuse(w, status, "validation_failed")
			return
		}
	}
	out := protocol.ResultsAnswer{Results: []protocol.ResultAnswer{}}
	for _, result := range in.Results {
		out.Results = append(out.Results, s.settle(who, result))
	}
	answer(w, http.StatusOK, out)
}

func (s *Server) settle(who *worker, result protocol.Result) protocol.ResultAnswer {
	row := protocol.ResultAnswer{LeaseToken: result.LeaseToken, Accepted: true}
	if state, before := s.settled[result.LeaseToken]; before {
		row.State = &state
		return row
	}
	t := s.leases[result.LeaseToken]
	if t == nil || t.worker != who.id {
		code := protocol.CodeLeaseLost
		row.Accepted, row.Code, row.UsageRecorded = false, &code, true
		if known := s.issued[result.LeaseToken]; known != nil {
			known.Refused++
		}
		s.changed.Broadcast()
		return row
	}
	state := map[string]string{
		protocol.StatusSucceeded: "succeeded", protocol.StatusFailed: "dead_letter", protocol.StatusCancelled: "cancelled",
		protocol.StatusReleased: "ready", protocol.StatusSuspended: "pending",
	}[result.Status]
	t.Outcomes = append(t.Outcomes, result)
	if result.Checkpoint != nil {
		t.Checkpoint = result.Checkpoint
	}
	s.settled[result.LeaseToken] = state
	s.unlease(t, state)
	row.State = &state
	return row
}

// single answers the forms that carry a lease in their header.
func (s *Server) single(w http.ResponseWriter, r *http.Request, _ *worker) {
	t := s.leases[r.Header.Get(protocol.HeaderLease)]
	if t == nil || t.ID != r.PathValue("id") {
		refuse(w, http.StatusConflict, protocol.CodeLeaseLost)
		return
	}
	switch r.PathValue("verb") {
	case "checkpoint":
		var in protocol.TaskCheckpoint
		if !read(w, r, &in) {
			return
		}
		t.Checkpoint = in.Checkpoint
	case "logs":
		var in protocol.LogsRequest
		if !read(w, r, &in) {
			return
		}
		for _, line := range in.Lines {
			t.Logs = append(t.Logs, line.Level+" "+line.Message)
		}
	case "spans":
		var in protocol.SpansRequest
		if !read(w, r, &in) {
			return
		}
		t.Spans = append(t.Spans, in.Spans...)
	case "children":
		s.children(w, r, t)
		return
	default:
		refuse(w, http.StatusNotFound, protocol.CodeNotFound)
		return
	}
	s.changed.Broadcast()
	answer(w, http.StatusOK, map[string]string{"state": t.State})
}

func (s *Server) children(w http.ResponseWriter, r *http.Request, t *Task) {
	var in protocol.ChildrenRequest
	if !read(w, r, &in) {
		return
	}
	out, status := protocol.ChildrenAnswer{Data: []protocol.ChildAnswer{}}, http.StatusOK
	for _, child := range in.Tasks {
		known := false
		for _, c := range t.Children {
			known = known || c.Key == child.Key
		}
		if !known {
			t.Children = append(t.Children, child)
			status = http.StatusCreated
		}
		out.Data = append(out.Data, protocol.ChildAnswer{Key: child.Key, ID: t.ID + "_" + child.Key, State: "ready"})
	}
	answer(w, status, out)
}
