package storetest

import (
	"context"
	"slices"

	"nightshift/models"
	"nightshift/models/postgres"
)

// compareBeside holds both stores to the same of what no decision reads back: events, the audit, what was submitted, what
// attempts said last, and what stands in rows of its own beside tasks and runs.
func (m *Mirror) compareBeside() {
	ctx := context.Background() // the test's own has ended
	m.compareSaid(ctx)
	m.compareEvents(ctx)
	m.compareAudit(ctx)
	snapshot, err := m.Store.Load(ctx, 1, 1)
	if err != nil {
		m.t.Fatal(err)
	}
	tenants := map[int32]int32{}
	for _, e := range snapshot.Environments {
		tenants[e.Env] = e.Tenant
	}
	refs := map[int32][]models.ID{}
	for _, row := range m.Store.Tasks() {
		if row.State != models.Staged {
			refs[row.Env] = append(refs[row.Env], row.ID)
		}
	}
	for env, ids := range refs { // any order: each on its own
		for part := range slices.Chunk(ids, 500) {
			m.compareTasks(ctx, postgres.Scope{Tenant: tenants[env], Envs: []int32{env}}, env, part)
		}
	}
}

type packed struct {
	batch int64
	env   int32
}

func (m *Mirror) compareEvents(ctx context.Context) {
	told := map[packed][]models.Event{}
	for _, e := range m.Store.Events() {
		at := packed{e.Batch, e.Env}
		told[at] = append(told[at], e.Event)
	}
	written := 0
	for after := int64(-1); ; {
		rows, err := m.db.Events(ctx, nil, after, 1000)
		if err != nil {
			m.t.Fatal(err)
		}
		last := after
		for _, row := range rows {
			if len(rows) == 1000 && row.Batch == rows[len(rows)-1].Batch {
				break // the next page has it whole
			}
			last = row.Batch
			written++
			if d := difference(told[packed{row.Batch, row.Env}], row.Items); d != "" {
				m.t.Errorf("the events of batch %d in environment %d differ at %s", row.Batch, row.Env, d)
			}
		}
		if len(rows) < 1000 || last == after {
			break
		}
		after = last
	}
	if written != len(told) {
		m.t.Errorf("%d rows of events, the reference store has %d", written, len(told))
	}
}

func (m *Mirror) compareAudit(ctx context.Context) {
	byTenant := map[int32][]models.Audit{}
	for _, a := range m.Store.Audit() {
		byTenant[a.Tenant] = append(byTenant[a.Tenant], a)
	}
	for tenant, want := range byTenant { // any order: each on its own
		if len(want) > 500 {
			want = want[:500]
		}
		rows, _, err := postgres.NewWorld(m.db).Audit(ctx, postgres.AuditList{Tenant: tenant, RowList: postgres.RowList{Limit: 500}})
		if err != nil {
			m.t.Fatal(err)
		}
		got := make([]models.Audit, len(rows))
		for i := range rows {
			got[i] = rows[i].Audit
		}
		if d := difference(want, got[:min(len(got), len(want))]); d != "" {
			m.t.Errorf("the audit of tenant %d differs at %s", tenant, d)
		}
	}
}

// words is what stands beside a task's row.
type words struct {
	Input, Payload, Progress, Checkpoint string
	Items                                models.Items
}

func (m *Mirror) compareTasks(ctx context.Context, scope postgres.Scope, env int32, ids []models.ID) {
	reads := postgres.NewReads(m.db)
	rows, err := reads.TasksByID(ctx, scope, env, ids, postgres.Whole)
	if err != nil {
		m.t.Fatal(err)
	}
	refs := make([]models.TaskRef, len(ids))
	for i, id := range ids {
		refs[i] = models.TaskRef{Env: env, ID: id}
	}
	items, err := reads.ItemsOf(ctx, refs)
	if err != nil {
		m.t.Fatal(err)
	}
	got := map[models.ID]words{}
	for i := range rows {
		r := &rows[i]
		got[r.ID] = words{plain(r.Input), plain(r.Payload), plain(r.Progress), plain(r.Checkpoint), items[models.TaskRef{Env: env, ID: r.ID}]}
	}
	want := map[models.ID]words{}
	for _, ref := range refs {
		spec, _ := m.Store.Spec(ref)
		changed := m.Store.Override(ref)
		progress, _ := m.Store.Progress(ref)
		one := words{plain(spec.Input), plain(spec.Payload), plain(progress.Progress), plain(progress.Checkpoint), m.Store.Items(ref)}
		if changed.Input != nil {
			one.Input = plain(changed.Input)
		}
		if changed.Payload != nil {
			one.Payload = plain(changed.Payload)
		}
		want[ref.ID] = one
	}
	if d := difference(want, got); d != "" {
		m.t.Errorf("what stands beside the tasks of environment %d differs at %s", env, d)
	}
}

// plain is a JSON text; null is nothing.
func plain(raw []byte) string {
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}
