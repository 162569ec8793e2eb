package worker

import (
	"bytes"
	"encoding/json"
	"strconv"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// A claim's answer is written by hand: it carries every payload there is, and payloads are JSON already.

func appendClaim(b []byte, claimed *engine.Claimed, briefs map[models.TaskRef]*postgres.Brief) []byte {
	leases, size := claimed.Leases, 64
	for _, brief := range briefs {
		size += 1200 + len(brief.Payload) + len(brief.Checkpoint)
	}
	b = append(make([]byte, 0, size+len(b)), b...)
	b = append(b, `{"tasks":[`...)
	written := 0
	for i := range leases {
		row := &leases[i].Row
		brief := briefs[models.TaskRef{Env: row.Env, ID: row.ID}]
		if brief == nil {
			continue // its spec is gone: its worker won't list it, and so it goes back
		}
		if written++; written > 1 {
			b = append(b, ',')
		}
		b = appendLease(b, &leases[i], brief)
	}
	b = append(b, `],"signals":[`...)
	for i := range claimed.Signals {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendSignal(b, &claimed.Signals[i])
	}
	return append(b, `]}`...)
}

func appendSignal(b []byte, s *engine.ToldSignal) []byte {
	b = append(b, `{"lease_token":"`...)
	b = append(b, models.WireToken(s.Task, s.Token)...)
	b = append(b, `","signal":`...)
	if s.Word != "" {
		b = appendText(b, s.Word)
		return append(b, '}')
	}
	b = append(b, `{"name":`...)
	b = appendText(b, s.Name)
	b = append(b, `,"data":`...)
	b = appendRaw(b, s.Data)
	return append(b, `}}`...)
}

func appendLease(b []byte, lease *engine.Lease, brief *postgres.Brief) []byte {
	row := &lease.Row
	id := row.ID.Text(models.TaskPrefix)
	b = append(b, `{"task_id":"`...)
	b = append(b, id...)
	b = append(b, `","attempt_id":"`...)
	b = append(b, row.AttemptID.Text(models.AttemptPrefix)...)
	b = append(b, `","attempt":`...)
	b = strconv.AppendInt(b, int64(row.Attempt), 10)
	b = append(b, `,"lease_token":"`...)
	b = append(b, models.WireToken(models.TaskRef{Env: row.Env, ID: row.ID}, row.Token)...)
	b = append(b, `","lease_expires_at":"`...)
	b = append(b, handlers.Time(row.LeaseUntil).String()...)
	b = append(b, `","type":`...)
	b = appendText(b, lease.Type)
	b = append(b, `,"payload":`...)
	b = appendRaw(b, brief.Payload)
	b = append(b, `,"model":`...)
	b = appendTextOrNull(b, lease.Model)
	b = append(b, `,"gpus":[`...)
	for i, card := range lease.GPUs {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(card), 10)
	}
	b = append(b, `],"timeout":{"soft_seconds":`...)
	b = appendSeconds(b, row.SoftSeconds)
	b = append(b, `,"hard_seconds":`...)
	b = appendSeconds(b, row.HardSeconds)
	b = append(b, `,"total_seconds":`...)
	b = appendSeconds(b, row.TotalSeconds)
	b = append(b, `},"deadline":`...)
	b = appendMoment(b, row.Deadline)
	b = append(b, `,"traceparent":`...)
	b = appendTextOrNull(b, brief.Trace)
	b = append(b, `,"permissions":[`...)
	for i, name := range lease.Permissions {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, name)
	}
	b = append(b, `],"secrets":{},"checkpoint":`...)
	b = appendRaw(b, brief.Checkpoint)
	b = append(b, `,"watermark":`...)
	b = appendMark(b, row, brief)
	b = append(b, ',')
	b = appendRelatives(b, id, brief)
	b = append(b, `,"events":`...)
	b = appendEvents(b, brief.Events)
	b = append(b, `,"items":`...)
	b = appendRaw(b, brief.Items)
	b = append(b, ',')
	b = appendRun(b, brief.Input)
	b = append(b, `,"verify":`...)
	b = strconv.AppendBool(b, row.ErrorClass == "outcome_unknown") // what the last attempt did is to be found out, not done again
	b = append(b, `,"idempotency_key":"`...)
	if !row.Workflow.IsZero() {
		b = append(b, row.Workflow.Text(models.WorkflowPrefix)...)
		b = append(b, ':')
	}
	b = append(b, id...)
	b = append(b, `","labels":`...)
	b = appendLabels(b, brief.Input)
	return append(b, '}')
}

