package postgres

import (
	"encoding/json"

	"nightshift/models"
)

// schedules sends what a batch made of them.
func schedules(pipe *pipeline, p *models.SchedulePlan) error {
	if len(p.Gone) > 0 {
		pipe.send(call{name: "delete_schedules", params: [][]byte{
			int4Array(p.Gone, func(r models.TaskRef) int32 { return r.Env }), idArray(p.Gone, func(r models.TaskRef) models.ID { return r.ID }),
		}})
	}
	// One statement can't write a row twice: a schedule that was edited twice in a batch takes two.
	for i := range p.Saved {
		if err := sendJSON(pipe, "save_schedules", p.Saved[i:i+1]); err != nil {
			return err
		}
	}
	for _, rare := range []struct {
		name  string
		n     int
		value any
	}{{"save_schedule_states", len(p.States), p.States}, {"save_runs", len(p.Runs), p.Runs}, {"save_variables", len(p.Vars), p.Vars}} {
		if rare.n > 0 {
			if err := sendJSON(pipe, rare.name, rare.value); err != nil {
				return err
			}
		}
	}
	if len(p.Tasks) > 0 {
		pipe.send(madeBy(p.Tasks))
	}
	return nil
}

func madeBy(list []models.ScheduleTask) call {
	return call{name: "insert_schedule_tasks", params: [][]byte{
		int4Array(list, func(t models.ScheduleTask) int32 { return t.Env }),
		idArray(list, func(t models.ScheduleTask) models.ID { return t.Schedule }),
		idArray(list, func(t models.ScheduleTask) models.ID { return t.Task }),
	}}
}

// loadSchedules reads what an engine keeps of them.
func loadSchedules(out *models.ScheduleSnapshot, bad *error) []call {
	return []call{
		{name: "load_schedules", read: func(c *columns) {
			row := models.Schedule{Env: c.int4(), ID: c.id(), Name: c.text()}
			for _, into := range []any{&row.Rule, &row.By} {
				if err := json.Unmarshal(c.raw(), into); err != nil {
					*bad = err
				}
			}
			row.CreatedAt, row.UpdatedAt, row.Version = c.instant(), c.instant(), c.int8()
			out.Schedules = append(out.Schedules, row)
		}},
		{name: "load_schedule_states", read: func(c *columns) {
			state := models.ScheduleState{
				Env: c.int4(), ID: c.id(), Enabled: c.bool(), PausedBy: c.text(), PauseReason: c.text(), Mark: c.instant(), Until: c.instant(),
				LastRun: c.id(), LastOutcome: c.text(), LastFor: c.instant(), LastLateMS: c.int8(), LastSuccess: c.instant(),
				LastEnd: c.instant(), Failures: c.int4(), Forced: c.bool(),
			}
			if err := json.Unmarshal(c.raw(), &state.Profile); err != nil {
				*bad = err
			}
			out.States = append(out.States, state)
		}},
		{name: "load_runs", read: func(c *columns) {
			out.Runs = append(out.Runs, models.Run{
				Env: c.int4(), ID: c.id(), Schedule: c.id(), ScheduledFor: c.instant(), Origin: c.text(), FiredAt: c.instant(),
				Outcome: c.text(), Cause: c.text(), Task: c.id(), State: models.State(c.int2()), LateMS: c.int8(), FinishedAt: c.instant(),
				Workflow: c.id(), DueAt: c.instant(), LateAt: c.instant(),
			})
		}},
	}
}

// worksOf reads what schedules do that are due, and the variables that their payloads ask for.
func worksOf(need *models.Need, f *models.Facts, bad *error) (calls []call) {
	if refs := need.Schedules; len(refs) > 0 {
		calls = append(calls, call{name: "fact_schedules", read: func(c *columns) {
			ref := models.TaskRef{Env: c.int4(), ID: c.id()}
			f.Schedules[ref] = models.ScheduleWork{Task: c.json(), Given: c.json()}
		}, params: [][]byte{
			int4Array(refs, func(r models.TaskRef) int32 { return r.Env }), idArray(refs, func(r models.TaskRef) models.ID { return r.ID }),
		}})
	}
	if len(need.Variables) > 0 {
		calls = append(calls, call{name: "fact_variables", read: func(c *columns) {
			v := models.Variables{Env: c.int4()}
			if err := json.Unmarshal(c.raw(), &v.Vars); err != nil {
				*bad = err
			}
			v.Version, v.At = c.int8(), c.instant()
			f.Variables[v.Env] = v
		}, params: [][]byte{int4Array(need.Variables, same)}})
	}
	return calls
}
