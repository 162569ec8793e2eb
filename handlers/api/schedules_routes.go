package api

import "nightshift/handlers"

func scheduleRoutes() []handlers.Route {
	const tag = "Schedules"
	reads, writes := []string{handlers.SchedulesRead, handlers.SchedulesWrite}, []string{handlers.SchedulesWrite}
	trigger := endpoint(post, "/v1/schedules/:id/trigger", writes, true, tag, "Run a schedule now, paused or not; it moves nothing", triggerSchedule, reasonRequest{}, 201, RunView{})
	trigger.Doc.Query, trigger.Doc.Once, trigger.Doc.Replies = dryParam, true, map[int]any{200: RunDryView{}, 201: RunView{}}
	create := endpoint(post, "/v1/schedules", writes, true, tag, "Make a schedule", createSchedule, ScheduleInput{}, 201, ScheduleView{})
	create.Doc.Query, create.Doc.Once, create.Doc.Replies = dryParam, true, map[int]any{200: ScheduleDryView{}, 201: ScheduleView{}}
	backfill := endpoint(post, "/v1/schedules/:id/backfill", writes, true, tag, "Make up the occurrences of a range, at most 1,000 rows of work, or count them", backfillSchedule, backfillRequest{}, 202, BackfillView{})
	backfill.Doc.Query = dryParam
	backfill.Doc.Once, backfill.Doc.Replies = true, map[int]any{200: BackfillView{}, 202: BackfillView{}}
	move := endpoint(post, "/v1/schedules/:id/apply-suggestion", writes, true, tag, "Move a schedule to where the forecast suggests", applySuggestion, moveRequest{}, 200, MovedView{})
	move.Doc.Query = dryParam
	foresee := endpoint(get, "/v1/schedules/forecast", reads, true, tag, "What the schedules are going to ask for, where they meet, and where it is quieter", forecastSchedules, nil, 200, ForecastView{})
	foresee.Doc.Query = []handlers.Param{{Name: "hours", Type: "integer", About: "how far ahead, 1–168; 24 when left out"}}
	return []handlers.Route{
		backfill, foresee, move,
		endpoint(post, "/v1/schedules/preview", reads, true, tag, "List when a rule would fire", previewSchedule, previewRequest{}, 200, previewAnswer{}),
		create,
		listed(endpoint(get, "/v1/schedules", reads, true, tag, "List schedules", listSchedules, nil, 200, handlers.Page[ScheduleView]{}),
			handlers.Param{Name: "kind", Type: "string", Repeat: true, Enum: scheduleKinds},
			handlers.Param{Name: "enabled", Type: "boolean", About: "false: those that are paused or not enabled"},
			handlers.Param{Name: "q", Type: "string", About: "a part of the name"}),
		endpoint(get, "/v1/schedules/:id", reads, true, tag, "Read a schedule", getSchedule, nil, 200, ScheduleView{}),
		endpoint(patch, "/v1/schedules/:id", writes, true, tag, "Edit a schedule; what lies before is not made up", patchSchedule, ScheduleInput{}, 200, ScheduleView{}),
		endpoint(remove, "/v1/schedules/:id", writes, true, tag, "Remove a schedule; its work goes on", deleteSchedule, reasonRequest{}, 204, nil),
		endpoint(post, "/v1/schedules/:id/pause", writes, true, tag, "Pause a schedule: its occurrences are skipped", switchSchedule(false, "schedule.pause"), reasonRequest{}, 200, ScheduleView{}),
		endpoint(post, "/v1/schedules/:id/resume", writes, true, tag, "Let a schedule go on; what was missed is not made up", switchSchedule(true, "schedule.resume"), reasonRequest{}, 200, ScheduleView{}),
		trigger,
		listed(endpoint(get, "/v1/schedules/:id/runs", reads, true, tag, "List its occurrences and what became of each", listRuns, nil, 200, handlers.Page[RunView]{})),
		endpoint(get, "/v1/schedules/:id/runs/:run", reads, true, tag, "Read a run", getRun, nil, 200, RunView{}),
		listed(endpoint(get, "/v1/schedules/:id/runs/:run/taken", reads, true, tag, "List the triggers or items that a run took", listTaken, nil, 200, handlers.Page[TakenView]{})),
		listed(endpoint(get, "/v1/schedules/:id/versions", reads, true, tag, "List its versions", listVersions, nil, 200, handlers.Page[ScheduleVersionView]{})),
		endpoint(post, "/v1/schedules/:id/rollback", writes, true, tag, "Make an earlier version the newest", rollbackSchedule, rollbackRequest{}, 200, ScheduleView{}),
	}
}
