package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/templates"
)

// steps are the states that a task was in, told from its row and its attempts: which of them were entered between two
// attempts follows from how the first ended.
func steps(t *models.Task, depends bool, attempts []models.Attempt) []templates.Step {
	var walk walker
	switch {
	case depends:
		walk.enter(models.Pending, t.CreatedAt)
	case t.State == models.Scheduled, t.ReadyAt > t.CreatedAt:
		walk.enter(models.Scheduled, t.CreatedAt)
	}
	if t.ReadyAt > 0 {
		walk.enter(models.Ready, t.ReadyAt)
	}
	for _, a := range attempts {
		walk.start(a.StartedAt)
		switch a.Outcome {
		case models.AttemptFailed, models.AttemptTimedOut:
			if a.N < t.Attempt || t.State.Waiting() {
				walk.enter(models.RetryWait, a.FinishedAt)
			}
		case models.AttemptLost, models.AttemptReleased:
			if a.N < t.Attempt || t.State.Waiting() {
				walk.enter(models.Ready, a.FinishedAt)
			}
		}
	}
	if t.State.Live() {
		walk.start(t.StartedAt)
	}
	walk.arrive(t)
	return walk.steps
}

type walker struct {
	steps []templates.Step
	times map[models.State]int
}

func (w *walker) enter(state models.State, at models.Instant) {
	if w.times == nil {
		w.times = map[models.State]int{}
	}
	w.times[state]++
	w.steps = append(w.steps, templates.Step{State: state.String(), At: at.Time(), Times: w.times[state]})
}

// start enters running, through ready when the task stood elsewhere.
func (w *walker) start(at models.Instant) {
	if !w.standsIn(models.Ready) {
		w.enter(models.Ready, 0)
	}
	w.enter(models.Running, at)
}

func (w *walker) standsIn(state models.State) bool {
	return len(w.steps) > 0 && w.steps[len(w.steps)-1].State == state.String()
}

// arrive enters the state in which the task stands now, if it is not there already.
func (w *walker) arrive(t *models.Task) {
	if w.standsIn(t.State) {
		return
	}
	at := t.UpdatedAt
	switch {
	case t.State.Final():
		at = t.FinishedAt
	case t.State == models.CancelRequested:
		at = t.CancelAt
	}
	w.enter(t.State, at)
}

func rules(row *postgres.TaskRow, in *input) []templates.Pair {
	var out []templates.Pair
	add := func(name, format string, args ...any) {
		out = append(out, templates.Pair{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	if row.SoftSeconds > 0 {
		add("Soft timeout", "%d s", row.SoftSeconds)
	}
	if row.HardSeconds > 0 {
		add("Timeout", "%d s", row.HardSeconds)
	}
	policy := models.DefaultRetryPolicy()
	if in.RetryPolicy != nil {
		policy = *in.RetryPolicy
	}
	add("Retries", "%s, %s to %s s", policy.Backoff, decimal(policy.InitialDelay), decimal(policy.MaxDelay))
	for need := range row.Keys() {
		if need.Rate() {
			add("Rate key", "%s", need.Name)
		} else {
			add("Concurrency key", "%s (at most %d)", need.Name, need.Limit)
		}
	}
	if row.Has(models.Ordered) {
		add("Ordered", "in the order in which tasks of its keys became ready")
	}
	if row.IdemKey != "" {
		add("Idempotency key", "%s", row.IdemKey)
	}
	if row.Trace != "" {
		add("Trace", "%s", row.Trace)
	}
	return out
}

// pretty writes JSON over several lines, for somebody who edits it.
func pretty(text json.RawMessage) string {
	var out bytes.Buffer
	if len(text) == 0 || json.Indent(&out, text, "", "  ") != nil {
		return string(text)
	}
	return out.String()
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// cost adds up what the attempts used; nil when nothing was estimated or used.
func cost(usages []json.RawMessage, estimated *float64) *templates.Cost {
	out := templates.Cost{}
	for _, text := range usages {
		var used struct {
			TokensIn  int     `json:"tokens_in"`
			TokensOut int     `json:"tokens_out"`
			CostUSD   float64 `json:"cost_usd"`
		}
		if json.Unmarshal(text, &used) != nil {
			continue // what a worker reported is shown as it is beside its attempt
		}
		out.TokensIn, out.TokensOut, out.ActualUSD = out.TokensIn+used.TokensIn, out.TokensOut+used.TokensOut, out.ActualUSD+used.CostUSD
	}
	if estimated != nil {
		out.EstimatedUSD = *estimated
	}
	if out == (templates.Cost{}) {
		return nil
	}
	return &out
}

// usagePairs writes what a worker reported of an attempt, name by name.
func usagePairs(text json.RawMessage) []templates.Pair {
	var fields map[string]json.RawMessage
	if len(text) == 0 || json.Unmarshal(text, &fields) != nil {
		return nil
	}
	var out []templates.Pair
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := strings.Trim(string(fields[name]), `"`)
		if value != "null" && value != "0" && value != "" {
			out = append(out, templates.Pair{Name: strings.ReplaceAll(name, "_", " "), Value: value})
		}
	}
	return out
}

const curlMost = 8 << 10 // a larger payload is not worth copying

// curl is the call that submits the same again.
func curl(row *postgres.TaskRow, in *input) string {
	if len(row.Payload) > curlMost {
		return ""
	}
	body, err := json.MarshalIndent(struct {
		Type     string            `json:"type"`
		Lane     string            `json:"lane"`
		Priority int16             `json:"priority"`
		Payload  json.RawMessage   `json:"payload,omitempty"`
		Labels   map[string]string `json:"labels,omitempty"`
	}{row.Needs.Type, row.LaneName, row.Priority, row.Payload, in.Labels}, "", "  ")
	if err != nil {
		return ""
	}
	return "curl -sS $NIGHTSHIFT/v1/tasks -H \"Authorization: Bearer $TOKEN\" \\\n  -H 'Content-Type: application/json' -d '" +
		strings.ReplaceAll(string(body), "'", `'\''`) + "'"
}
