package templates

import (
	"fmt"
	"time"
)

func sampleTask() TaskView {
	return TaskView{
		ID: "task_01k9h2m3n4p5q6r7s8t9v0w1x2", Type: "text.embed", Key: "embed-014", State: "retry_wait", Kind: "compute", Lane: "compute", Priority: 50,
		Attempt: 2, MaxAttempts: 5, AttemptsUsed: 2, Description: "Vectors of the sections 1,400 to 1,499 of the handbook",
		CreatedAt: before(14 * time.Minute), ReadyAt: before(13 * time.Minute), StartedAt: before(70 * time.Second), NextAttemptAt: sampleNow.Add(23 * time.Second), Deadline: sampleNow.Add(2 * time.Hour),
		Workflow: Ref{ID: "wf_01k9h1v2w3x4y5z6a7b8c9d0e1", Name: "night of northwind", State: "running"},
		Steps: []Step{
			{State: "pending", At: before(14 * time.Minute)},
			{State: "ready", At: before(13 * time.Minute)},
			{State: "running", At: before(9 * time.Minute)},
			{State: "retry_wait", At: before(8 * time.Minute)},
			{State: "ready", At: before(7 * time.Minute), Times: 2},
			{State: "running", At: before(70 * time.Second), Times: 2},
			{State: "retry_wait", At: before(37 * time.Second), Times: 2},
		},
		Why: []Reason{
			{Code: "run_at", Detail: "The second attempt failed with timeout; the third starts after the wait of its retry policy.", Until: sampleNow.Add(23 * time.Second)},
			{Code: "concurrency_key", Detail: "Key account:42 is held by task_01k9h2zz, started 40 s ago on lantern-gpu.", Link: "/tasks/task_01k9h2zz"},
		},
		Position: 3, StartsAt: sampleNow.Add(45 * time.Second),
		Attempts: []Attempt{
			{Number: 1, Outcome: "lost", Worker: Ref{ID: "wrk_1", Name: "shed-1"}, Version: "0.1.0", StartedAt: before(9 * time.Minute), FinishedAt: before(8 * time.Minute), Error: &Failure{Class: "worker_lost", Message: "its worker was silent for longer than its lease"}},
			{
				Number: 2, Outcome: "failed", Worker: Ref{ID: "wrk_2", Name: "lantern-gpu"}, Version: "0.1.0", Model: "minilm", StartedAt: before(70 * time.Second), FinishedAt: before(37 * time.Second),
				Error: &Failure{Class: "timeout", Message: "no answer from the embedding endpoint within 30 s", Stack: "text.embed: POST /embeddings\n  at embed.call (embed.go:120)\n  at embed.Run (embed.go:61)"}, Usage: []Pair{{"tokens in", "48,210"}, {"cost", "$0.004821"}, {"GPU", "31 s"}},
			},
		},
		Progress: `{"done":62,"total":100,"section":"handbook/1462"}`,
		Payload:  `{"model":"minilm","sections":["handbook/1400","handbook/1401","handbook/1402"],"options":{"normalize":true,"dims":384,"note":null,"ratio":0.25},"token":"••••"}`,
		Result:   "", Resources: []Pair{{"CPU", "2"}, {"Memory", "4 GB"}, {"GPU", "1 × 16 GB"}},
		Rules:  []Pair{{"Timeout", "60 s soft, 120 s hard"}, {"Retries", "5, exponential from 2 s to 2 min, jitter"}, {"Keys", "account:42 (1)"}, {"Trace", "4bf92f3577b34da6a3ce929d0e0e4736"}},
		Labels: []Pair{{"customer", "a"}, {"canary", "true"}},
		Cost:   &Cost{EstimatedUSD: 0.02, ActualUSD: 0.004821, TokensIn: 48210},
		Dependencies: []Ref{
			{ID: "task_a", Name: "chunk-013", State: "succeeded"}, {ID: "task_b", Name: "chunk-014", State: "succeeded", Note: "on finished"},
		},
		Dependants: []Ref{{ID: "task_c", Name: "index", State: "pending"}},
		Cancel:     true, Retry: false, Discard: false,
		Curl: "curl -sS -X POST https://nightshift.example/v1/tasks \\\n  -H \"Authorization: Bearer $TOKEN\" \\\n  -d '{\"type\":\"text.embed\",\"payload\":{\"model\":\"minilm\"}}'",
	}
}

