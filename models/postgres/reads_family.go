package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// ChildrenOf adds to the briefs of tasks what became of their children. Results beyond what a claim carries are left out.
func (r *Reads) ChildrenOf(ctx context.Context, parents []models.TaskRef, briefs map[models.TaskRef]*Brief) error {
	envs, ids := make([]int32, len(parents)), make([][16]byte, len(parents))
	for i, t := range parents {
		envs[i], ids[i] = t.Env, t.ID
	}
	return peopleError(r.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT c.env, c.parent, c.key, c.id, c.state, CASE WHEN c.size <= $3 THEN c.result END FROM (
				SELECT t.env, t.parent, t.key, t.id, t.state, done.result, sum(octet_length(done.result)) OVER (ORDER BY t.env, t.parent, t.id) AS size
				FROM unnest($1::int[], $2::uuid[]) AS want (env, id) JOIN tasks t ON t.env = want.env AND t.parent = want.id
				LEFT JOIN LATERAL (SELECT a.result FROM attempts a WHERE t.state = 8 AND a.env = t.env AND a.task = t.id AND a.outcome = 1
					ORDER BY a.n DESC LIMIT 1) done ON true) c
			ORDER BY c.env, c.parent, c.id`, envs, ids, claimAllResults)
		if err != nil {
			return err
		}
		var ref models.TaskRef
		var d Dependency
		var result *string
		_, err = pgx.ForEachRow(rows, []any{&ref.Env, idTo(&ref.ID), &d.Key, idTo(&d.Task), (*int16)(&d.State), &result}, func() error {
			d.Result = rawTo(result)
			if brief := briefs[ref]; brief != nil {
				brief.Children = append(brief.Children, d)
			}
			return nil
		})
		return err
	}))
}

// LineageMost is how many tasks a lineage shows.
const LineageMost = 500

// Relative is a task of a lineage.
type Relative struct {
	ID     models.ID
	Parent models.ID
	Key    string
	Type   string
	State  models.State
}

// Relation says how two tasks of a lineage belong together: child, dependency or redrive.
type Relation struct {
	From, To models.ID
	Kind     string
}

// Lineage walks from a task to its parents and children, to what it waited for and what waits for it, and to those it
// was made again from or as, up to LineageMost tasks.
func (r *Reads) Lineage(ctx context.Context, scope Scope, env int32, task models.ID) (nodes []Relative, edges []Relation, err error) {
	err = r.scoped(ctx, scope, func(tx pgx.Tx) error {
		seen, next := map[models.ID]bool{task: true}, []models.ID{task}
		ids := []models.ID{task}
		known := map[Relation]bool{}
		for len(next) > 0 && len(ids) < LineageMost {
			found, err := relations(ctx, tx, env, next)
			if err != nil {
				return err
			}
			next = nil
			for _, e := range found {
				if known[e] {
					continue
				}
				fits := true
				for _, id := range []models.ID{e.From, e.To} {
					if !seen[id] && len(ids) < LineageMost {
						seen[id] = true
						ids, next = append(ids, id), append(next, id)
					}
					fits = fits && seen[id]
				}
				if fits {
					known[e] = true
					edges = append(edges, e)
				}
			}
		}
		nodes, err = relatives(ctx, tx, env, ids)
		return err
	})
	there := map[models.ID]bool{}
	for _, n := range nodes {
		there[n.ID] = true
	}
	return nodes, slices.DeleteFunc(edges, func(e Relation) bool { return !there[e.From] || !there[e.To] }), err
}

// relations reads the edges that touch some tasks, in an order of their own.
func relations(ctx context.Context, tx pgx.Tx, env int32, ids []models.ID) (out []Relation, err error) {
	rows, err := tx.Query(ctx, fmt.Sprintf(`
		SELECT parent, id, 'child' FROM tasks WHERE env = $1 AND id = ANY ($2) AND parent IS NOT NULL
		UNION SELECT parent, id, 'child' FROM (SELECT parent, id FROM tasks WHERE env = $1 AND parent = ANY ($2) AND parent IS NOT NULL ORDER BY id LIMIT %[1]d) c
		UNION SELECT from_task, to_task, 'dependency' FROM (SELECT from_task, to_task FROM edges WHERE env = $1 AND to_task = ANY ($2) AND fires_on < 3 LIMIT %[1]d) d
		UNION SELECT from_task, to_task, 'dependency' FROM (SELECT from_task, to_task FROM edges WHERE env = $1 AND from_task = ANY ($2) AND fires_on < 3 LIMIT %[1]d) d
		UNION SELECT redrive_of, id, 'redrive' FROM specs WHERE env = $1 AND id = ANY ($2) AND redrive_of IS NOT NULL
		ORDER BY 3, 1, 2`, LineageMost), env, idArgs(ids))
	if err != nil {
		return nil, err
	}
	var e Relation
	_, err = pgx.ForEachRow(rows, []any{idTo(&e.From), idTo(&e.To), &e.Kind}, func() error { out = append(out, e); return nil })
	return out, err
}

func relatives(ctx context.Context, tx pgx.Tx, env int32, ids []models.ID) (out []Relative, err error) {
	rows, err := tx.Query(ctx, `SELECT t.id, coalesce(t.parent, `+noID+`), coalesce(t.key, ''), c.type, t.state FROM tasks t JOIN classes c ON c.number = t.class
		WHERE t.env = $1 AND t.id = ANY ($2) AND t.state > 0 ORDER BY t.id`, env, idArgs(ids))
	if err != nil {
		return nil, err
	}
	var n Relative
	_, err = pgx.ForEachRow(rows, []any{idTo(&n.ID), idTo(&n.Parent), &n.Key, &n.Type, (*int16)(&n.State)}, func() error { out = append(out, n); return nil })
	return out, err
}
