package ui

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"nightshift/models"
)

// What the editor's fields are read as.
var (
	scheduleTexts   = []string{"name", "kind", "timezone", "description", "owner", "runbook_url"}
	scheduleChoices = []string{"dst_gap", "dst_overlap", "misfire_policy", "overlap_policy"}
	scheduleNumbers = []string{"misfire_grace_seconds", "catch_up_limit", "expires_in_seconds", "jitter_seconds", "max_failures_in_a_row", "partitions", "flexible_seconds", "complete_within_seconds"}
	eventFields     = []string{"name", "debounce_seconds", "max_wait_seconds", "max_events"} // each behind event_
	drainFields     = []string{"queue", "max_items", "batch_size"}                           // and drain_
	scheduleTimes   = []string{"start_at", "end_at"}
	taskFields      = []string{"task_type", "task_lane", "task_priority", "task_payload", "task_more"}
	scheduleFields  = slices.Concat(scheduleTexts, scheduleChoices, scheduleNumbers, scheduleTimes, taskFields, []string{
		"expression", "every_seconds", "interval_from", "run_at", "calendar_exclude", "enabled", "work", "workflow",
	}, behind("event_", eventFields), behind("drain_", drainFields))
)

// behind puts a word before names.
func behind(word string, names []string) (out []string) {
	for _, name := range names {
		out = append(out, word+name)
	}
	return out
}

// part is a member of the body that has members of its own: the first is a name, the others numbers. What is empty is left out.
func part(values map[string]string, word string, names []string) fields {
	out := fields{names[0]: strings.TrimSpace(values[word+names[0]])}
	for _, name := range names[1:] {
		if text := strings.TrimSpace(values[word+name]); text != "" {
			out[name] = numberOr(text)
		}
	}
	return out
}

// moment is what a field for a time says on the clock of a zone, as the API reads it. What is no time stays as it was
// typed, for the API to refuse under its name.
func moment(text, zone string) string {
	text = strings.TrimSpace(text)
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		location = time.UTC
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, location); err == nil {
			return at.UTC().Format(time.RFC3339)
		}
	}
	return text
}

// localTime is a moment as a field for a time shows it on the clock of a zone.
func localTime(at time.Time, zone string) string {
	if at.IsZero() {
		return ""
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		location = time.UTC
	}
	return at.In(location).Format("2006-01-02T15:04:05")
}

// typed are the fields of the editor as they were sent.
func typed(value func(string, ...string) string) map[string]string {
	out := map[string]string{}
	for _, name := range scheduleFields {
		out[name] = value(name)
	}
	return out
}

// bodyOf is the editor's form as a body of the API: a field left empty is null, which means its default.
func bodyOf(values map[string]string) (fields, error) {
	body := fields{}
	put := func(name, text string, as any) {
		if body[name] = as; strings.TrimSpace(text) == "" {
			body[name] = nil
		}
	}
	for _, name := range slices.Concat(scheduleTexts, scheduleChoices) {
		put(name, values[name], strings.TrimSpace(values[name]))
	}
	for _, name := range scheduleNumbers {
		put(name, values[name], numberOr(strings.TrimSpace(values[name])))
	}
	zone := strings.TrimSpace(values["timezone"])
	for _, name := range scheduleTimes {
		put(name, values[name], moment(values[name], zone))
	}
	dates := strings.FieldsFunc(values["calendar_exclude"], func(r rune) bool { return strings.ContainsRune(" ,;\n\r\t", r) })
	put("calendar_exclude", values["calendar_exclude"], dates)
	body["expression"], body["every_seconds"], body["interval_from"], body["run_at"], body["event"], body["drain"] = nil, nil, nil, nil, nil, nil
	switch values["kind"] {
	case "cron":
		put("expression", values["expression"], strings.TrimSpace(values["expression"]))
	case "interval":
		put("every_seconds", values["every_seconds"], numberOr(strings.TrimSpace(values["every_seconds"])))
		put("interval_from", values["interval_from"], values["interval_from"])
	case "once":
		put("run_at", values["run_at"], moment(values["run_at"], zone))
	case "event":
		body["event"] = part(values, "event_", eventFields)
	case "drain":
		body["drain"] = part(values, "drain_", drainFields)
	}
	body["task"], body["workflow"] = nil, nil
	if values["work"] == "workflow" {
		flow, err := objectOf("workflow", values["workflow"])
		body["workflow"] = flow
		return body, err
	}
	task, err := taskOf(values)
	body["task"] = task
	return body, err
}

// objectOf is a field that holds a JSON object, as it was written.
func objectOf(name, text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	var members map[string]json.RawMessage
	switch err := json.Unmarshal([]byte(text), &members); {
	case text == "":
		return nil, models.Invalid("body."+name, "is needed: a name and tasks")
	case err != nil:
		return nil, models.Invalid("body."+name, "this is no JSON object: %s", err)
	}
	return json.RawMessage(text), nil
}

