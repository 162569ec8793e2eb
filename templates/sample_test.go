package templates

import (
	"fmt"
	"time"
)

var sampleNow = time.Date(2026, 3, 4, 2, 14, 30, 0, time.UTC)

func before(d time.Duration) time.Time { return sampleNow.Add(-d) }

func seconds(x float64) *float64 { return &x }

// nasty is what a name may hold and a page must survive; pictures show something tamer.
var nasty = `a/b?c=d&e"><script>alert(1)</script>`

func samplePage(name, path string) Page {
	return Page{
		Name: name, Path: path, Now: sampleNow, CSRF: "csrf-of-the-session",
		Viewer: Viewer{Email: "operator@nightshift.example", Role: "platform operator", Write: true, Admin: true, Schedules: true, Platform: true},
		Scope:  Scope{Tenant: "northwind", TenantName: "Northwind Research", Environment: "production", Production: true, Timezone: "Africa/Lusaka", Stream: "1", Carry: true},
		Tenants: []Choice{
			{Slug: "northwind", Name: "Northwind Research"}, {Slug: "larkspur", Name: "Larkspur Press"},
		},
		Environments: []Choice{
			{Slug: "production", Name: "production", Production: true}, {Slug: "staging", Name: "staging"},
		},
		DeadLetters: 48,
	}
}

func reader(p Page) Page {
	p.Viewer = Viewer{Email: "viewer@northwind.example", Role: "viewer"}
	p.Tenants, p.Scope.Carry = nil, false
	return p
}

func sampleTiles() []LaneTile {
	return []LaneTile{
		{Name: "realtime", Kind: "realtime", State: "open", Depth: 0, Running: 3, Limit: 40, InPerSecond: 2.1, OutPerSecond: 2.1, Depths: []int{0, 1, 0, 2, 0, 0, 1, 0}},
		{Name: "io", Kind: "io", State: "open", Depth: 214, OldestSeconds: 12, Running: 178, Limit: 200, InPerSecond: 31, OutPerSecond: 28.4, Depths: []int{20, 60, 80, 90, 140, 160, 190, 214}},
		{Name: "compute", Kind: "compute", State: "open", Depth: 1382, OldestSeconds: 768, Running: 12, Limit: 12, InPerSecond: 4.2, OutPerSecond: 9.7, EmptySeconds: seconds(251), Depths: []int{2400, 2260, 2100, 1980, 1800, 1690, 1500, 1382}},
		{Name: "batch", Kind: "batch", State: "held", Reason: "held for compute until 02:40", Depth: 23840, OldestSeconds: 5400, Running: 4, InPerSecond: 0.02, OutPerSecond: 1.4, EmptySeconds: seconds(17200), Depths: []int{25000, 24800, 24700, 24600, 24300, 24100, 24000, 23840}},
		{Name: "embed-nightly", Kind: "batch", State: "paused", Reason: "paused by operator: model is being changed", Depth: 412, OldestSeconds: 900, Running: 0, Limit: 8, Depths: []int{0, 100, 250, 300, 380, 412, 412, 412}},
	}
}

func sampleStates() []StateCount {
	return []StateCount{{State: "succeeded", Count: 41268}, {State: "running", Count: 197}, {State: "ready", Count: 25848}, {State: "pending", Count: 1204}, {State: "scheduled", Count: 12}, {State: "retry_wait", Count: 31}, {State: "dead_letter", Count: 48}, {State: "failed", Count: 6}, {State: "cancelled", Count: 19}, {State: "skipped", Count: 3}}
}

