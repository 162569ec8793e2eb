package api

import "nightshift/handlers"

func scheduleRoutes() []handlers.Route {
	const tag = "Schedules"
	reads, writes := []string{handlers.SchedulesRead, handlers.SchedulesWrite}, []string{handlers.SchedulesWrite}
	trigger := endpoint(post, "/v1/schedules/:id/trigger", writes, true, tag, "Run a schedule now, paused or not; it moves nothing", triggerSchedule, reasonRequest{}, 201, RunView{})
	backfill := endpoint(post, "/v1/schedules/:id/backfill", writes, true, tag, "Make up the occurrences of a range, at most 1,000, or count them", backfillSchedule, backfillRequest{}, 202, BackfillView{})
	backfill.Doc.Once, backfill.Doc.Replies = true, map[int]any{200: BackfillView{}, 202: BackfillView{}}
	return []handlers.Route{
		backfill,
		endpoint(post, "/v1/schedules/preview", reads, true, tag, "List when a rule would fire", previewSchedule, previewRequest{}, 200, previewAnswer{}),
		endpoint(post, "/v1/schedules", writes, true, tag, "Make a schedule", createSchedule, ScheduleInput{}, 201, ScheduleView{}),
		listed(endpoint(get, "/v1/schedules", reads, true, tag, "List schedules", listSchedules, nil, 200, handlers.Page[ScheduleView]{})),
		endpoint(get, "/v1/schedules/:id", reads, true, tag, "Read a schedule", getSchedule, nil, 200, ScheduleView{}),
		endpoint(patch, "/v1/schedules/:id", writes, true, tag, "Edit a schedule; what lies before is not made up", patchSchedule, ScheduleInput{}, 200, ScheduleView{}),
		endpoint(remove, "/v1/schedules/:id", writes, true, tag, "Remove a schedule; its work goes on", deleteSchedule, nil, 204, nil),
		endpoint(post, "/v1/schedules/:id/pause", writes, true, tag, "Pause a schedule: its occurrences are skipped", switchSchedule(false, "schedule.pause"), reasonRequest{}, 200, ScheduleView{}),
		endpoint(post, "/v1/schedules/:id/resume", writes, true, tag, "Let a schedule go on; what was missed is not made up", switchSchedule(true, "schedule.resume"), reasonRequest{}, 200, ScheduleView{}),
		trigger,
		listed(endpoint(get, "/v1/schedules/:id/runs", reads, true, tag, "List its occurrences and what became of each", listRuns, nil, 200, handlers.Page[RunView]{})),
		listed(endpoint(get, "/v1/schedules/:id/versions", reads, true, tag, "List its versions", listVersions, nil, 200, handlers.Page[ScheduleVersionView]{})),
		endpoint(post, "/v1/schedules/:id/rollback", writes, true, tag, "Make an earlier version the newest", rollbackSchedule, rollbackRequest{}, 200, ScheduleView{}),
	}
}
