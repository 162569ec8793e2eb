package api

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

func readSchedule(d *handlers.Deps, c *fiber.Ctx) (postgres.ScheduleRow, error) {
	name, err := handlers.PathParam(c, "id")
	if err != nil {
		return postgres.ScheduleRow{}, err
	}
	caller := handlers.CallerOf(c)
	return d.World.Schedule(c.UserContext(), caller.Scope(), caller.Env, name)
}

// showSchedule reads a schedule as it stands now and answers it.
func showSchedule(d *handlers.Deps, c *fiber.Ctx, id models.ID) error {
	caller := handlers.CallerOf(c)
	row, err := d.World.Schedule(c.UserContext(), caller.Scope(), caller.Env, id.Text(models.SchedulePrefix))
	if err != nil {
		return err
	}
	handlers.SetETag(c, row.Version)
	return handlers.Answer(c, fiber.StatusOK, viewSchedule(caller.Environment, d.Now())(row))
}

func createSchedule(d *handlers.Deps, c *fiber.Ctx) error {
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	text, err := handlers.ReadBody(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	row := models.Schedule{Env: caller.Env, ID: d.Mint(), Rule: plain()}
	enabled, err := readScheduleBody(d, c, text, &row)
	if err != nil {
		return err
	}
	if dry {
		row.Rule.Disabled = enabled != nil && !*enabled
		return rehearseSchedule(d, c, &row)
	}
	made := func(id models.ID) (*handlers.Made, error) {
		row, err := d.World.Schedule(c.UserContext(), caller.Scope(), caller.Env, id.Text(models.SchedulePrefix))
		if err != nil {
			return nil, err
		}
		v := viewSchedule(caller.Environment, d.Now())(row)
		return &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/schedules/" + v.ID, Body: v}, nil
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		answer, err := configure(d, c, &engine.Configure{Schedule: &row, Enabled: enabled, New: true, Once: once, Action: "schedule.create"})
		if err != nil {
			return nil, err
		}
		if answer.Replay {
			return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) { return made(answer.Made[0]) }}, nil
		}
		return made(answer.Schedule.ID)
	})
}

func listSchedules(d *handlers.Deps, c *fiber.Ctx) error {
	q, ids, err := idList(d, c, "kind", "enabled", "=q")
	if err != nil {
		return err
	}
	filter, err := scheduleFilter(q)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	rows, total, err := d.World.Schedules(c.UserContext(), caller.Scope(), caller.Env, ids, filter)
	if err != nil {
		return err
	}
	return answerIDs(c, q, rows, total, viewSchedule(caller.Environment, d.Now()), func(r postgres.ScheduleRow) models.ID { return r.ID })
}

// scheduleFilter reads which schedules are asked for.
func scheduleFilter(q *handlers.ListQuery) (f postgres.ScheduleFilter, err error) {
	var k handlers.Check
	f.Kinds = q.Values["kind"]
	for _, kind := range f.Kinds {
		k.OneOf("query.kind", kind, scheduleKinds...)
	}
	if values := q.Values["enabled"]; len(values) > 0 {
		on := values[0] == "true"
		f.On = &on
		k.That(len(values) == 1 && (on || values[0] == "false"), "query.enabled", "must be true or false")
	}
	if values := q.Values["q"]; len(values) > 0 {
		f.Name = strings.ToLower(values[0])
		k.That(len(values) == 1, "query.q", "has more than one value")
		k.Text("query.q", f.Name, 0, 128)
	}
	return f, k.Err()
}

// idList reads a list's query whose rows are ordered by their id.
func idList(d *handlers.Deps, c *fiber.Ctx, filters ...string) (*handlers.ListQuery, postgres.IDList, error) {
	q, err := handlers.ReadList(d, c, filters...)
	if err != nil {
		return nil, postgres.IDList{}, err
	}
	ids := postgres.IDList{Desc: q.Desc, Count: q.Count, Limit: q.Limit + 1}
	_, err = q.After(&ids.After)
	return q, ids, err
}