func sampleDead() []DeadGroup {
	return []DeadGroup{
		{
			Fingerprint: "invalid_input:not-utf8", Class: "invalid_input", Message: "the document is not text: 62 % of its first 4,096 bytes are not UTF-8",
			Count: 31, Types: []string{"document.chunk"}, Tenants: []string{"northwind"}, FirstSeen: before(50 * time.Minute), LastSeen: before(40 * time.Second), Hourly: []int{0, 0, 1, 4, 9, 17, 12, 31},
			Sample: DeadSample{
				Task: "task_01k9h2m3n4p5q6r7s8t9v0w1x2", Type: "document.chunk", Worker: Ref{ID: "wrk_01k9h2aaaa", Name: "shed-2"}, Version: "0.1.0", Attempts: 1,
				Error:   Failure{Class: "invalid_input", Message: "the document is not text: 62 % of its first 4,096 bytes are not UTF-8", Stack: "document.chunk: read src/archive/zip/testdata/dd.zip\n  at chunker.Open (chunk.go:88)\n  at chunker.Run (chunk.go:41)"},
				Payload: `{"document":"src/archive/zip/testdata/dd.zip","bytes":154,"sha256":"9f8e0c"}`,
			},
		},
		{
			Fingerprint: "provider_outage:503", Class: "provider_outage", Message: "embedding endpoint answered 503 three times in a row",
			Count: 14, Types: []string{"text.embed", "eval.retrieval"}, Tenants: []string{"northwind", "larkspur"}, FirstSeen: before(3 * time.Hour), LastSeen: before(12 * time.Minute), Hourly: []int{6, 5, 3, 0, 0, 0, 0, 0},
			Sample: DeadSample{Task: "task_01k9h2zzzzzzzzzzzzzzzzzzzz", Type: "text.embed", Attempts: 3, Error: Failure{Class: "provider_outage", Message: "embedding endpoint answered 503 three times in a row", Response: `{"error":{"message":"overloaded","type":"server_error"}}`}},
		},
		{
			Fingerprint: nasty, Class: "worker_lost", Message: "three workers were lost while running it", Count: 3, Types: []string{nasty}, FirstSeen: before(26 * time.Hour), LastSeen: before(2 * time.Hour), Hourly: []int{0, 1, 0, 0, 1, 0, 1, 0},
			Sample: DeadSample{Task: nasty, Type: nasty, Worker: Ref{ID: nasty}, Attempts: 3, Error: Failure{Class: "worker_lost", Message: nasty, Stack: nasty}, Payload: nasty},
		},
	}
}

func sampleWorkflows() []WorkflowRow {
	return []WorkflowRow{
		{ID: "wf_01k9h1v2w3x4y5z6a7b8c9d0e1", Name: "night of northwind", State: "running", CreatedAt: before(19 * time.Minute), Counts: []StateCount{{State: "succeeded", Count: 3120}, {State: "running", Count: 41}, {State: "ready", Count: 982}, {State: "pending", Count: 204}, {State: "dead_letter", Count: 31}}},
		{ID: "wf_01k9h1v2w3x4y5z6a7b8c9d0e2", Name: "night of larkspur", State: "running", CreatedAt: before(19 * time.Minute), Counts: []StateCount{{State: "succeeded", Count: 1240}, {State: "running", Count: 16}, {State: "ready", Count: 2610}, {State: "pending", Count: 480}}},
		{ID: "wf_01k9h1v2w3x4y5z6a7b8c9d0e3", Name: "reindex of the handbook", State: "paused", CreatedAt: before(4 * time.Hour), Counts: []StateCount{{State: "succeeded", Count: 80}, {State: "ready", Count: 120}}},
		{ID: "wf_01k9h1v2w3x4y5z6a7b8c9d0e4", Name: nasty, State: "failed", CreatedAt: before(26 * time.Hour), FinishedAt: before(25 * time.Hour), Counts: []StateCount{{State: "succeeded", Count: 18}, {State: "failed", Count: 1}, {State: "skipped", Count: 2}, {State: "dead_letter", Count: 1}}},
	}
}