// appendRelatives writes what the task depends on, or where to read it when it is much, and its children.
func appendRelatives(b []byte, id string, brief *postgres.Brief) []byte {
	b = append(b, `"dependencies":[`...)
	for i := range brief.Dependencies {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendDependency(b, &brief.Dependencies[i])
	}
	b = append(b, `],"dependencies_url":`...)
	if brief.Many {
		b = append(b, `"/v1/tasks/`...)
		b = append(b, id...)
		b = append(b, `/dependencies"`...)
	} else {
		b = append(b, `null`...)
	}
	b = append(b, `,"children":[`...)
	for i := range brief.Children {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendChild(b, &brief.Children[i])
	}
	return append(b, ']')
}

// appendMoment writes a time, or null for none.
func appendMoment(b []byte, at models.Instant) []byte {
	if at == 0 {
		return append(b, `null`...)
	}
	b = append(b, '"')
	b = append(b, handlers.Time(at).String()...)
	return append(b, '"')
}

func appendDependency(b []byte, d *postgres.Dependency) []byte {
	b = append(b, `{"key":`...)
	b = appendTextOrNull(b, d.Key)
	b = append(b, `,"task_id":"`...)
	b = append(b, d.Task.Text(models.TaskPrefix)...)
	b = append(b, `","state":"`...)
	b = append(b, d.State.String()...)
	b = append(b, `","result":`...)
	b = appendRaw(b, d.Result)
	return append(b, '}')
}

func appendChild(b []byte, d *postgres.Dependency) []byte {
	b = append(b, `{"key":`...)
	b = appendText(b, d.Key)
	b = append(b, `,"task_id":"`...)
	b = append(b, d.Task.Text(models.TaskPrefix)...)
	b = append(b, `","state":"`...)
	b = append(b, d.State.String()...)
	b = append(b, `","result":`...)
	b = appendRaw(b, d.Result)
	return append(b, '}')
}

// appendMark writes the watermark of a task that names one; version 0 says that nobody has set it yet.
func appendMark(b []byte, row *models.Task, brief *postgres.Brief) []byte {
	if engine.MarkOf(row) == "" {
		return append(b, `null`...)
	}
	b = append(b, `{"value":`...)
	b = appendRaw(b, brief.Watermark.Value)
	b = append(b, `,"version":`...)
	b = strconv.AppendInt(b, brief.Watermark.Version, 10)
	return append(b, '}')
}

// appendLabels takes the labels out of what was kept of a task's input.
func appendLabels(b []byte, input json.RawMessage) []byte {
	var kept struct {
		Labels json.RawMessage `json:"labels"`
	}
	if len(input) > 2 && json.Unmarshal(input, &kept) == nil && len(kept.Labels) > 0 {
		return append(b, kept.Labels...)
	}
	return append(b, `{}`...)
}

// appendRun writes which run of a schedule made the task, and its share of a partitioned one.
func appendRun(b []byte, input json.RawMessage) []byte {
	var kept struct {
		Schedule     string          `json:"schedule"`
		ScheduledFor models.Instant  `json:"scheduled_for"`
		Partition    json.RawMessage `json:"partition"`
	}
	if !bytes.Contains(input, []byte(`"run_id"`)) || json.Unmarshal(input, &kept) != nil {
		return append(b, `"partition":null,"run":null`...)
	}
	b = append(b, `"partition":`...)
	b = appendRaw(b, kept.Partition)
	b = append(b, `,"run":{"schedule":`...)
	b = appendText(b, kept.Schedule)
	b = append(b, `,"scheduled_for":`...)
	b = appendMoment(b, kept.ScheduledFor)
	return append(b, '}')
}

func appendRaw(b []byte, text json.RawMessage) []byte {
	if len(text) == 0 {
		return append(b, `null`...)
	}
	return append(b, text...)
}

func appendSeconds(b []byte, n int32) []byte {
	if n == 0 {
		return append(b, `null`...)
	}
	return strconv.AppendInt(b, int64(n), 10)
}

func appendTextOrNull(b []byte, text string) []byte {
	if text == "" {
		return append(b, `null`...)
	}
	return appendText(b, text)
}

// appendText writes a JSON string; what needs no escape is copied.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(text)
			if err != nil {
				panic(err) // a string always encodes
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}