func answerIDs[R, T any](c *fiber.Ctx, q *handlers.ListQuery, rows []R, total int64, show func(R) T, id func(R) models.ID) error {
	page, err := handlers.PageOf(q, rows, show, func(r R) any { return id(r) })
	if err != nil {
		return err
	}
	if q.Count {
		page.Total = &handlers.Total{Value: total, Relation: "eq"}
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}

func getSchedule(d *handlers.Deps, c *fiber.Ctx) error {
	row, err := readSchedule(d, c)
	if err != nil {
		return err
	}
	handlers.SetETag(c, row.Version)
	return handlers.Answer(c, fiber.StatusOK, viewSchedule(handlers.CallerOf(c).Environment, d.Now())(row))
}

// editSchedule asks for a change of what stands and answers what it made.
func editSchedule(d *handlers.Deps, c *fiber.Ctx, change func(*postgres.ScheduleRow) (*engine.Configure, error)) (models.ID, error) {
	read := func() (postgres.ScheduleRow, int64, error) {
		row, err := readSchedule(d, c)
		return row, row.Version, err
	}
	answer, err := edit(d, c, read, change)
	if err != nil {
		return models.ID{}, err
	}
	return answer.Schedule.ID, nil
}

func patchSchedule(d *handlers.Deps, c *fiber.Ctx) error {
	text, err := handlers.ReadBody(c)
	if err != nil {
		return err
	}
	id, err := editSchedule(d, c, func(row *postgres.ScheduleRow) (*engine.Configure, error) {
		enabled, err := readScheduleBody(d, c, text, &row.Schedule)
		return &engine.Configure{Schedule: &row.Schedule, Enabled: enabled, Action: "schedule.edit"}, err
	})
	if err != nil {
		return err
	}
	return showSchedule(d, c, id)
}

func deleteSchedule(d *handlers.Deps, c *fiber.Ctx) error {
	reason, err := givenReason(c)
	if err != nil {
		return err
	}
	_, err = editSchedule(d, c, func(row *postgres.ScheduleRow) (*engine.Configure, error) {
		return &engine.Configure{DeleteSchedule: &models.TaskRef{Env: row.Env, ID: row.ID}, Action: "schedule.delete", Reason: reason}, nil
	})
	if err != nil {
		return err
	}
	return handlers.NoContent(c)
}

// switchSchedule is the handler of pause and resume.
func switchSchedule(on bool, action string) func(*handlers.Deps, *fiber.Ctx) error {
	return func(d *handlers.Deps, c *fiber.Ctx) error {
		reason, err := givenReason(c)
		if err != nil {
			return err
		}
		id, err := editSchedule(d, c, func(row *postgres.ScheduleRow) (*engine.Configure, error) {
			return &engine.Configure{SwitchSchedule: &engine.SwitchSchedule{Env: row.Env, ID: row.ID, Enabled: on}, Action: action, Reason: reason}, nil
		})
		if err != nil {
			return err
		}
		return showSchedule(d, c, id)
	}
}

// triggerSchedule runs a schedule now.
func triggerSchedule(d *handlers.Deps, c *fiber.Ctx) error {
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	reason, err := givenReason(c)
	if err != nil {
		return err
	}
	row, err := readSchedule(d, c)
	if err != nil {
		return err
	}
	if dry {
		return rehearseRun(d, c, &row)
	}
	caller := handlers.CallerOf(c)
	made := func(id models.ID) (*handlers.Made, error) {
		run, err := d.World.Run(c.UserContext(), caller.Scope(), caller.Env, id)
		if err != nil {
			return nil, err
		}
		show, err := viewRuns(d, c, []postgres.RunRow{run})
		if err != nil {
			return nil, err
		}
		return &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/schedules/" + row.ID.Text(models.SchedulePrefix) + "/runs/" + run.ID.Text(models.RunPrefix), Body: show(run)}, nil
	}
	run := d.Mint()
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		answer, err := ask(d, c, func(cmd *engine.Command) {
			cmd.Trigger = &engine.Trigger{Env: row.Env, Schedule: row.ID, Run: run, Rows: engine.RunRows(&row.Rule), Reason: reason, Once: once}
		})
		if err != nil {
			return nil, err
		}
		if answer.Replay {
			return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) { return made(answer.Made[0]) }}, nil
		}
		return made(answer.Made[0])
	})
}

