package postgres

import (
	"context"
	"encoding/json"

	"nightshift/models"
)

// Facts reads what need names and the clock, in one round trip on the writer's connection; none when only a clock is asked
// for that was read within the last second.
func (w *Writer) Facts(ctx context.Context, need *models.Need) (*models.Facts, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &models.Facts{
		Tasks: map[models.TaskRef]models.Task{}, IdemKeys: map[models.IdemRef]models.Task{},
		Workflows: map[models.TaskRef]models.Workflow{}, Once: map[models.OnceRef]models.Once{}, Done: map[models.ID]int64{},
		Slices: map[models.ID][]models.Task{}, Stagings: map[models.ID]models.Staging{}, Policies: map[models.TaskRef]models.RetryPolicy{},
		Tokens: map[models.TokenRef]models.Attempt{}, Children: map[models.ChildRef]models.Task{}, Dedupes: map[models.IdemRef]models.Deduped{}, Payloads: map[models.TaskRef]json.RawMessage{}, Watermarks: map[models.IdemRef]models.Watermark{},
		Judged: map[models.TaskRef]models.Judged{}, Items: map[models.TaskRef]models.Items{}, Outside: map[models.TaskRef][]models.Edge{}, Schedules: map[models.TaskRef]models.ScheduleWork{}, Variables: map[int32]models.Variables{}, Blockers: map[models.TaskRef][]models.Blocker{},
		Feeds: map[models.Feed][]models.Message{}, MessageKeys: map[models.KeyRef]models.Message{}, Messages: map[models.ID]models.Message{},
		Choices: map[models.TaskRef]models.Choice{}, Qualities: map[models.QualityRef]float64{},
		Presumed: map[models.TokenRef][]models.Presumed{},
	}
	if now, fresh := w.runsOn(); fresh && need.Empty() {
		f.Now = now
		return f, nil
	}
	var now models.Instant
	var bad error
	calls := factsOf(need, f, &bad)
	calls = append(calls, call{name: "clock", read: func(c *columns) { now = c.instant() }})
	if err := w.soon(ctx, calls...); err != nil {
		return nil, err
	}
	if bad != nil {
		return nil, models.Errorf(models.BadData, "a stored value can't be read: %w", bad)
	}
	f.Now = w.clock(now)
	return f, nil
}

