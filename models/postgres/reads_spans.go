package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// MostSpans is how many reported spans a task keeps, MostTraced how many tasks and attempts, and reported spans, a trace
// of a workflow shows.
const (
	MostSpans      = 1_000
	MostTraced     = 2_000
	mostFlowSpans  = 5_000
	mostAttemptsOf = 500 // a task
)

// Span is a stretch of time that an attempt reported.
type Span struct {
	Task       models.ID
	Attempt    int32
	AttemptID  models.ID // zero: not known any more
	ID         string    // 16 hexadecimal digits
	Parent     string    // empty: the attempt
	Name       string
	Began      models.Instant
	Ended      models.Instant
	Attributes json.RawMessage // an object
}

// KeepSpans writes spans of the attempt that holds the lease; one that is there already stays. holds is false when none
// does, fits when the task would have more than MostSpans: nothing is written then.
func (r *Reads) KeepSpans(ctx context.Context, h Holder, now models.Instant, spans []Span) (holds, fits bool, err error) {
	var ids, parents, names, attributes []string
	var began, ended []int64
	for _, s := range spans {
		ids, parents, names, attributes = append(ids, s.ID), append(parents, s.Parent), append(names, s.Name), append(attributes, string(s.Attributes))
		began, ended = append(began, int64(s.Began)), append(ended, int64(s.Ended))
	}
	err = r.db.Platform().Write(ctx, func(tx pgx.Tx) error {
		var attempt int32
		var err error
		if attempt, holds, err = h.attempt(ctx, tx); err != nil || !holds || len(spans) == 0 {
			fits = true
			return err
		}
		var there int
		err = tx.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM (SELECT FROM spans WHERE env = $1 AND task = $2 LIMIT %d) s`, MostSpans), h.Env, idArg(h.ID)).Scan(&there)
		if fits = there+len(spans) <= MostSpans; err != nil || !fits {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO spans (env, task, attempt, at, span, parent, name, began, ended, attributes)
			SELECT $1, $2, $3, $4, r.span, nullif(r.parent, ''), r.name, r.began, r.ended, r.attributes
			FROM unnest($5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::text[]) WITH ORDINALITY r (span, parent, name, began, ended, attributes, n)
			ORDER BY r.n ON CONFLICT (env, task, span) DO NOTHING`, h.Env, idArg(h.ID), attempt, int64(now), ids, parents, names, began, ended, attributes)
		return err
	})
	return holds, fits, peopleError(err)
}

// Traced is what a trace is drawn from of one task.
type Traced struct {
	models.Task
	Type     string
	LaneName string
	Trace    string // the traceparent it was submitted with
	Attempts []models.Attempt
	Spans    []Span
}

// TraceOf reads a task for its trace; not_found when it is not there.
func (r *Reads) TraceOf(ctx context.Context, scope Scope, env int32, task models.ID) (*Traced, error) {
	all, _, err := r.traced(ctx, scope, env, `t.id = $2`, task)
	if err == nil && len(all) == 0 {
		err = models.Errorf(models.NotFound, "there is no %q here", task.Text(models.TaskPrefix))
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// TraceOfFlow reads the tasks of a workflow for its trace, the first of them; more says that there are others.
func (r *Reads) TraceOfFlow(ctx context.Context, scope Scope, env int32, flow models.ID) (all []*Traced, more bool, err error) {
	return r.traced(ctx, scope, env, `t.workflow = $2 AND t.workflow IS NOT NULL`, flow)
}

func (r *Reads) traced(ctx context.Context, scope Scope, env int32, which string, id models.ID) (all []*Traced, more bool, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT t.id, t.state, t.attempt, coalesce(t.key, ''), coalesce(t.workflow, %[1]s), coalesce(t.parent, %[1]s), t.created_at,
			coalesce(t.ready_at, 0), coalesce(t.started_at, 0), coalesce(t.finished_at, 0), coalesce(t.worker, %[1]s), coalesce(t.attempt_id, %[1]s), c.type, coalesce(l.name, ''), coalesce(s.trace, '')
			FROM tasks t JOIN classes c ON c.number = t.class LEFT JOIN lanes l ON l.number = t.lane LEFT JOIN specs s ON s.env = t.env AND s.id = t.id
			WHERE t.env = $1 AND t.state > 0 AND %[2]s ORDER BY t.id LIMIT %[3]d`, noID, which, MostTraced+1), env, idArg(id))
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Traced, error) {
			t := &Traced{}
			t.Env = env
			err := row.Scan(idTo(&t.ID), (*int16)(&t.State), &t.Attempt, &t.Key, idTo(&t.Workflow), idTo(&t.Parent), atTo(&t.CreatedAt),
				atTo(&t.ReadyAt), atTo(&t.StartedAt), atTo(&t.FinishedAt), idTo(&t.Worker), idTo(&t.AttemptID), &t.Type, &t.LaneName, &t.Trace)
			return t, err
		})
		if more = len(all) > MostTraced; more {
			all = all[:MostTraced]
		}
		if err != nil || len(all) == 0 {
			return err
		}
		cut, err := traceRows(ctx, tx, env, all)
		more = more || cut
		return err
	})
	return all, more, err
}

// traceRows adds the attempts of tasks and what these reported; cut says that there is more of it.
func traceRows(ctx context.Context, tx pgx.Tx, env int32, all []*Traced) (cut bool, err error) {
	of, ids := make(map[models.ID]*Traced, len(all)), make([]models.ID, len(all))
	for i, t := range all {
		of[t.ID], ids[i] = t, t.ID
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT a.task, a.n, a.id, a.worker, a.outcome, a.pool, a.started_at, a.finished_at, coalesce(a.error::json->>'class', ''), coalesce(a.model, '')
		FROM unnest($2::uuid[]) w (id) CROSS JOIN LATERAL (SELECT * FROM attempts x WHERE x.env = $1 AND x.task = w.id ORDER BY x.n DESC LIMIT %d) a
		ORDER BY a.task, a.n LIMIT %d`, mostAttemptsOf, mostFlowSpans+1), env, idArgs(ids))
	if err != nil {
		return false, err
	}
	var a models.Attempt
	var class string
	n := 0
	_, err = pgx.ForEachRow(rows, []any{idTo(&a.Task), &a.N, idTo(&a.ID), idTo(&a.Worker), (*int16)(&a.Outcome), &a.Pool, atTo(&a.StartedAt), atTo(&a.FinishedAt), &class, &a.Model}, func() error {
		if a.Error = nil; class != "" {
			a.Error = &models.TaskError{Class: class}
		}
		if n++; n <= mostFlowSpans {
			of[a.Task].Attempts = append(of[a.Task].Attempts, a)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	cut = n > mostFlowSpans
	rows, err = tx.Query(ctx, fmt.Sprintf(`SELECT s.task, s.attempt, s.span, coalesce(s.parent, ''), s.name, s.began, s.ended, s.attributes
		FROM spans s WHERE s.env = $1 AND s.task = ANY ($2) ORDER BY s.task, s.id LIMIT %d`, mostFlowSpans+1), env, idArgs(ids))
	if err != nil {
		return false, err
	}
	var s Span
	var attributes string
	n = 0
	_, err = pgx.ForEachRow(rows, []any{idTo(&s.Task), &s.Attempt, &s.ID, &s.Parent, &s.Name, atTo(&s.Began), atTo(&s.Ended), &attributes}, func() error {
		s.Attributes = json.RawMessage(attributes)
		if n++; n <= mostFlowSpans {
			of[s.Task].Spans = append(of[s.Task].Spans, s)
		}
		return nil
	})
	return cut || n > mostFlowSpans, err
}