func sampleDeadTask() TaskView {
	v := sampleTask()
	v.ID, v.State, v.Why, v.Position, v.StartsAt, v.Progress = nasty, "dead_letter", nil, 0, time.Time{}, ""
	v.Steps = append(v.Steps, Step{State: "ready", At: before(30 * time.Second), Times: 3}, Step{State: "running", At: before(28 * time.Second), Times: 3}, Step{State: "dead_letter", At: before(20 * time.Second)})
	v.Error = &Failure{Class: "invalid_input", Message: "the document is not text: 62 % of its first 4,096 bytes are not UTF-8", Stack: "document.chunk: read testdata/dd.zip\n  at chunk.go:88"}
	v.Retry, v.Discard, v.Payload = true, true, "not JSON "+nasty
	return v
}

// sampleNight is the DAG of a night: ingest, chunks, embeddings, index, checks.
func sampleNight(width int) ([]Node, []Edge) {
	nodes := []Node{{ID: "task_ingest", Key: "ingest", Type: "document.ingest", State: "succeeded"}}
	var edges []Edge
	for i := 0; i < width; i++ {
		chunk, embed := fmt.Sprintf("task_chunk%d", i), fmt.Sprintf("task_embed%d", i)
		states := [2]string{"succeeded", "succeeded"}
		switch {
		case i == width/3:
			states = [2]string{"dead_letter", "pending"}
		case i > width*2/3:
			states = [2]string{"running", "pending"}
		case i > width/2:
			states[1] = "running"
		}
		nodes = append(nodes, Node{chunk, fmt.Sprintf("chunk-%03d", i), "document.chunk", states[0]}, Node{embed, fmt.Sprintf("embed-%03d", i), "text.embed", states[1]})
		edges = append(edges, Edge{From: "task_ingest", To: chunk, Fired: true}, Edge{From: chunk, To: embed, Fired: states[0] == "succeeded"}, Edge{From: embed, To: "task_index", On: "finished", Fired: states[1] == "succeeded"})
	}
	nodes = append(nodes, Node{"task_index", "index", "index.update", "pending"}, Node{"task_warm", "warm", "cache.warm", "pending"}, Node{"task_eval", "evaluate", "eval.retrieval", "pending"}, Node{"task_report", "report", "report.write", "pending"})
	edges = append(edges, Edge{From: "task_index", To: "task_warm"}, Edge{From: "task_index", To: "task_eval"}, Edge{From: "task_warm", To: "task_report"}, Edge{From: "task_eval", To: "task_report"})
	return nodes, edges
}

func sampleWorkflow(width int) WorkflowView {
	v := WorkflowView{
		WorkflowRow: sampleWorkflows()[0], OnFailure: "continue", Labels: []Pair{{"night", "2026-03-04"}}, Tasks: sampleTasks()[:10], More: 4368, Pause: true, Cancel: true, Retry: true,
		Budget: []Meter{{"tasks", "4,378", "10,000", 0.4378}, {"cost", "$1.84", "$2.00", 0.92}, {"run time", "19 min", "2 h 00 min", 0.158}},
	}
	v.Nodes, v.Edges = sampleNight(width)
	return v
}

func sampleWorkers() WorkersView {
	cards := []WorkerCard{
		{ID: "wrk_01k9h2aaaaaaaaaaaaaaaaaaaa", Name: "shed-1", State: "live", Pool: "cpu", Version: "0.1.0", Slots: []NamedUse{{"slots", Use{8, 8}}}, CPU: Use{7.5, 8}, MemoryMB: Use{9200, 16384}, Types: []string{"document.*", "text.*", "index.update"}, Labels: []Pair{{"region", "eu"}}, Leases: 8, LastSeen: before(3 * time.Second), LeaseSeconds: 30, RegisteredAt: before(2 * time.Hour), Drain: true, Remove: true, Running: []Ref{{ID: "task_1", Name: "embed-014"}, {ID: nasty, Name: nasty}}},
		{ID: "wrk_01k9h2bbbbbbbbbbbbbbbbbbbb", Name: "shed-2", State: "live", Pool: "cpu", Version: "0.1.0", Slots: []NamedUse{{"io", Use{41, 200}}, {"compute", Use{2, 2}}}, CPU: Use{2, 4}, MemoryMB: Use{1200, 8192}, Types: []string{"http.request", "command"}, Leases: 43, LastSeen: before(7 * time.Second), LeaseSeconds: 30, RegisteredAt: before(2 * time.Hour), Drain: true, Remove: true},
		{ID: "wrk_01k9h2cccccccccccccccccccc", Name: "lantern-gpu", State: "live", Pool: "gpu", Version: "0.1.0", Slots: []NamedUse{{"slots", Use{3, 8}}}, CPU: Use{6, 32}, MemoryMB: Use{42000, 131072}, GPUs: []Use{{22000, 24576}, {8000, 24576}}, Models: []string{"minilm", "llama-small"}, Types: []string{"text.embed", "llm.*"}, Labels: []Pair{{"region", "eu"}, {"zone", "b"}}, Leases: 3, LastSeen: before(1 * time.Second), LeaseSeconds: 30, RegisteredAt: before(26 * time.Hour), Failures: 4, Drain: true, Remove: true},
		{ID: nasty, Name: nasty, State: "silent", Pool: "cpu", Version: "0.0.9", Tenant: "larkspur", Slots: []NamedUse{{"slots", Use{1, 4}}}, CPU: Use{1, 4}, MemoryMB: Use{512, 4096}, Types: []string{"document.*"}, Leases: 1, LastSeen: before(48 * time.Second), LeaseSeconds: 60, RegisteredAt: before(5 * time.Hour), Remove: true},
	}
	return WorkersView{Workers: cards, Server: "https://nightshift.example", Gone: 2}
}