// factsOf lists the reads of a need; each row is entered into f as it comes.
func factsOf(need *models.Need, f *models.Facts, bad *error) (calls []call) {
	add := func(n int, name string, read func(*columns), params ...[]byte) {
		if n > 0 {
			calls = append(calls, call{name: name, params: params, read: read})
		}
	}
	env := func(r models.TaskRef) int32 { return r.Env }
	id := func(r models.TaskRef) models.ID { return r.ID }
	add(len(need.Tasks), "fact_tasks", func(c *columns) {
		t := c.task()
		f.Tasks[models.TaskRef{Env: t.Env, ID: t.ID}] = t
	}, int4Array(need.Tasks, env), idArray(need.Tasks, id))
	add(len(need.IdemKeys), "fact_idem", func(c *columns) {
		t := c.task()
		f.IdemKeys[models.IdemRef{Env: t.Env, Key: t.IdemKey}] = t
	}, int4Array(need.IdemKeys, func(r models.IdemRef) int32 { return r.Env }), textArray(need.IdemKeys, func(r models.IdemRef) string { return r.Key }))
	add(len(need.Workflows), "fact_workflows", func(c *columns) {
		row := c.workflow()
		f.Workflows[models.TaskRef{Env: row.Env, ID: row.ID}] = row
	}, int4Array(need.Workflows, env), idArray(need.Workflows, id))
	add(len(need.Once), "fact_once", func(c *columns) {
		o := models.Once{Scope: c.text(), Key: c.text(), Request: c.id(), Made: c.json(), At: c.instant()}
		f.Once[models.OnceRef{Scope: o.Scope, Key: o.Key}] = o
	}, textArray(need.Once, func(r models.OnceRef) string { return r.Scope }), textArray(need.Once, func(r models.OnceRef) string { return r.Key }))
	add(len(need.Done), "fact_done", func(c *columns) {
		command := c.id()
		f.Done[command] = c.int8()
	}, idArray(need.Done, same))
	add(len(need.Stagings), "fact_stagings", func(c *columns) {
		s := c.staging()
		f.Stagings[s.ID] = s
	}, idArray(need.Stagings, same))
	add(len(need.Policies), "fact_inputs", func(c *columns) {
		ref := models.TaskRef{Env: c.int4(), ID: c.id()}
		if p := policyIn(c.raw()); p != nil {
			f.Policies[ref] = *p
		}
	}, int4Array(need.Policies, env), idArray(need.Policies, id))
	add(len(need.Tokens), "fact_tokens", func(c *columns) {
		a, err := c.attempt()
		if err != nil {
			*bad = err
		}
		f.Tokens[models.TokenRef{Env: a.Env, Task: a.Task, Token: a.Token}] = a
	}, int4Array(need.Tokens, func(r models.TokenRef) int32 { return r.Env }), idArray(need.Tokens, func(r models.TokenRef) models.ID { return r.Task }),
		idArray(need.Tokens, func(r models.TokenRef) models.ID { return r.Token }))
	add(len(need.Children), "fact_children", func(c *columns) {
		t := c.task()
		f.Children[models.ChildRef{Env: t.Env, Parent: t.Parent, Key: t.Key}] = t
	}, int4Array(need.Children, func(r models.ChildRef) int32 { return r.Env }), idArray(need.Children, func(r models.ChildRef) models.ID { return r.Parent }),
		textArray(need.Children, func(r models.ChildRef) string { return r.Key }))
	add(len(need.Watermarks), "fact_watermarks", func(c *columns) {
		m := models.Watermark{Env: c.int4(), Name: c.text(), Value: c.json(), Version: c.int8(), At: c.instant()}
		f.Watermarks[models.IdemRef{Env: m.Env, Key: m.Name}] = m
	}, int4Array(need.Watermarks, func(r models.IdemRef) int32 { return r.Env }), textArray(need.Watermarks, func(r models.IdemRef) string { return r.Key }))
	add(len(need.Dedupes), "fact_dedupes", func(c *columns) {
		d := models.Deduped{Dedupe: models.Dedupe{Key: c.text(), While: models.While(c.int2()), TTLSeconds: c.int4()}}
		d.Row = c.task()
		d.Env, d.Task = d.Row.Env, d.Row.ID
		f.Dedupes[models.IdemRef{Env: d.Env, Key: d.Key}] = d
	}, int4Array(need.Dedupes, func(r models.IdemRef) int32 { return r.Env }), textArray(need.Dedupes, func(r models.IdemRef) string { return r.Key }))
	calls = append(append(append(append(calls, judgedOf(need.Judged, f, bad)...), itemsOf(need.Items, f, bad)...), worksOf(need, f, bad)...), append(append(blockersOf(need.Blockers, f), feedsOf(need, f)...), choicesOf(need, f, bad)...)...)
	calls = append(calls, presumedOf(need.Tokens, f)...)
	return append(calls, slicesOf(need.Slices, f)...)
}

// slicesOf reads the next rows of cursors, with what their kind needs beside.
func slicesOf(needs []models.SliceNeed, f *models.Facts) (calls []call) {
	for i := range needs {
		calls = append(calls, sliceOf(&needs[i], f))
		if needs[i].Cursor.Patch != nil {
			calls = append(calls, payloadsOf(&needs[i], f))
		}
		if needs[i].Cursor.Wide > 0 {
			calls = append(calls, outsideOf(&needs[i], f)...)
		}
	}
	return calls
}