func listRuns(d *handlers.Deps, c *fiber.Ctx) error {
	q, ids, err := idList(d, c)
	if err != nil {
		return err
	}
	row, err := readSchedule(d, c)
	if err != nil {
		return err
	}
	runs, total, err := d.World.Runs(c.UserContext(), handlers.CallerOf(c).Scope(), models.TaskRef{Env: row.Env, ID: row.ID}, ids)
	if err != nil {
		return err
	}
	show, err := viewRuns(d, c, runs)
	if err != nil {
		return err
	}
	return answerIDs(c, q, runs, total, show, func(r postgres.RunRow) models.ID { return r.ID })
}

func listVersions(d *handlers.Deps, c *fiber.Ctx) error {
	q, rows, err := rowList(d, c)
	if err != nil {
		return err
	}
	row, err := readSchedule(d, c)
	if err != nil {
		return err
	}
	of, scope := models.TaskRef{Env: row.Env, ID: row.ID}, handlers.CallerOf(c).Scope()
	list, total, err := d.World.ScheduleVersions(c.UserContext(), scope, of, rows)
	if err != nil {
		return err
	}
	before := map[int64]*models.Schedule{}
	for i := range list {
		before[list[i].Version+1] = &list[i]
	}
	for i := range list {
		if n := list[i].Version; before[n] == nil && n > 1 { // on another page
			v, err := d.World.ScheduleVersion(c.UserContext(), scope, of, n-1)
			if err != nil {
				return err
			}
			before[n] = &v
		}
	}
	return answerRows(c, q, list, total, func(v models.Schedule) ScheduleVersionView { return viewVersion(&v, before[v.Version]) },
		func(v models.Schedule) int64 { return v.Version })
}

type rollbackRequest struct {
	Version int64                `json:"version" required:"true"`
	Reason  handlers.Opt[string] `json:"reason" maxLength:"1000" doc:"kept in the audit"`
}

// rollbackSchedule makes an earlier version the newest.
func rollbackSchedule(d *handlers.Deps, c *fiber.Ctx) error {
	var in rollbackRequest
	if err := handlers.Bind(c, &in); err != nil {
		return err
	}
	if err := checkReason(in.Reason.Or(""), false); err != nil {
		return err
	}
	id, err := editSchedule(d, c, func(row *postgres.ScheduleRow) (*engine.Configure, error) {
		caller := handlers.CallerOf(c)
		old, err := d.World.ScheduleVersion(c.UserContext(), caller.Scope(), models.TaskRef{Env: row.Env, ID: row.ID}, in.Version)
		if models.CodeOf(err) == models.NotFound {
			return nil, models.Invalid("body.version", "there is no version %d", in.Version)
		}
		if err != nil {
			return nil, err
		}
		before := row.Rule
		row.Name, row.Rule, row.Work = old.Name, old.Rule, old.Work
		return &engine.Configure{Schedule: &row.Schedule, Action: "schedule.rollback", Reason: in.Reason.Or("")}, checkRule(&row.Schedule, before, d.Now())
	})
	if err != nil {
		return err
	}
	return showSchedule(d, c, id)
}

// changed are the fields in which two versions differ, by name.
func changed(before, after *models.Schedule) []FieldChange {
	fields := func(s *models.Schedule) map[string]json.RawMessage {
		out := map[string]json.RawMessage{}
		text, err := json.Marshal(viewRule(&s.Rule, &s.Work))
		if err == nil {
			_ = json.Unmarshal(text, &out) // it was just written
		}
		out["name"], _ = json.Marshal(s.Name) // texts and truths always encode
		out["enabled"], _ = json.Marshal(!s.Rule.Disabled)
		return out
	}
	was, is := fields(before), fields(after)
	list := []FieldChange{}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if !bytes.Equal(was[name], is[name]) {
			list = append(list, FieldChange{name, was[name], is[name]})
		}
	}
	return list
}