func sampleNowView() NowView {
	var recent []Happening
	for i, word := range []string{"succeeded", "succeeded", "running", "retry_wait", "succeeded", "dead_letter", "running", "succeeded", "succeeded", "ready"} {
		texts := map[string]string{"succeeded": "succeeded in 1.2 s", "running": "started on shed-2", "retry_wait": "waits 4 s after timeout", "dead_letter": "stopped retrying: invalid_input", "ready": "is ready"}
		recent = append(recent, Happening{At: before(time.Duration(i*3) * time.Second), Subject: Ref{ID: fmt.Sprintf("task_01k9h2m3n4p5q6r7s8t9v0w1%02d", i), Name: []string{"document.chunk", "text.embed"}[i%2], State: word}, Path: "/tasks", Text: texts[word]})
	}
	return NowView{
		Lanes: sampleTiles(), States: sampleStates(), Dead: sampleDead(), Workflows: sampleWorkflows()[:3], Recent: recent,
		Workers: FleetSummary{Live: 4, Silent: 1, Draining: 1, Pools: []PoolUse{{Name: "cpu", Workers: 4, Slots: Use{38, 40}}, {Name: "gpu", Workers: 2, Slots: Use{3, 8}, VRAM: Use{61440, 98304}}}},
		Shares:  []ShareRow{{"northwind", 5, 0.722, 0.714}, {"larkspur", 2, 0.278, 0.286}},
	}
}

func sampleTasks() []TaskRow {
	states := []string{"running", "running", "ready", "retry_wait", "dead_letter", "succeeded", "pending", "scheduled", "succeeded", "failed", "cancel_requested", "cancelled", "expired", "skipped"}
	types := []string{"text.embed", "document.chunk", "index.update", "eval.retrieval", "document.chunk", "text.summarize"}
	var rows []TaskRow
	for i := 0; i < 28; i++ {
		state := states[i%len(states)]
		row := TaskRow{
			ID: fmt.Sprintf("task_01k9h2m3n4p5q6r7s8t9v0w%03d", i), Type: types[i%len(types)], State: state, Lane: []string{"batch", "compute", "io"}[i%3],
			Attempt: 1 + i%3, MaxAttempts: 3, CreatedAt: before(time.Duration(20+i*37) * time.Second), ReadyAt: before(time.Duration(19+i*37) * time.Second),
			Workflow: Ref{ID: "wf_01k9h1v2w3x4y5z6a7b8c9d0e1", Name: "night of northwind"},
		}
		if i%4 == 0 {
			row.Key = fmt.Sprintf("embed-%03d", i)
		}
		switch state {
		case "running", "cancel_requested":
			row.StartedAt, row.Worker = before(4200*time.Millisecond), Ref{ID: "wrk_1", Name: "shed-2"}
		case "succeeded", "failed", "dead_letter":
			row.StartedAt = row.ReadyAt.Add(1300 * time.Millisecond)
			row.FinishedAt, row.Worker = row.StartedAt.Add(2400*time.Millisecond), Ref{ID: "wrk_2", Name: "lantern-gpu"}
		case "ready":
			row.Waits = "workers_busy"
		case "pending":
			row.Waits = "dependencies"
		case "scheduled":
			row.Waits, row.ReadyAt = "run_at", time.Time{}
		}
		if state == "dead_letter" || state == "failed" || state == "retry_wait" {
			row.ErrorClass, row.Error = "timeout", "no answer from the embedding endpoint within 30 s, the last of 3 attempts"
		}
		rows = append(rows, row)
	}
	rows[3].ID, rows[3].Type, rows[3].Worker, rows[3].Workflow = nasty, nasty, Ref{ID: nasty, Name: nasty}, Ref{ID: nasty, Name: nasty}
	return rows
}

func sampleTasksView() TasksView {
	return TasksView{Total: "68,636 in all", States: sampleStates(), Rows: sampleTasks(), Types: []string{"text.embed", "document.chunk"}, Lanes: []string{"batch", "compute"}, Next: "b3BhcXVl"}
}
