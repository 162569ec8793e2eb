package templates

import (
	"encoding/json"
	"strconv"
	"time"
)

func waits(state string) bool {
	switch state {
	case "scheduled", "pending", "ready", "retry_wait":
		return true
	default:
		return false
	}
}

func retryWord(state string) string {
	if state == "dead_letter" {
		return "Redrive"
	}
	return "Run again"
}

func retryWords(state string) string {
	if state == "dead_letter" {
		return "The same task gets new attempts."
	}
	return "A new task with the same input is made; this one stays as it ended."
}

func cancelWords(state string) string {
	if state == "running" {
		return "The worker is asked to stop. A success that comes first stands."
	}
	return "The task is cancelled at once. Whoever waits for its success is skipped."
}

func position(n int) string {
	if n == 1 {
		return "next of its line"
	}
	return "number " + count(n) + " of its line"
}

var reasonTitles = map[string]string{
	"dependencies":       "Waits for other tasks",
	"dependency_dead":    "Waits for a dead letter",
	"run_at":             "Its time has not come",
	"approval":           "Needs an approval",
	"lane_paused":        "The lane is paused",
	"lane_limit":         "The lane is at its limit",
	"lane_held":          "The lane is held back",
	"lane_closed":        "The lane is closed now",
	"environment_paused": "The environment is paused",
	"tenant_suspended":   "The tenant is suspended",
	"tenant_concurrency": "The tenant is at its limit",
	"tenant_budget":      "The budget is used up",
	"workflow_budget":    "The workflow's budget is used up",
	"workflow_stopped":   "The workflow is stopped",
	"rate_limit":         "A rate limit holds it",
	"concurrency_key":    "Its key is taken",
	"no_capable_worker":  "No worker can run it",
	"workers_busy":       "All fitting workers are busy",
	"reserved_for":       "Room is reserved for another task",
	"permission":         "A permission was withdrawn",
	"model_unavailable":  "No model fits",
	"type_paused":        "The task type is paused",
	"type_limit":         "The task type is at its limit",
}

func reasonTitle(code string) string {
	if title, ok := reasonTitles[code]; ok {
		return title
	}
	return words(code)
}

func reasonIcon(code string) string {
	switch code {
	case "dependencies", "dependency_dead":
		return "git-branch"
	case "run_at", "lane_closed", "rate_limit":
		return "clock"
	case "lane_paused", "environment_paused", "tenant_suspended", "type_paused", "workflow_stopped":
		return "player-pause"
	case "no_capable_worker", "permission", "model_unavailable":
		return "alert-triangle"
	case "concurrency_key":
		return "key"
	case "workers_busy", "reserved_for":
		return "cpu"
	default:
		return "hourglass"
	}
}

// progressPart reads how far a worker says it is: a number between 0 and 1,
// or done of total.
func progressPart(text string) (float64, bool) {
	if part, err := strconv.ParseFloat(text, 64); err == nil {
		return part, part >= 0 && part <= 1
	}
	var fields struct {
		Done  float64 `json:"done"`
		Total float64 `json:"total"`
	}
	if json.Unmarshal([]byte(text), &fields) != nil || fields.Total <= 0 {
		return 0, false
	}
	return fields.Done / fields.Total, true
}

func took(now time.Time, attempt Attempt) string {
	if attempt.FinishedAt.IsZero() {
		return between(attempt.StartedAt, now)
	}
	return between(attempt.StartedAt, attempt.FinishedAt)
}

type namedMoment struct {
	Name string
	At   time.Time
}

// moments are those of the task's times that it has.
func (v TaskView) moments() []namedMoment {
	var out []namedMoment
	for _, entry := range []namedMoment{
		{"Created", v.CreatedAt},
		{"Run at", v.RunAt},
		{"Ready", v.ReadyAt},
		{"Started", v.StartedAt},
		{"Finished", v.FinishedAt},
		{"Next attempt", v.NextAttemptAt},
		{"Lease until", v.LeaseExpiresAt},
		{"Deadline", v.Deadline},
		{"Expires", v.ExpiresAt},
	} {
		if !entry.At.IsZero() {
			out = append(out, entry)
		}
	}
	return out
}

func (v TaskView) hasLineage() bool {
	return v.Workflow.ID != "" || v.Parent.ID != "" || v.RedriveOf.ID != "" ||
		len(v.Dependencies)+len(v.Dependants)+len(v.Children) > 0
}
