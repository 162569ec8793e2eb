package postgres

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// Reads shows work as it stands: tasks, attempts, workflows, dead letters, workers. It writes nothing and never reads more
// than one scope but where a decision has named the rows already.
type Reads struct{ db *DB }

// NewReads reads through the pool.
func NewReads(db *DB) *Reads { return &Reads{db: db} }

// scoped runs fn as the role that sees one environment.
func (r *Reads) scoped(ctx context.Context, scope Scope, fn func(pgx.Tx) error) error {
	return peopleError(r.db.For(scope).Read(ctx, fn))
}

const noID = `'00000000-0000-0000-0000-000000000000'::uuid`

// readTaskColumns are those of t in the order of taskTargets; what has no value comes as zero.
const readTaskColumns = `t.env, t.id, t.state, coalesce(t.gate, ''), t.lane, t.class, t.priority, t.age_key, coalesce(t.ready_at, 0),
	coalesce(t.wake_at, 0), coalesce(t.expires_at, 0), coalesce(t.deadline, 0), coalesce(t.latest_start, 0), t.created_at, t.updated_at, coalesce(t.started_at, 0),
	coalesce(t.finished_at, 0), t.attempt, t.attempts_used, t.max_attempts, coalesce(t.leases_lost, 0), t.remaining, t.killed,
	coalesce(t.workflow, ` + noID + `), coalesce(t.parent, ` + noID + `), coalesce(t.key, ''), coalesce(t.idem_key, ''),
	coalesce(t.limit_key, ''), coalesce(t.key_limit, 0), coalesce(t.worker, ` + noID + `), coalesce(t.attempt_id, ` + noID + `),
	coalesce(t.token, ` + noID + `), coalesce(t.lease_until, 0), t.hard_seconds, coalesce(t.soft_seconds, 0),
	coalesce(t.delay_seconds, 0), coalesce(t.estimate_ms, 0), t.flags, coalesce(t.error_class, ''),
	coalesce(t.fingerprint, ` + noID + `), coalesce(t.cancel_at, 0), coalesce(t.total_seconds, 0), coalesce(t.depth, 0), coalesce(t.tokens, 0),
	coalesce(t.more_keys, ''), coalesce(t.order_key, 0), coalesce(t.cost_micro, 0)`

func taskTargets(t *models.Task) []any {
	return []any{
		&t.Env, idTo(&t.ID), (*int16)(&t.State), &t.Gate, &t.Lane, &t.Class, &t.Priority, &t.AgeKey, atTo(&t.ReadyAt),
		atTo(&t.WakeAt), atTo(&t.ExpiresAt), atTo(&t.Deadline), atTo(&t.LatestStart), atTo(&t.CreatedAt), atTo(&t.UpdatedAt), atTo(&t.StartedAt),
		atTo(&t.FinishedAt), &t.Attempt, &t.AttemptsUsed, &t.MaxAttempts, &t.LeasesLost, &t.Remaining, &t.Killed,
		idTo(&t.Workflow), idTo(&t.Parent), &t.Key, &t.IdemKey,
		&t.LimitKey, &t.KeyLimit, idTo(&t.Worker), idTo(&t.AttemptID),
		idTo(&t.Token), atTo(&t.LeaseUntil), &t.HardSeconds, &t.SoftSeconds,
		&t.DelaySeconds, &t.EstimateMS, (*int16)(&t.Flags), &t.ErrorClass,
		idTo(&t.Fingerprint), atTo(&t.CancelAt), &t.TotalSeconds, &t.Depth, &t.Tokens, &t.MoreKeys, &t.OrderKey, &t.CostMicro,
	}
}

func idTo(id *models.ID) *[16]byte   { return (*[16]byte)(id) }
func atTo(at *models.Instant) *int64 { return (*int64)(at) }

func rawTo(s *string) json.RawMessage {
	if s == nil {
		return nil
	}
	return json.RawMessage(*s)
}

// TaskRow is a task with all that a caller may see of it.
type TaskRow struct {
	models.Task
	Input     json.RawMessage
	Payload   json.RawMessage // as Include says
	Trace     string
	RedriveOf models.ID
	Needs     models.Class // its class
	LaneName  string
	Kind      models.KindName
	DependsOn []models.Edge

	// Of its attempts: the result of the last one (as Include says), the last failure, what they used, the last model and worker.
	Result     json.RawMessage
	Error      *models.TaskError
	Usages     []json.RawMessage
	Model      string
	LastWorker models.ID
	Progress   json.RawMessage
	Checkpoint json.RawMessage

	Choice *models.Choice // of its model, the last one, with the first line of its ranking; nil: nothing was chosen
}

// Include says which large values rows come with.
type Include struct{ Payload, Result, Progress, Checkpoint bool }

// Whole includes everything.
var Whole = Include{true, true, true, true}

