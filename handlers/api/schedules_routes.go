package api

import "nightshift/handlers"

const scheduleTag = "Schedules"

var (
	scheduleReads  = []string{handlers.SchedulesRead, handlers.SchedulesWrite}
	scheduleWrites = []string{handlers.SchedulesWrite}
)

func scheduleRoutes() []handlers.Route {
	const tag = scheduleTag
	return []handlers.Route{
		endpoint(post, "/v1/schedules/preview", scheduleReads, true, tag, "List when a rule would fire", previewSchedule, previewRequest{}, 200, previewAnswer{}),
	}
}
