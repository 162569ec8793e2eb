package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/dag"
	"nightshift/scheduler/engine"
)

// counting mints ids 1, 2, 3, …
func counting() func() models.ID {
	n := byte(0)
	return func() models.ID { n++; return models.ID{15: n} }
}

func readTask(t *testing.T, text string) (engine.NewTask, error) {
	t.Helper()
	p := &body.Problems{}
	v, err := body.Open([]byte(text), "body", p)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	r := &taskReader{env: 3, mint: counting(), problem: p, priority: defaultPriority}
	task := r.task(v)
	return task, p.Err(models.ValidationFailed)
}

func TestTaskInputRefuses(t *testing.T) {
	many := func(n int, format string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(parts, ",")
	}
	for _, c := range []struct{ members, location string }{
		{``, "body.type"},
		{`"type":null`, "body.type"},
		{`"type":""`, "body.type"},
		{`"type":"Llm"`, "body.type"},
		{`"type":"a\u0000"`, "body.type"},
		{`"type":"` + strings.Repeat("a", 129) + `"`, "body.type"},
		{`"type":"a","Type":"b"`, "body.Type"},
		{`"type":"a","type":"b"`, "body.type"},
		{`"type":"a","surprise":1`, "body.surprise"},
		{`"type":"a","surprise":null`, "body.surprise"},
		{`"type":"a","key":"k"`, "body.key"},
		{`"type":"a","payload":"` + strings.Repeat("x", handlers.PayloadLimit-1) + `"`, "body.payload"},
		{`"type":"a","payload":{"deep":["\u0000"]}`, "body.payload"},
		{`"type":"a","lane":"No"`, "body.lane"},
		{`"type":"a","priority":101`, "body.priority"},
		{`"type":"a","priority":-1`, "body.priority"},
		{`"type":"a","priority":1.5`, "body.priority"},
		{`"type":"a","priority":"50"`, "body.priority"},
		{`"type":"a","priority":99999999999999999999999`, "body.priority"},
		{`"type":"a","run_at":"tomorrow"`, "body.run_at"},
		{`"type":"a","run_at":5`, "body.run_at"},
		{`"type":"a","run_at":"2026-09-17T21:00:00Z","delay_seconds":5`, "body.delay_seconds"},
		{`"type":"a","delay_seconds":-1`, "body.delay_seconds"},
		{`"type":"a","delay_seconds":1e30`, "body.delay_seconds"},
		{`"type":"a","expires_in_seconds":0`, "body.expires_in_seconds"},
		{`"type":"a","resources":[]`, "body.resources"},
		{`"type":"a","resources":{"cpus":1}`, "body.resources.cpus"},
		{`"type":"a","resources":{"cpu":-1}`, "body.resources.cpu"},
		{`"type":"a","resources":{"gpu":1.5}`, "body.resources.gpu"},
		{`"type":"a","resources":{"memory_mb":9223372036854775808}`, "body.resources.memory_mb"},
		{`"type":"a","model":{"auto":false}`, "body.model.auto"},
		{`"type":"a","model":{"auto":"yes"}`, "body.model.auto"},
		{`"type":"a","model":{"auto":true,"quality_target":1.1}`, "body.model.quality_target"},
		{`"type":"a","model":{"auto":true,"max_latency_ms":0}`, "body.model.max_latency_ms"},
		{`"type":"a","model":{"auto":true,"candidates":"small"}`, "body.model.candidates"},
		{`"type":"a","model":{"auto":true,"candidates":["Not A Name"]}`, "body.model.candidates[0]"},
		{`"type":"a","model":{"auto":true,"cheapest":true}`, "body.model.cheapest"},
		{`"type":"a","model":"Not A Name"`, "body.model"},
		{`"type":"a","estimated_cost_usd":-1`, "body.estimated_cost_usd"},
		{`"type":"a","estimated_seconds":1e999`, "body.estimated_seconds"},
		{`"type":"a","timeout":{"soft_seconds":20,"hard_seconds":10}`, "body.timeout.soft_seconds"},
		{`"type":"a","timeout":{"hard_seconds":0}`, "body.timeout.hard_seconds"},
		{`"type":"a","timeout":{"medium_seconds":5}`, "body.timeout.medium_seconds"},
		{`"type":"a","timeout":{"hard_seconds":5},"timeout_seconds":5`, "body.timeout_seconds"},
		{`"type":"a","retry_policy":{"max_attempts":0}`, "body.retry_policy.max_attempts"},
		{`"type":"a","retry_policy":{"backoff":"random"}`, "body.retry_policy.backoff"},
		{`"type":"a","retry_policy":{"jitter":1}`, "body.retry_policy.jitter"},
		{`"type":"a","retry_policy":{"initial_delay_seconds":9,"max_delay_seconds":8}`, "body.retry_policy.max_delay_seconds"},
		{`"type":"a","retry_policy":{"classes":{"weird":{"max_attempts":1}}}`, "body.retry_policy.classes.weird"},
		{`"type":"a","retry_policy":{"classes":{"timeout":{}}}`, "body.retry_policy.classes.timeout"},
		{`"type":"a","retry_policy":{"classes":{"timeout":{"max":1}}}`, "body.retry_policy.classes.timeout.max"},
		{`"type":"a","concurrency":{}`, "body.concurrency"},
		{`"type":"a","concurrency":[{}]`, "body.concurrency[0].key"},
		{`"type":"a","concurrency":[{"key":"k","limit":0}]`, "body.concurrency[0].limit"},
		{`"type":"a","concurrency":[{"key":"k"}],"concurrency_key":"l"`, "body.concurrency_key"},
		{`"type":"a","concurrency_limit":2`, "body.concurrency_limit"},
		{`"type":"a","concurrency_key":""`, "body.concurrency_key"},
		{`"type":"a","idempotency_key":""`, "body.idempotency_key"},
		{`"type":"a","idempotency_key":"` + strings.Repeat("x", 256) + `"`, "body.idempotency_key"},
		{`"type":"a","worker_selector":["eu"]`, "body.worker_selector"},
		{`"type":"a","worker_selector":{"region":1}`, "body.worker_selector.region"},
		{`"type":"a","labels":{` + many(33, `"k%d":"v"`) + `}`, "body.labels"},
		{`"type":"a","labels":{"a":1}`, "body.labels.a"},
		{`"type":"a","labels":{"":"x"}`, "body.labels."},
		{`"type":"a","depends_on":"task_x"`, "body.depends_on"},
		{`"type":"a","depends_on":["task_x"]`, "body.depends_on[0]"},
		{`"type":"a","depends_on":[7]`, "body.depends_on[0]"},
		{`"type":"a","depends_on":[{}]`, "body.depends_on[0]"},
		{`"type":"a","depends_on":[{"key":"k"}]`, "body.depends_on[0].key"},
		{`"type":"a","depends_on":[{"task":"` + models.ID{1}.Text("task") + `","on":"never"}]`, "body.depends_on[0].on"},
		{`"type":"a","depends_on":[` + many(1001, `"x%d"`) + `]`, "body.depends_on"},
		{`"type":"a","on_attempts_exhausted":"explode"`, "body.on_attempts_exhausted"},
		{`"type":"a","description":"` + strings.Repeat("x", 4097) + `"`, "body.description"},

		{`"type":"a","deadline":"soon"`, "body.deadline"},
		{`"type":"a","permissions":["Internet"]`, "body.permissions[0]"},
		{`"type":"a","permissions":"mail"`, "body.permissions"},
		{`"type":"a","permissions":[` + many(33, `"p%d"`) + `]`, "body.permissions"},
		{`"type":"a","secrets":{"A":"secret://a"}`, "body.secrets"},
		{`"type":"a","ordered":true`, "body.ordered"},
		{`"type":"a","ordered":true,"rate_keys":["bank:tink"]`, "body.ordered"},
		{`"type":"a","ordered":"yes","concurrency_key":"k"`, "body.ordered"},
		{`"type":"a","rate_keys":"bank:tink"`, "body.rate_keys"},
		{`"type":"a","rate_keys":[""]`, "body.rate_keys[0]"},
		{`"type":"a","rate_keys":["a","b","a"]`, "body.rate_keys[2]"},
		{`"type":"a","rate_keys":[` + many(17, `"r%d"`) + `]`, "body.rate_keys"},
		{`"type":"a","concurrency":[{"key":"a"},{"key":"b"},{"key":"a","limit":2}]`, "body.concurrency[2].key"},
		{`"type":"a","concurrency":[{"key":"a"},{"key":"b","limit":0}]`, "body.concurrency[1].limit"},
		{`"type":"a","concurrency":[` + many(17, `{"key":"k%d"}`) + `]`, "body.concurrency"},
		{`"type":"a","budget":{"max_tasks":-1}`, "body.budget.max_tasks"},
		{`"type":"a","run_if":"deps."`, "body.run_if"},
		{`"type":"a","resources":{"tokens":1.5}`, "body.resources.tokens"},
	} {
		_, err := readTask(t, "{"+c.members+"}")
		var e *models.Error
		if !errors.As(err, &e) || e.Code != models.ValidationFailed || e.Fields[0].Location != c.location {
			t.Errorf("%.80s: want a refusal at %s, got %v", c.members, c.location, err)
		}
	}
}

