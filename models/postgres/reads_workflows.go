package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// CountsLive is up to how many tasks a workflow's counts are taken from its tasks; larger ones show what was saved within
// the last second.
const CountsLive = 5_000

// WorkflowFilter says which workflows of an environment a list shows.
type WorkflowFilter struct {
	States        []models.WorkflowState
	Batches       bool // those alone
	Schedules     []models.ID
	CreatedAfter  models.Instant
	CreatedBefore models.Instant
	After         models.ID
	Desc          bool
	Limit         int
}

func (f *WorkflowFilter) where(env int32) *where {
	w := &where{}
	w.add(`w.env = $?`, env)
	if f.Batches {
		w.add(`w.items IS NOT NULL`)
	}
	if len(f.States) > 0 {
		numbers := make([]string, len(f.States))
		for i, s := range f.States {
			numbers[i] = strconv.Itoa(int(s))
		}
		w.add(`w.state IN (` + strings.Join(numbers, ", ") + `)`)
	}
	if len(f.Schedules) > 0 {
		w.add(`w.id IN (SELECT task FROM schedule_tasks WHERE env = $? AND schedule = ANY ($?))`, env, idArgs(f.Schedules))
	}
	if f.CreatedAfter > 0 {
		w.add(`w.created_at > $?`, int64(f.CreatedAfter))
	}
	if f.CreatedBefore > 0 {
		w.add(`w.created_at < $?`, int64(f.CreatedBefore))
	}
	return w
}

const readWorkflowColumns = `w.env, w.id, w.name, w.state, w.counts, w.cancelling, w.priority, w.input, w.created_at,
	coalesce(w.finished_at, 0), w.updated_at, w.stops, w.over, w.gate, w.budget, w.depth, w.grown, coalesce(w.ends_at, 0),
	coalesce(w.rerun_of, ` + noID + `), u.cost, u.tokens, u.retries, coalesce(w.items, 0)`

// readUsed is what the workflow's attempts used, beside its columns.
const readUsed = ` CROSS JOIN LATERAL (SELECT least(coalesce(sum(s.cost_micro), 0), 2305843009213693952)::bigint AS cost, least(coalesce(sum(s.tokens), 0), 2305843009213693952)::bigint AS tokens,
	coalesce(sum(s.retries), 0)::bigint AS retries
	FROM flow_spends s WHERE s.env = w.env AND s.workflow = w.id) u`

func readWorkflow(row pgx.CollectableRow) (v models.Workflow, err error) {
	var counts []int32
	var input string
	var budget []byte
	err = row.Scan(&v.Env, idTo(&v.ID), &v.Name, (*int16)(&v.State), &counts, &v.Cancelling, &v.Priority, &input, atTo(&v.CreatedAt),
		atTo(&v.FinishedAt), atTo(&v.UpdatedAt), &v.Stops, &v.Over, (*int16)(&v.Gate), &budget, &v.Depth, &v.Grown, atTo(&v.EndsAt),
		idTo(&v.RerunOf), &v.Used.CostMicro, &v.Used.Tokens, &v.Used.Retries, &v.Items)
	v.Budget = budgetIn(budget)
	copy(v.Counts[:], counts)
	v.Input = json.RawMessage(input)
	return v, err
}

// Workflows lists workflows with their counts as last saved.
func (r *Reads) Workflows(ctx context.Context, scope Scope, env int32, f *WorkflowFilter) (rows []models.Workflow, err error) {
	w := f.where(env)
	order := "ASC"
	if f.Desc {
		order = "DESC"
	}
	if !f.After.IsZero() {
		w.add(map[bool]string{true: `w.id < $?`, false: `w.id > $?`}[f.Desc], idArg(f.After))
	}
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		found, err := tx.Query(ctx, fmt.Sprintf(`SELECT %s FROM workflows w`+readUsed+` WHERE %s ORDER BY w.id %s LIMIT %d`,
			readWorkflowColumns, w, order, f.Limit), w.args...)
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(found, readWorkflow)
		return err
	})
	return rows, err
}