// from is the join that rows of `page` (env, id of tasks) are read with; staged rows count as pending.
func (in Include) from() string {
	pick := func(on bool, column string) string {
		if on {
			return column
		}
		return "NULL::text"
	}
	return `SELECT ` + readTaskColumns + `,
	coalesce(o.input, s.input), ` + pick(in.Payload, "coalesce(o.payload, s.payload)") + `, coalesce(s.trace, ''), coalesce(s.redrive_of, ` + noID + `),
	c.spec::text, coalesce(l.name, ''), coalesce(l.kind, 0),
	` + pick(in.Result, "last.result") + `, failed.error, used.usages, coalesce(last.model, ''), coalesce(last.worker, ` + noID + `),
	` + pick(in.Progress, "p.progress") + `, ` + pick(in.Checkpoint, "p.checkpoint") + `,
	chosen.n, chosen.asked, coalesce(chosen.named, ''), coalesce(chosen.chosen, ''), coalesce(chosen.reason, ''), coalesce(chosen.cost, 0), coalesce(chosen.instead, '')
FROM page JOIN tasks t ON t.env = page.env AND t.id = page.id
JOIN specs s ON s.env = t.env AND s.id = t.id
LEFT JOIN overrides o ON o.env = t.env AND o.task = t.id
JOIN classes c ON c.number = t.class
LEFT JOIN lanes l ON l.number = t.lane
LEFT JOIN progress p ON p.env = t.env AND p.task = t.id
LEFT JOIN LATERAL (SELECT a.result, a.model, a.worker FROM attempts a WHERE a.env = t.env AND a.task = t.id ORDER BY a.n DESC LIMIT 1) last ON true
LEFT JOIN LATERAL (SELECT a.error FROM attempts a WHERE a.env = t.env AND a.task = t.id AND a.error IS NOT NULL ORDER BY a.n DESC LIMIT 1) failed ON true
LEFT JOIN LATERAL (SELECT array_agg(a.usage ORDER BY a.n) AS usages FROM attempts a
	WHERE a.env = t.env AND a.task = t.id AND a.usage IS NOT NULL) used ON true
LEFT JOIN LATERAL (SELECT m.n, m.asked, m.named, m.chosen, m.reason, (m.ranking::json->0->>'cost_micro')::bigint AS cost, m.ranking::json->0->>'instead' AS instead FROM model_choices m
	WHERE t.flags & ` + strconv.Itoa(int(models.ChoosesModel)) + ` > 0 AND m.env = t.env AND m.task = t.id ORDER BY m.n DESC LIMIT 1) chosen ON true`
}

func readTaskRow(row pgx.CollectableRow) (TaskRow, error) {
	var v TaskRow
	var input, class string
	var payload, result, failure, progress, checkpoint *string
	var usages []string
	var choice models.Choice
	var n *int32
	var asked *string
	var cost int64
	var instead string
	targets := append(taskTargets(&v.Task), &input, &payload, &v.Trace, idTo(&v.RedriveOf), &class, &v.LaneName, (*int16)(&v.Kind),
		&result, &failure, &usages, &v.Model, idTo(&v.LastWorker), &progress, &checkpoint,
		&n, &asked, &choice.Named, &choice.Chosen, &choice.Reason, &cost, &instead)
	if err := row.Scan(targets...); err != nil {
		return v, err
	}
	v.Input = json.RawMessage(input)
	v.Payload, v.Result, v.Progress, v.Checkpoint = rawTo(payload), rawTo(result), rawTo(progress), rawTo(checkpoint)
	if n != nil {
		v.Choice, choice.N = &choice, *n
		choice.Ranking = []models.RankedModel{{Model: choice.Chosen, CostMicro: cost, Instead: instead}}
		if asked != nil {
			choice.Asked = &models.ModelAsk{}
			if err := json.Unmarshal([]byte(*asked), choice.Asked); err != nil {
				return v, err
			}
		}
	}
	for _, u := range usages {
		v.Usages = append(v.Usages, json.RawMessage(u))
	}
	if failure != nil {
		v.Error = &models.TaskError{}
		if err := json.Unmarshal([]byte(*failure), v.Error); err != nil {
			return v, err
		}
	}
	err := json.Unmarshal([]byte(class), &v.Needs)
	v.Needs.Number = v.Class
	if v.State == models.Staged {
		v.State = models.Pending
	}
	return v, err
}

// attachEdges reads what the rows wait for, in one query.
func attachEdges(ctx context.Context, tx pgx.Tx, env int32, rows []TaskRow) error {
	ids := make([][16]byte, len(rows))
	at := make(map[models.ID]int, len(rows))
	for i := range rows {
		ids[i], at[rows[i].ID] = rows[i].ID, i
	}
	found, err := tx.Query(ctx, `SELECT from_task, to_task, fires_on, state FROM edges
		WHERE env = $1 AND to_task = ANY ($2) AND fires_on < 3 ORDER BY to_task, from_task`, env, ids)
	if err != nil {
		return err
	}
	e := models.Edge{Env: env}
	_, err = pgx.ForEachRow(found, []any{idTo(&e.From), idTo(&e.To), (*int16)(&e.On), (*int16)(&e.State)}, func() error {
		row := &rows[at[e.To]]
		row.DependsOn = append(row.DependsOn, e)
		return nil
	})
	return err
}

// where gathers conditions with their arguments.
type where struct {
	parts []string
	args  []any
}

// add puts a condition in which $? stands for the next argument, one for each.
func (w *where) add(condition string, args ...any) {
	for _, a := range args {
		w.args = append(w.args, a)
		condition = strings.Replace(condition, "$?", "$"+strconv.Itoa(len(w.args)), 1)
	}
	w.parts = append(w.parts, condition)
}

func (w *where) String() string { return strings.Join(w.parts, " AND ") }