func TestTaskInputTells(t *testing.T) {
	_, err := readTask(t, `{"priority":500,"labels":[],"nope":1}`)
	var e *models.Error
	if !errors.As(err, &e) || len(e.Fields) != 4 {
		t.Errorf("all that is wrong is told at once: %v", err)
	}
}

func TestTaskInputAccepts(t *testing.T) {
	other := models.ID{6: 0x70, 8: 0x80, 15: 9}
	one := models.ID{15: 1}
	policy := models.RetryPolicy{
		MaxAttempts: 5, Backoff: "linear", InitialDelay: 0.5, MaxDelay: 300, Jitter: true,
		Classes: map[string]models.ClassPolicy{"timeout": {MaxAttempts: 2}},
	}
	cost := 0.5
	for _, c := range []struct {
		text  string
		want  engine.NewTask
		input Input
	}{
		{`{"type":"llm.generate"}`, engine.NewTask{Class: models.Class{Type: "llm.generate"}, Priority: 50, MaxAttempts: 3}, Input{}},
		{
			`{"type":"a","deadline":null,"permissions":[],"secrets":{},"ordered":false,"rate_keys":null,"dedupe":null,"watermark":null,
		   "budget":null,"run_if":null,"needs_approval":false,"model":null,"labels":{},"depends_on":[],"concurrency":[],"resources":{"tokens":null},
		   "timeout":{"total_seconds":null},"payload":null,"description":"","worker_selector":{}}`,
			engine.NewTask{Class: models.Class{Type: "a"}, Priority: 50, MaxAttempts: 3},
			Input{},
		},
		{
			`{"type":"a","payload":{"p": [1]},"lane":"batch","priority":0,"run_at":"2026-09-17T21:00:00Z","expires_in_seconds":1.5,"description":"d"}`,
			engine.NewTask{
				Class: models.Class{Type: "a"}, Payload: json.RawMessage(`{"p": [1]}`), Lane: "batch", MaxAttempts: 3,
				RunAt: 1789678800000000, ExpiresInSeconds: 2,
			},
			Input{RunAt: 1789678800000000, ExpiresInSeconds: 2, Description: "d"},
		},
		{
			`{"type":"a","resources":{"cpu":0.5,"memory_mb":4096,"gpu":2,"vram_mb":24576,"disk_mb":100},"model":"small","worker_selector":{"region":"eu"}}`,
			engine.NewTask{Class: models.Class{
				Type: "a", CPUMilli: 500, MemoryMB: 4096, GPU: 2, VRAMMB: 24576, DiskMB: 100, Model: "small",
				Selector: map[string]string{"region": "eu"},
			}, Priority: 50, MaxAttempts: 3},
			Input{},
		},
		{
			`{"type":"a","timeout":{"soft_seconds":60,"hard_seconds":120},"estimated_seconds":2.5,"estimated_cost_usd":0.5,"delay_seconds":600}`,
			engine.NewTask{Class: models.Class{Type: "a"}, Priority: 50, MaxAttempts: 3, SoftSeconds: 60, HardSeconds: 120, EstimateMS: 2500, CostMicro: 500_000, DelaySeconds: 600},
			Input{EstimatedCostUSD: &cost, DelaySeconds: 600},
		},
		{
			`{"type":"a","timeout_seconds":9,"concurrency_key":"account:42","idempotency_key":"invoice-7","on_attempts_exhausted":"fail"}`,
			engine.NewTask{
				Class: models.Class{Type: "a"}, Priority: 50, MaxAttempts: 3, HardSeconds: 9, LimitKey: "account:42", KeyLimit: 1,
				IdemKey: "invoice-7", FailWhenSpent: true,
			},
			Input{},
		},
		{
			`{"type":"a","concurrency_limit":4,"concurrency_key":"k"}`,
			engine.NewTask{Class: models.Class{Type: "a"}, Priority: 50, MaxAttempts: 3, LimitKey: "k", KeyLimit: 4},
			Input{},
		},
		{
			`{"type":"a","concurrency":[{"key":"k","limit":7}],"resources":{"vram_mb":10}}`,
			engine.NewTask{Class: models.Class{Type: "a", GPU: 1, VRAMMB: 10}, Priority: 50, MaxAttempts: 3, LimitKey: "k", KeyLimit: 7},
			Input{},
		},
		{
			`{"type":"a","concurrency":[{"key":"b","limit":2},{"key":"a:1"}],"ordered":true,"rate_keys":["bank:tink","b"]}`,
			engine.NewTask{
				Class: models.Class{Type: "a"}, Priority: 50, MaxAttempts: 3, LimitKey: "b", KeyLimit: 2, Ordered: true,
				MoreKeys: "1:3:a:10:9:bank:tink0:1:b",
			},
			Input{},
		},
		{
			`{"type":"a","concurrency_key":"account:42","watermark":"docs"}`,
			engine.NewTask{
				Class: models.Class{Type: "a"}, Priority: 50, MaxAttempts: 3, LimitKey: "watermark:docs", KeyLimit: 1,
				MoreKeys: "1:10:account:42",
			},
			Input{Watermark: "docs"},
		},
		{
			`{"type":"a","retry_policy":{"max_attempts":5,"backoff":"linear","initial_delay_seconds":0.5,"classes":{"timeout":{"max_attempts":2}}}}`,
			engine.NewTask{Class: models.Class{Type: "a"}, Priority: 50, MaxAttempts: 5, HasPolicy: true},
			Input{RetryPolicy: &policy},
		},
		{
			`{"type":"a","labels":{"customer":"é"},"depends_on":["` + other.Text("task") + `",{"task":"` + other.Text("task") + `"}]}`,
			engine.NewTask{
				Class: models.Class{Type: "a"}, Priority: 50, MaxAttempts: 3,
				Labels:    []models.Label{{Env: 3, Task: one, Key: "customer", Value: "é"}},
				DependsOn: []engine.Dependency{{Task: other, On: models.OnSucceeded}},
			},
			Input{Labels: map[string]string{"customer": "é"}},
		},
	} {
		got, err := readTask(t, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		c.want.ID = one
		if len(c.input.Labels) == 0 {
			c.input.Labels = nil
		}
		kept := ParseInput(got.Input)
		got.Input = nil
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.text, got, c.want)
		}
		if !reflect.DeepEqual(kept, c.input) {
			t.Errorf("%s: kept %+v, want %+v", c.text, kept, c.input)
		}
	}
}