// CountWorkflows counts what a filter lets pass, up to CountMost.
func (r *Reads) CountWorkflows(ctx context.Context, scope Scope, env int32, f *WorkflowFilter) (n int64, more bool, err error) {
	w := f.where(env)
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM (SELECT 1 FROM workflows w WHERE %s LIMIT %d) AS counted`, w, CountMost+1), w.args...).Scan(&n)
	})
	return min(n, CountMost), n > CountMost, err
}

// Workflow reads one workflow; not_found when it is not there.
func (r *Reads) Workflow(ctx context.Context, scope Scope, env int32, id models.ID) (v models.Workflow, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		found, err := tx.Query(ctx, `SELECT `+readWorkflowColumns+` FROM workflows w`+readUsed+` WHERE w.env = $1 AND w.id = $2`, env, idArg(id))
		if err != nil {
			return err
		}
		rows, err := pgx.CollectRows(found, readWorkflow)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return models.Errorf(models.NotFound, "there is no %q here", id.Text(models.WorkflowPrefix))
		}
		v = rows[0]
		if v.Counts.Total() > CountsLive {
			return nil
		}
		return countStates(ctx, tx, &v)
	})
	return v, err
}

// countStates replaces the saved counts, and how deep the workflow has grown, by those of the tasks; staged rows count as pending.
func countStates(ctx context.Context, tx pgx.Tx, v *models.Workflow) error {
	rows, err := tx.Query(ctx, `SELECT t.state, count(*) FROM tasks t WHERE t.env = $1 AND t.workflow = $2 AND `+shown+` GROUP BY t.state`, v.Env, idArg(v.ID))
	if err != nil {
		return err
	}
	if v.Counts, err = collectCounts(rows); err != nil {
		return err
	}
	return tx.QueryRow(ctx, `SELECT coalesce(max(t.depth), 0) FROM tasks t WHERE t.env = $1 AND t.workflow = $2 AND `+shown, v.Env, idArg(v.ID)).Scan(&v.Depth)
}

// GraphNode is one task of a workflow as its graph shows it.
type GraphNode struct {
	ID         models.ID
	Key        string
	Type       string
	State      models.State
	EndState   models.State // by which its edges fire
	Attempt    int32
	StartedAt  models.Instant
	FinishedAt models.Instant
	EstimateMS int64
}

// Graph reads the tasks of a workflow in the order they were given and the edges between and into them, up to most tasks;
// more says that there are others.
func (r *Reads) Graph(ctx context.Context, scope Scope, env int32, id models.ID, most int) (nodes []GraphNode, edges []models.Edge, more bool, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT t.id, coalesce(t.key, ''), c.type, t.state, t.attempt, coalesce(t.started_at, 0),
			coalesce(t.finished_at, 0), coalesce(t.estimate_ms, 0), t.flags FROM tasks t JOIN classes c ON c.number = t.class
			WHERE t.env = $1 AND t.workflow = $2 AND %s ORDER BY t.id LIMIT %d`, shown, most+1), env, idArg(id))
		if err != nil {
			return err
		}
		nodes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n GraphNode, err error) {
			var t models.Task
			err = row.Scan(idTo(&n.ID), &n.Key, &n.Type, (*int16)(&n.State), &n.Attempt, atTo(&n.StartedAt), atTo(&n.FinishedAt), &n.EstimateMS, (*int16)(&t.Flags))
			t.State = n.State
			n.EndState = t.EndState()
			if n.State == models.Staged {
				n.State = models.Pending
			}
			return n, err
		})
		if more = len(nodes) > most; more {
			nodes = nodes[:most]
		}
		if err != nil || len(nodes) == 0 {
			return err
		}
		edges, err = edgesInto(ctx, tx, env, nodes)
		return err
	})
	return nodes, edges, more, err
}

func edgesInto(ctx context.Context, tx pgx.Tx, env int32, nodes []GraphNode) ([]models.Edge, error) {
	ids := make([][16]byte, len(nodes))
	for i := range nodes {
		ids[i] = nodes[i].ID
	}
	rows, err := tx.Query(ctx, `SELECT from_task, to_task, fires_on, state FROM edges WHERE env = $1 AND to_task = ANY ($2)
		ORDER BY to_task, from_task`, env, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (models.Edge, error) {
		e := models.Edge{Env: env}
		err := row.Scan(idTo(&e.From), idTo(&e.To), (*int16)(&e.On), (*int16)(&e.State))
		return e, err
	})
}