// sliceStatements say where the next rows of a cursor are found.
var sliceStatements = map[models.CursorKind]string{
	models.EnterStaged: "slice_staged", models.CancelWorkflow: "slice_workflow", models.RedriveDead: "slice_dead", models.DiscardDead: "slice_dead",
	models.OpenWorkflow: "slice_parked_flow", models.RedriveWorkflow: "slice_dead_flow", models.RankWorkflow: "slice_workflow",
	models.CancelChildren: "slice_children", models.BulkAction: "slice_listed",
}

// lastID follows every id.
var lastID = models.ID{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}

// payloadsOf reads the payloads of a slice's rows.
func payloadsOf(need *models.SliceNeed, f *models.Facts) call {
	return call{name: "slice_payloads", params: sliceParams(need), read: func(c *columns) {
		f.Payloads[models.TaskRef{Env: c.int4(), ID: c.id()}] = c.json()
	}}
}

// outsideOf reads whom outside their body a slice's rows wait for.
func outsideOf(need *models.SliceNeed, f *models.Facts) []call {
	return []call{{name: "slice_outside", params: sliceParams(need), read: func(c *columns) {
		e := models.Edge{Env: c.int4(), From: c.id(), To: c.id(), On: models.On(c.int2()), State: models.EdgeStaged}
		to := models.TaskRef{Env: e.Env, ID: e.To}
		f.Outside[to] = append(f.Outside[to], e)
	}}, {name: "slice_sources", params: sliceParams(need), read: func(c *columns) {
		t := c.task()
		f.Tasks[models.TaskRef{Env: t.Env, ID: t.ID}] = t
	}}}
}

func sliceParams(need *models.SliceNeed) [][]byte {
	cursor, until := &need.Cursor, need.Cursor.Until
	if until.IsZero() {
		until = lastID
	}
	return [][]byte{int4Param(cursor.Env), idParam(cursor.Target), idParam(cursor.After), idParam(until), int8Param(int64(need.Limit))}
}

func sliceOf(need *models.SliceNeed, f *models.Facts) call {
	cursor := need.Cursor
	f.Slices[cursor.ID] = nil
	return call{name: sliceStatements[cursor.Kind], read: func(c *columns) {
		f.Slices[cursor.ID] = append(f.Slices[cursor.ID], c.task())
	}, params: sliceParams(need)}
}

// policyIn is the retry policy that a task was submitted with; nil when it has none of its own.
func policyIn(input []byte) *models.RetryPolicy {
	var spec struct {
		Policy json.RawMessage `json:"retry_policy"`
	}
	if json.Unmarshal(input, &spec) != nil || len(spec.Policy) == 0 || string(spec.Policy) == "null" {
		return nil
	}
	policy := models.DefaultRetryPolicy() // what it leaves out is the default's
	if json.Unmarshal(spec.Policy, &policy) != nil {
		return nil
	}
	return &policy
}

func (c *columns) workflow() (w models.Workflow) {
	w.Env, w.ID, w.Name, w.State = c.int4(), c.id(), c.text(), models.WorkflowState(c.int2())
	n := 0
	elements(c.raw(), func(e []byte) {
		if n < len(w.Counts) {
			w.Counts[n] = (&columns{values: [][]byte{e}}).int4()
		}
		n++
	})
	w.Cancelling, w.Priority, w.Input = c.bool(), c.int2(), c.json()
	w.CreatedAt, w.FinishedAt, w.UpdatedAt = c.instant(), c.instant(), c.instant()
	w.Stops, w.Over, w.Gate = c.bool(), c.bool(), models.FlowGate(c.int2())
	w.Budget = budgetIn(c.raw())
	w.Depth, w.Grown, w.EndsAt, w.RerunOf = c.int4(), c.int4(), c.instant(), c.id()
	w.Used = models.Spend{CostMicro: c.int8(), Tokens: c.int8(), Attempts: c.int8(), Retries: c.int8()}
	w.Items = c.int4()
	return w
}

func (c *columns) staging() models.Staging {
	return models.Staging{ID: c.id(), Env: c.int4(), Tasks: c.int8(), At: c.instant(), Flipped: c.bool()}
}