// In a workflow keys may be named before they stand, and stand for the ids their tasks get.
func TestTasksOfAWorkflow(t *testing.T) {
	p := &body.Problems{}
	r := &taskReader{mint: counting(), problem: p, priority: 70, lane: "io", graph: dag.New()}
	outside := models.ID{6: 0x70, 8: 0x80, 15: 99}
	var tasks []engine.NewTask
	for _, text := range []string{
		`{"key":"last","type":"t","depends_on":["first",{"key":"second","on":"finished"},"` + outside.Text("task") + `"]}`,
		`{"key":"first","type":"t","priority":1,"lane":"batch"}`,
		`{"key":"second","type":"t","depends_on":[{"key":"first","on":"failed"}]}`,
	} {
		v, err := body.Open([]byte(text), "body", p)
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, r.task(v))
	}
	if err := p.Err(models.ValidationFailed); err != nil {
		t.Fatal(err)
	}
	if faults := r.graph.Check(); faults != nil {
		t.Fatal(faults)
	}
	first, second := tasks[1].ID, tasks[2].ID
	want := []engine.Dependency{{Task: first, On: models.OnSucceeded}, {Task: second, On: models.OnFinished}, {Task: outside}}
	if !reflect.DeepEqual(tasks[0].DependsOn, want) {
		t.Errorf("got %v, want %v", tasks[0].DependsOn, want)
	}
	if !reflect.DeepEqual(tasks[2].DependsOn, []engine.Dependency{{Task: first, On: models.OnFailed}}) {
		t.Errorf("got %v", tasks[2].DependsOn)
	}
	if tasks[0].Priority != 70 || tasks[0].Lane != "io" || tasks[1].Priority != 1 || tasks[1].Lane != "batch" {
		t.Error("a task takes its workflow's priority and lane unless it names its own")
	}
}

func BenchmarkTaskInput(b *testing.B) {
	text := []byte(`{"type":"llm.generate","payload":{"prompt":"a quite ordinary prompt of some words"},"lane":"batch","priority":50,"labels":{"customer":"a"}}`)
	b.ReportAllocs()
	for b.Loop() {
		p := &body.Problems{}
		v, err := body.Open(text, "body", p)
		if err != nil {
			b.Fatal(err)
		}
		r := &taskReader{mint: func() models.ID { return models.ID{1} }, problem: p, priority: defaultPriority}
		if r.task(v); p.Any() {
			b.Fatal(p)
		}
	}
}
