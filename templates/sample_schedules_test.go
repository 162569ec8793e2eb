package templates

import "time"

func sampleSchedule() ScheduleView {
	at := sampleNow.Add(3 * time.Hour)
	version := VersionRow{Version: 2, At: sampleNow.Add(-time.Hour), By: nasty, Changes: []Change{{Name: "description", Before: "null", After: nasty}}}
	current := version
	current.Version, current.Current = 3, true
	return ScheduleView{
		ScheduleRow: ScheduleRow{
			ID: "sch_01j2h6m7kfe0vbn3w9r5t8xyz9", Name: "nightly-report", Words: "At 02:30", Kind: "cron", Timezone: "Europe/Lisbon", PausedBy: "usr_1", Reason: nasty,
			NextAt: at, Failures: 2, P50: 12.4, P95: 41, Marks: []RunMark{{"succeeded", "1 Jan: succeeded"}, {"failed", nasty}, {"skipped", "skipped overlap"}},
			Lately: Lately{Tone: "skipped", Words: "skipped overlap", At: sampleNow.Add(-time.Hour), Missed: 2, Why: "skipped overlap: " + nasty},
		},
		Description: nasty, Facts: []Pair{{"Expression", "30 2 * * *"}, {"Owner", nasty}}, Version: 3, Task: `{"type": "report.write"}`,
		Next: PreviewView{Words: "At 02:30", Rows: []NextRun{{At: at, Local: "Tue 1 Dec 2026 02:30:00 +00:00", Tenant: "Tue 1 Dec 04:30 +02:00", Note: "the clock jumps over it"}}, Notes: []string{nasty}},
		Runs: []RunRow{
			{ID: "run_1", ScheduledFor: at, Local: "Tue 1 Dec 02:30", Origin: "manual", Outcome: "dispatched", Task: Ref{ID: "task_1"}, State: "succeeded", Late: 0.2, Tone: "succeeded"},
			{ID: "run_2", ScheduledFor: at, Local: "Mon 30 Nov 02:30", Origin: "timer", Outcome: "skipped_overlap", Cause: nasty, Tone: "skipped"},
		},
		Versions: []VersionRow{current, version}, LastFor: sampleNow.Add(-time.Hour), LastOutcome: "dispatched", Late: 0.2,
	}
}

func sampleForm() ScheduleForm {
	return ScheduleForm{
		ID: "sch_1", Version: "3", Zones: []string{"UTC"}, Lanes: []string{nasty}, Theirs: sampleSchedule().Versions,
		Values: map[string]string{"name": nasty, "kind": "cron", "expression": nasty, "task_payload": nasty, "task_more": nasty},
		Wrong:  map[string]string{"expression": nasty, "task_payload": nasty, "event_name": nasty, "workflow": nasty, "partitions": nasty},

		Freezes: []Freeze{{From: sampleNow, To: sampleNow.Add(time.Hour), Reason: nasty}},
	}
}

func sampleSettings() SettingsView {
	return SettingsView{
		Keys: []KeyRow{{ID: "key_01j2h6m7kfe0vbn3w9r5t8xyz9", Name: nasty, Scopes: []string{"tasks:read", "tasks:write"}, CreatedBy: nasty, CreatedAt: sampleNow}},
		Form: KeyForm{
			Values: map[string]string{"name": nasty}, Scopes: []Tick{{Name: "tasks:read", About: "see tasks", On: true}}, Once: "form_1",
			Environments: []Tick{{Name: "production"}, {Name: "staging", On: true}}, Wrong: map[string]string{"name": nasty},
		},
		Made: &MadeKey{Name: nasty, ID: "key_1", Secret: "not-a-secret"},
	}
}

func sampleDocs() DocsView {
	field := DocsField{Name: nasty, In: "query", Type: DocsType{"list of ", "Problem", " or null"}, Required: true, About: nasty, Values: []string{nasty}}
	body := DocsBody{Status: "200", About: "OK", Content: "application/json", Type: DocsType{Schema: "Problem"}, Fields: []DocsField{field}}
	return DocsView{
		About: nasty, Version: "1", Schemas: []DocsSchema{{Name: "Problem", Fields: []DocsField{field}}},
		Tags: []DocsTag{{Name: "Tasks", Anchor: "tag-Tasks", Operations: []DocsOperation{{
			ID: "get_tasks", Method: "GET", Path: "/v1/tasks", Summary: nasty, Detail: []string{nasty}, Params: []DocsField{field}, Body: &body,
			Replies: []DocsBody{body}, Curl: nasty,
		}}}},
	}
}

func sampleForecast() *ForecastView {
	v := &ForecastView{From: sampleNow, Capacity: 8, More: 2, Collisions: []CollisionRow{
		{From: sampleNow.Add(2 * time.Hour), To: sampleNow.Add(140 * time.Minute), Peak: 11, Over: true, Count: 4, ID: "sch_1", Name: nasty, MoveTo: sampleNow.Add(3 * time.Hour), PeakAfter: 7},
		{From: sampleNow.Add(9 * time.Hour), To: sampleNow.Add(9*time.Hour + time.Minute), Peak: 2.5, Count: 2},
	}}
	for i := range 288 {
		at, n := sampleNow.Truncate(5*time.Minute).Add(time.Duration(i)*5*time.Minute), float64(i%12/9*2)
		if i >= 24 && i < 28 {
			n = 9
		}
		v.Slots = append(v.Slots, ForecastSlot{at, n, n * 1.25})
	}
	return v
}
