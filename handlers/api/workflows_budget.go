package api

import (
	"encoding/json"
	"math"
	"slices"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// BudgetInput is what a workflow may use up; what is left out has no limit.
type BudgetInput struct {
	Tasks   int32   `json:"max_tasks" minimum:"1"`
	Depth   int32   `json:"max_depth" minimum:"1" doc:"of children; a task of the body has 0"`
	CostUSD float64 `json:"max_cost_usd"`
	Runtime int32   `json:"max_runtime_seconds" minimum:"1" doc:"since it was made"`
	Tokens  int64   `json:"max_tokens" minimum:"1"`
	Retries int64   `json:"max_retries" minimum:"1" doc:"failed attempts that another follows, of all its tasks; a failure beyond them is a dead letter"`
}

// BudgetView says what a workflow may use, has used, and has left.
type BudgetView struct {
	Limit BudgetLimits `json:"limit" doc:"null: no limit"`
	Used  BudgetUsed   `json:"used"`
	Left  BudgetLimits `json:"left" doc:"null: no limit"`
}

// BudgetLimits are amounts of what a budget counts.
type BudgetLimits struct {
	Tasks   *int64   `json:"tasks"`
	Depth   *int64   `json:"depth"`
	CostUSD *float64 `json:"cost_usd"`
	Runtime *int64   `json:"runtime_seconds"`
	Tokens  *int64   `json:"tokens"`
	Retries *int64   `json:"retries"`
}

// BudgetUsed is what was used so far.
type BudgetUsed struct {
	Tasks   int64   `json:"tasks"`
	Depth   int64   `json:"depth"`
	CostUSD float64 `json:"cost_usd"`
	Runtime int64   `json:"runtime_seconds"`
	Tokens  int64   `json:"tokens"`
	Retries int64   `json:"retries" doc:"counted where they have a limit"`
}

const (
	maxDepthMost  = 1_000
	maxCostUSD    = 1_000_000_000
	maxTokensMost = 1 << 50
)

var budgetMembers = []string{"max_tasks", "max_depth", "max_cost_usd", "max_runtime_seconds", "max_tokens", "max_retries"}

// readBudget reads limits.
func readBudget(v body.Value) (b models.FlowBudget) {
	v.Members(func(name string, m body.Value) {
		switch {
		case name == "max_tasks" && !m.Null():
			b.Tasks = int32(m.Int(1, math.MaxInt32))
		case name == "max_depth" && !m.Null():
			b.Depth = int32(m.Int(1, maxDepthMost))
		case name == "max_cost_usd" && !m.Null():
			b.CostMicro = int64(math.Round(m.Number(0.000001, maxCostUSD) * 1e6))
		case name == "max_runtime_seconds" && !m.Null():
			b.RuntimeSeconds = seconds(m, aMoment)
		case name == "max_tokens" && !m.Null():
			b.Tokens = m.Int(1, maxTokensMost)
		case name == "max_retries" && !m.Null():
			b.Retries = m.Int(1, math.MaxInt32)
		case !m.Null() || !slices.Contains(budgetMembers, name):
			m.Wrong("there is no such field")
		}
	})
	return b
}

func viewBudget(row *models.Workflow, now models.Instant) *BudgetView {
	end := now
	if row.FinishedAt > 0 {
		end = row.FinishedAt
	}
	b := &row.Budget
	v := &BudgetView{Used: BudgetUsed{
		Tasks: int64(row.Counts.Total()), Depth: int64(row.Depth), CostUSD: float64(row.Used.CostMicro) / 1e6, Tokens: row.Used.Tokens, Retries: row.Used.Retries,
		Runtime: int64(max(0, end.Sub(row.CreatedAt)).Seconds()),
	}}
	v.Limit.Tasks, v.Left.Tasks = limitOf(int64(b.Tasks), v.Used.Tasks)
	v.Limit.Depth, v.Left.Depth = limitOf(int64(b.Depth), v.Used.Depth)
	v.Limit.Runtime, v.Left.Runtime = limitOf(int64(b.RuntimeSeconds), v.Used.Runtime)
	v.Limit.Tokens, v.Left.Tokens = limitOf(b.Tokens, v.Used.Tokens)
	v.Limit.Retries, v.Left.Retries = limitOf(b.Retries, v.Used.Retries)
	if b.CostMicro > 0 {
		v.Limit.CostUSD = handlers.Null(float64(b.CostMicro) / 1e6)
		left := float64(max(0, b.CostMicro-row.Used.CostMicro)) / 1e6
		v.Left.CostUSD = &left
	}
	return v
}

func limitOf(limit, used int64) (whole, left *int64) {
	if limit == 0 {
		return nil, nil
	}
	rest := max(0, limit-used)
	return &limit, &rest
}

// TaskBudgetView is the budget of a task as it was given.
type TaskBudgetView struct {
	Tasks   *int64   `json:"max_tasks"`
	Depth   *int64   `json:"max_depth"`
	CostUSD *float64 `json:"max_cost_usd"`
	Runtime *int64   `json:"max_runtime_seconds"`
	Tokens  *int64   `json:"max_tokens"`
	Retries *int64   `json:"max_retries"`
}

func viewTaskBudget(b *models.FlowBudget) *TaskBudgetView {
	if b == nil {
		return nil
	}
	v := &TaskBudgetView{
		Tasks: handlers.Null(int64(b.Tasks)), Depth: handlers.Null(int64(b.Depth)), Runtime: handlers.Null(int64(b.RuntimeSeconds)), Tokens: handlers.Null(b.Tokens),
		Retries: handlers.Null(b.Retries),
	}
	v.CostUSD = handlers.Null(float64(b.CostMicro) / 1e6)
	return v
}

// budget reads what the task and all it spawns may use. Those of a workflow and children spend of their workflow's.
func (d *draft) budget(v body.Value) {
	if d.r.graph != nil {
		refuseOther(v, "is the workflow's: its tasks, and what they spawn, spend of one budget")
		return
	}
	if b := readBudget(v); b != (models.FlowBudget{}) {
		d.input.Budget = &b
	}
}

// refuseOther refuses a member that is for others, unless it asks for nothing.
func refuseOther(v body.Value, why string) {
	if !v.IsObject() || !v.Empty() {
		v.Wrong("%s", why)
	}
}

// ownFlow is the workflow that a task with a budget gets of its own.
func ownFlow(id models.ID, t *engine.NewTask, budget *models.FlowBudget) *engine.NewWorkflow {
	input, err := json.Marshal(FlowInput{Lane: t.Lane})
	if err != nil {
		panic(err) // texts always encode
	}
	return &engine.NewWorkflow{ID: id, Name: t.Class.Type, Priority: t.Priority, Input: input, Budget: *budget}
}