// taskOf is the template of a task: its type, its payload and whatever else was written as JSON.
func taskOf(values map[string]string) (fields, error) {
	task := fields{}
	if more := strings.TrimSpace(values["task_more"]); more != "" {
		if err := json.Unmarshal([]byte(more), &task); err != nil {
			return nil, models.Invalid("body.task_more", "this is no JSON object: %s", err)
		}
	}
	task["type"] = strings.TrimSpace(values["task_type"])
	if payload := strings.TrimSpace(values["task_payload"]); payload != "" {
		if !json.Valid([]byte(payload)) {
			var any json.RawMessage
			return nil, models.Invalid("body.task_payload", "this is no JSON: %s", json.Unmarshal([]byte(payload), &any))
		}
		task["payload"] = json.RawMessage(payload)
	}
	if lane := strings.TrimSpace(values["task_lane"]); lane != "" {
		task["lane"] = lane
	}
	if priority := strings.TrimSpace(values["task_priority"]); priority != "" {
		task["priority"] = numberOr(priority)
	}
	return task, nil
}

// values are the fields of the editor for a schedule that stands.
func (s *schedule) values() map[string]string {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	values := map[string]string{
		"name": s.Name, "kind": s.Kind, "expression": s.Expression, "timezone": s.Timezone, "dst_gap": s.Gap, "dst_overlap": s.Fold,
		"every_seconds": number(s.EverySeconds), "interval_from": s.IntervalFrom, "run_at": localTime(s.RunAt, s.Timezone),
		"misfire_policy": s.Misfire, "misfire_grace_seconds": strconv.FormatInt(s.Grace, 10), "catch_up_limit": strconv.FormatInt(s.CatchUp, 10),
		"overlap_policy": s.Overlap, "expires_in_seconds": number(s.ExpiresIn), "jitter_seconds": number(s.Jitter), "max_failures_in_a_row": number(s.MostFailures),
		"start_at": localTime(s.StartAt, s.Timezone), "end_at": localTime(s.EndAt, s.Timezone), "calendar_exclude": strings.Join(s.Exclude, "\n"),
		"description": s.Description, "owner": s.Owner, "runbook_url": s.RunbookURL, "enabled": "yes", "work": "task",
		"partitions": number(s.Partitions), "flexible_seconds": number(s.Flexible), "complete_within_seconds": number(s.Within),
	}
	decimal := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	if e := s.Event; e != nil {
		values["event_name"], values["event_debounce_seconds"], values["event_max_events"] = e.Name, decimal(e.Debounce), number(int64(e.Most))
		if e.MaxWait > 0 {
			values["event_max_wait_seconds"] = decimal(e.MaxWait)
		}
	}
	if d := s.Drain; d != nil {
		values["drain_queue"], values["drain_max_items"], values["drain_batch_size"] = d.Queue, number(int64(d.MaxItems)), number(int64(d.BatchSize))
	}
	if len(s.Workflow) > 0 && string(s.Workflow) != "null" {
		values["work"], values["workflow"] = "workflow", pretty(s.Workflow)
	}
	var task map[string]json.RawMessage
	if json.Unmarshal(s.Task, &task) != nil {
		return values
	}
	text := func(name string) string {
		var out any
		_ = json.Unmarshal(task[name], &out) // the API wrote it
		if known, is := out.(string); is {
			return known
		}
		return string(task[name])
	}
	values["task_type"], values["task_lane"], values["task_priority"], values["task_payload"] = text("type"), text("lane"), text("priority"), pretty(task["payload"])
	for _, name := range []string{"type", "lane", "priority", "payload"} {
		delete(task, name)
	}
	if len(task) > 0 {
		more, err := json.Marshal(task)
		if err == nil {
			values["task_more"] = pretty(more)
		}
	}
	return values
}

// scheduleFaults are the sentences of a refusal by the editor's fields.
func scheduleFaults(err error) map[string]string {
	var known *models.Error
	if errors.As(err, &known) {
		for i, f := range known.Fields {
			for _, word := range []string{"event", "drain"} {
				if rest, in := strings.CutPrefix(f.Location, "body."+word+"."); in {
					known.Fields[i].Location = "body." + word + "_" + rest
				}
			}
			switch f.Location {
			case "body.event":
				known.Fields[i].Location = "body.event_name"
			case "body.drain":
				known.Fields[i].Location = "body.drain_queue"
			case "body.task":
				known.Fields[i].Location = "body.task_type"
			}
			rest, inTask := strings.CutPrefix(f.Location, "body.task.")
			if !inTask {
				continue
			}
			name, deeper := splitPlace(rest)
			switch name {
			case "type", "lane", "priority", "payload":
				known.Fields[i].Location = "body.task_" + name
			default:
				known.Fields[i].Location, deeper = "body.task_more", rest
			}
			if deeper != "" {
				known.Fields[i].Message = deeper + ": " + f.Message
			}
		}
	}
	return faults(err)
}

// readOnly are the members of a schedule that the API answers and does not take.
var readOnly = []string{
	"id", "environment", "enabled", "paused_by", "pause_reason", "next_run_at", "last_run", "last_success_at", "consecutive_failures",
	"p50_seconds", "p95_seconds", "effective_every_seconds", "created_at", "updated_at", "version",
}

// wholeJSON is a schedule as it would be sent: what it says of itself, without what is null.
func wholeJSON(body []byte) (string, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return "", models.Errorf(models.Internal, "a schedule can't be read: %w", err)
	}
	for _, name := range readOnly {
		delete(all, name)
	}
	for name, value := range all { // any order: each on its own
		if string(value) == "null" {
			delete(all, name)
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	return string(text), err
}
