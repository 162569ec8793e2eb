package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// schedule makes a schedule, edits, pauses, runs or removes one, or makes up what lies behind.
func (r *run) schedule() *engine.Command {
	if len(r.scheduled) < 4 {
		ref := models.TaskRef{Env: r.env(), ID: r.id()}
		r.scheduled = append(r.scheduled, ref)
		return r.configure(&engine.Configure{Schedule: r.newSchedule(ref), New: true, Action: "schedule.create"})
	}
	ref := pick(r, r.scheduled)
	switch r.rng.IntN(8) {
	case 0:
		row := r.newSchedule(ref)
		on := r.chance(50)
		return r.configure(&engine.Configure{Schedule: row, Enabled: &on, Action: "schedule.edit"})
	case 1, 2:
		return r.configure(&engine.Configure{SwitchSchedule: &engine.SwitchSchedule{Env: ref.Env, ID: ref.ID, Enabled: r.chance(70)}, Action: "schedule.switch", Reason: "asked for"})
	case 3:
		r.scheduled = slices.DeleteFunc(r.scheduled, func(o models.TaskRef) bool { return o == ref })
		return r.configure(&engine.Configure{DeleteSchedule: &ref, Action: "schedule.delete"})
	case 4:
		to := r.now.Add(-time.Duration(r.rng.IntN(100)) * time.Second)
		return r.command(&engine.Command{Backfill: &engine.Backfill{
			Env: ref.Env, Schedule: ref.ID, ID: r.id(), From: to.Add(-time.Duration(r.rng.IntN(60)) * time.Second), To: to, Overlap: pick(r, overlaps),
		}})
	}
	return r.command(&engine.Command{Trigger: &engine.Trigger{Env: ref.Env, Schedule: ref.ID, Run: r.id()}})
}

var overlaps = []string{"skip", "queue_one", "allow", "cancel_previous"}

func (r *run) newSchedule(ref models.TaskRef) *models.Schedule {
	text, err := json.Marshal(engine.NewTask{
		Class: models.Class{Type: pick(r, []string{"a", "b.c"})}, Priority: int16(r.rng.IntN(100)), MaxAttempts: 1 + r.rng.Int32N(2),
		Input: json.RawMessage(`{"description":"made anew"}`), Payload: json.RawMessage(`{"for":"{{scheduled_for}}"}`),
	})
	r.must(err)
	row := &models.Schedule{Env: ref.Env, ID: ref.ID, Name: fmt.Sprintf("s%x", ref.ID[10:]), Work: models.ScheduleWork{Task: text, Given: json.RawMessage(`{}`)}}
	row.Rule = models.ScheduleRule{
		Kind: "interval", EverySeconds: 2 + r.rng.Int64N(40), FromEnd: r.chance(20), Misfire: pick(r, []string{"skip", "run_once", "catch_up"}),
		GraceSeconds: r.rng.Int64N(30), CatchUp: r.rng.Int64N(5), Overlap: pick(r, overlaps), MostFailures: r.rng.Int32N(3),
		JitterSeconds: r.rng.Int64N(5), ExpireSeconds: r.rng.Int64N(2) * 60,
	}
	r.fanOut(row)
	if r.chance(30) {
		row.Rule.Kind, row.Rule.Expression, row.Rule.EverySeconds, row.Rule.FromEnd = "cron", "*/7 * * * * *", 0, false
	}
	if r.chance(40) {
		row.Rule = r.eventRule(row.Rule)
	}
	return row
}

// fanOut lets a run be a workflow, or several partitions, and ask for what is set elsewhere.
func (r *run) fanOut(row *models.Schedule) {
	t, err := engine.ReadTemplate(row.Work.Task)
	r.must(err)
	row.Rule.FanOut = 1
	if r.chance(40) {
		t.Workflow = &engine.NewWorkflow{Name: "made anew", Priority: 20, Stops: r.chance(20), Input: json.RawMessage(`{}`)}
		t.Tasks[0].ID, t.Tasks[0].Key = r.id(), "first"
		next := t.Tasks[0]
		next.ID, next.Key, next.DependsOn = r.id(), "next", []engine.Dependency{{Task: t.Tasks[0].ID, On: pick(r, []models.On{models.OnSucceeded, models.OnFinished})}}
		t.Tasks = append(t.Tasks, next)
		row.Rule.Workflow, row.Rule.FanOut = true, 2
	}
	if r.chance(30) {
		row.Rule.Partitions = 1 + r.rng.Int32N(3)
		row.Rule.FanOut *= row.Rule.Partitions
	}
	if r.chance(20) {
		t.Tasks[0].Payload = json.RawMessage(`{"at":"{{watermark.docs}}"}`)
		row.Rule.Marks = []string{"docs"}
	}
	kept := any(t)
	if t.Workflow == nil {
		kept = t.Tasks[0]
	}
	row.Work.Task, err = json.Marshal(kept)
	r.must(err)
}
