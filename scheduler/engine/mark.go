package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nightshift/models"
)

// Mark sets a watermark. With a Version it must be the one that stands; 0: there must be none.
type Mark struct {
	Env     int32           `json:"env"`
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"`
	Version *int64          `json:"version,omitempty"`
}

// MarkMove is what a success makes of its task's watermark.
type MarkMove struct {
	Value   json.RawMessage `json:"value"`
	Version *int64          `json:"version,omitempty"` // that was read; nil: the last writer wins
}

// MarkKey begins the concurrency key that a task with a watermark holds: one of them runs at a time.
const MarkKey = "watermark:"

// MarkOf is the name of the watermark that a task moves; empty: none.
func MarkOf(row *models.Task) string {
	for need := range row.Keys() {
		if name, ok := strings.CutPrefix(need.Name, MarkKey); ok && !need.Rate() {
			return name
		}
	}
	return ""
}

func (e *Engine) needMark(n *models.Need, row *models.Task) {
	if name := MarkOf(row); name != "" {
		n.Watermarks = append(n.Watermarks, models.IdemRef{Env: row.Env, Key: name})
	}
	if row.Has(models.HasPolicy) {
		n.Policies = append(n.Policies, models.TaskRef{Env: row.Env, ID: row.ID})
	}
}

// marked is a watermark as this batch left it.
func (e *Engine) marked(env int32, name string) models.Watermark {
	for _, m := range e.b.plan.Watermarks {
		if m.Env == env && m.Name == name {
			return m
		}
	}
	if m, ok := e.b.facts.Watermarks[models.IdemRef{Env: env, Key: name}]; ok {
		return m
	}
	return models.Watermark{Env: env, Name: name}
}

// moveMark moves the watermark of a task with its success; it says why not where another version stands.
func (e *Engine) moveMark(row *models.Task, to *MarkMove) *models.TaskError {
	name := MarkOf(row)
	if name == "" {
		return &models.TaskError{Class: "internal", Message: "the task names no watermark that its result could move"}
	}
	m := e.marked(row.Env, name)
	if to.Version != nil && *to.Version != m.Version {
		return &models.TaskError{Class: "state_conflict", Message: fmt.Sprintf("the watermark %s has the version %d, not %d", name, m.Version, *to.Version)}
	}
	e.putMark(m, to.Value)
	return nil
}

func (e *Engine) putMark(m models.Watermark, value json.RawMessage) models.Watermark {
	m.Value, m.Version, m.At = value, m.Version+1, e.now
	e.b.plan.Watermarks = slices.DeleteFunc(e.b.plan.Watermarks, func(o models.Watermark) bool { return o.Env == m.Env && o.Name == m.Name })
	e.b.plan.Watermarks = append(e.b.plan.Watermarks, m)
	return m
}

// mark sets a watermark by hand.
func (e *Engine) mark(cmd *Command) (*Answer, error) {
	x := cmd.Mark
	m := e.marked(x.Env, x.Name)
	if _, done := e.b.facts.Done[cmd.ID]; done {
		return &Answer{Watermark: &m}, nil
	}
	if x.Version != nil && *x.Version != m.Version {
		return nil, models.Errorf(models.Stale, "the watermark %s has the version %d, not %d", x.Name, m.Version, *x.Version)
	}
	m = e.putMark(m, x.Value)
	e.b.plan.Done = append(e.b.plan.Done, cmd.ID)
	e.audit(cmd, x.Env, "watermark.set", x.Name, "")
	return &Answer{Watermark: &m}, nil
}
