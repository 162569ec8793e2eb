package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"nightshift/models"
)

// UsageAsk says which attempts are summed up and by what.
type UsageAsk struct {
	From, To               models.Instant // when they ended: from this moment, before that
	Day, Model, Type, Lane bool
}

// Usage is what attempts used that have something in common; what they were not grouped by is empty, like what is not known.
type Usage struct {
	Day, Model, Type, Lane string
	Tasks                  int64
	TokensIn, TokensOut    int64
	CostUSD                float64
}

// MostUsage is how many sums are answered at most.
const MostUsage = 10_000

// Usage sums up what the attempts of an environment used, ordered by what they are grouped by.
func (r *Reads) Usage(ctx context.Context, scope Scope, env int32, ask UsageAsk) (sums []Usage, err error) {
	var by, joins []string
	group := func(on bool, expression, join string) string {
		if !on {
			return `''`
		}
		by, joins = append(by, expression), append(joins, join)
		return expression
	}
	task := ` JOIN tasks t ON t.env = a.env AND t.id = a.task`
	columns := []string{
		group(ask.Day, `to_char(timestamptz 'epoch' AT TIME ZONE 'UTC' + a.finished_at * interval '1 microsecond', 'YYYY-MM-DD')`, ``),
		group(ask.Model, `coalesce(nullif(u.used ->> 'model', ''), a.model, '')`, ``),
		group(ask.Type, `coalesce(c.type, '')`, task+` LEFT JOIN classes c ON c.number = t.class`),
		group(ask.Lane, `coalesce(l.name, '')`, task+` LEFT JOIN lanes l ON l.number = t.lane`),
	}
	if ask.Type && ask.Lane { // the tasks are joined once
		joins[len(joins)-1] = strings.TrimPrefix(joins[len(joins)-1], task)
	}
	sql := fmt.Sprintf(`SELECT %s, count(DISTINCT a.task),
			least(coalesce(sum((u.used ->> 'tokens_in')::numeric), 0), 2305843009213693952)::bigint, least(coalesce(sum((u.used ->> 'tokens_out')::numeric), 0), 2305843009213693952)::bigint,
			coalesce(sum((u.used ->> 'cost_usd')::numeric), 0)::float8
		FROM attempts a%s CROSS JOIN LATERAL (SELECT a.usage::jsonb AS used) u
		WHERE a.env = $1 AND a.finished_at >= $2 AND a.finished_at < $3`, strings.Join(columns, ", "), strings.Join(joins, ""))
	if len(by) > 0 {
		sql += ` GROUP BY ` + strings.Join(by, ", ") + ` ORDER BY ` + strings.Join(by, ", ")
	}
	err = r.db.For(scope).Read(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, figuresWithin); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, fmt.Sprintf(`%s LIMIT %d`, sql, MostUsage+1), env, int64(ask.From), int64(ask.To))
		if err != nil {
			return err
		}
		sums, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (u Usage, err error) {
			return u, row.Scan(&u.Day, &u.Model, &u.Type, &u.Lane, &u.Tasks, &u.TokensIn, &u.TokensOut, &u.CostUSD)
		})
		return err
	})
	var slow *pgconn.PgError
	if errors.As(err, &slow) && slow.Code == "57014" || len(sums) > MostUsage {
		return nil, models.Invalid("query.from", "that is too much to sum up at once: ask for a shorter time")
	}
	return sums, peopleError(err)
}
