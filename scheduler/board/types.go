package board

import (
	"nightshift/models"
)

// TypeUse is what an environment says of a task type, with what runs of it.
type TypeUse struct {
	models.TaskType
	Running int64
	lines   []*Line
}

type typeID struct {
	env  int32
	name string
}

// TypeOf is what an environment says of a type, nil when it says nothing.
func (b *Board) TypeOf(env int32, name string) *TypeUse {
	if len(b.types) == 0 {
		return nil
	}
	return b.types[typeID{env, name}]
}

// TypesOf counts the types an environment says anything of.
func (b *Board) TypesOf(env int32) int { return b.typesIn[env] }

// linesOf are all lines of a tenant.
func (b *Board) linesOf(tenant int32) (out []*Line) {
	for _, kind := range models.Kinds() {
		if q := b.queues[kind][tenant]; q != nil {
			out = append(out, q.Lines...)
		}
	}
	return out
}

// PutType adds or replaces what an environment says of a type; its schema is kept elsewhere.
func (b *Board) PutType(row models.TaskType) {
	id := typeID{row.Env, row.Type}
	row.InputSchema = nil
	t := b.types[id]
	if t == nil {
		t = &TypeUse{}
		b.types[id] = t
		b.typesIn[row.Env]++
		for _, l := range b.Leases { // any order: a count
			if r := l.Row(); r.Env == row.Env && b.Classes[r.Class] != nil && b.Classes[r.Class].Type == row.Type {
				t.Running++
			}
		}
		for _, l := range b.linesOf(b.TenantOf(row.Env)) {
			if l.ID.Env == row.Env && l.at.class != nil && l.at.class.Type == row.Type {
				l.at.typ = t
				t.lines = append(t.lines, l)
			}
		}
	}
	t.TaskType = row
	for _, l := range t.lines {
		b.offer(l)
	}
}

func (t *TypeUse) atLimit() bool { return t.MaxConcurrent != nil && t.Running >= *t.MaxConcurrent }

// runsOf counts what runs of a type; nil: nobody asks.
func (b *Board) runsOf(t *TypeUse, n int64) {
	if t == nil {
		return
	}
	was := t.atLimit()
	t.Running += n
	if t.atLimit() != was {
		for _, l := range t.lines {
			b.offer(l)
		}
	}
}

// PutGrants replaces what tasks of an environment may ask for.
func (b *Board) PutGrants(g models.Grants) {
	b.grants[g.Env] = &g
	for _, l := range b.linesOf(b.TenantOf(g.Env)) {
		if l.ID.Env == g.Env && l.at.class != nil && len(l.at.class.Permissions) > 0 {
			b.offer(l)
		}
	}
}

// GrantsOf are the permissions of an environment, nil when none were ever granted.
func (b *Board) GrantsOf(env int32) *models.Grants { return b.grants[env] }