func sampleLane() LaneView {
	return LaneView{
		LaneRow: sampleLanes().Lanes[2], Version: "3", Values: map[string]string{"weight": "2", "task_types": nasty}, Wrong: map[string]string{"weight": "It must be from 0.001 to 10000."},
		Facts: []Pair{{"Kind", "compute"}, {"Description", nasty}},
		Heads: []LaneHead{{ID: "task_01k9h2m3n4p5q6r7s8t9v0w1x2", Type: nasty, Ready: 3, Why: []Reason{{Code: "lane_held", Detail: nasty}}}, {ID: "task_01k9h2m3n4p5q6r7s8t9v0w1x3", Type: "text.embed", Ready: 1}},
	}
}

func sampleLanes() LanesView {
	var v LanesView
	for i, tile := range sampleTiles() {
		row := LaneRow{LaneTile: tile, Weight: []float64{8, 4, 2, 1, 1}[i], Elastic: i >= 2, Pause: tile.State != "paused", Resume: tile.State == "paused"}
		if i == 3 {
			row.State, row.Holds = "held", []LaneHold{{Pool: "cpu", Room: 3, Running: 3, Slots: 10, Needed: 6.2, Until: before(-40 * time.Minute), Says: "in the pool cpu compute and batch yield to realtime and io: 3 run"}}
		}
		if i == 4 {
			row.Patterns, row.Description = []string{"text.embed", "llm.*"}, "Vectors of the night"
		}
		v.Lanes = append(v.Lanes, row)
	}
	return v
}

func sampleTenants() TenantsView {
	return TenantsView{Tenants: []TenantRow{
		{ID: "ten_1", Slug: "northwind", Name: "Northwind Research", Weight: 5, Timezone: "Africa/Lusaka", Ready: 23841, Running: 141, Dead: 34, Succeeded: 31200, Got: 0.722, Deserved: 0.714, CreatedAt: before(90 * 24 * time.Hour)},
		{ID: "ten_2", Slug: "larkspur", Name: "Larkspur Press", Weight: 2, Timezone: "Europe/Lisbon", Ready: 2007, Running: 56, Dead: 14, Succeeded: 10068, Got: 0.278, Deserved: 0.286, CreatedAt: before(30 * 24 * time.Hour)},
		{ID: "ten_3", Slug: "quiet.one", Name: nasty, Weight: 1, Timezone: "UTC", Suspended: true, CreatedAt: before(40 * time.Minute)},
	}, Counted: true, Form: TenantForm{Weight: "1", Timezone: "UTC"}}
}

func sampleSystem() SystemView {
	return SystemView{
		Brain: "rep_01k9h0aaaaaaaaaaaaaaaaaaaa", Address: "10.0.4.11:8080", Epoch: 7, Batch: 1284410, RenewedAt: before(time.Second),
		Replicas: []ReplicaRow{{"rep_01k9h0aaaaaaaaaaaaaaaaaaaa", "https://10.0.4.11:8080", 4117, "0.1.0", true, before(time.Second)}, {"rep_01k9h0bbbbbbbbbbbbbbbbbbbb", "https://10.0.4.12:8080", 2204, "0.1.0", false, before(2 * time.Second)}},
		Board:    []Pair{{"Entries", "50,218"}, {"Lines", "412"}, {"Rebuild", "310 ms"}},
		Database: []Pair{{"PostgreSQL", "15.13"}, {"Size", "2.4 GB"}, {"Oldest transaction", "0.2 s"}, {"Connections", "18 of 100"}},
		Sweeps:   []SweepRow{{"overdue_timers", 1, before(time.Second), 0}, {"counter_recount", 60, before(21 * time.Second), 0}, {"parked_behind_open_gate", 30, before(11 * time.Second), 1}},
		Build:    []Pair{{"Version", "0.1.0"}, {"Go", "go1.26.8"}, {"Commit", "7795ab6"}},
	}
}
