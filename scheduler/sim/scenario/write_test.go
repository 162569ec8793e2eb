package scenario

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

func most(n int64) *int64 { return &n }

// What is written is read again as it was, odd names and all, and lives.
func TestARecordingIsReadAsItWasWritten(t *testing.T) {
	r := &Recording{
		About: "a day", Span: time.Hour,
		Tenants: []sim.Tenant{
			{
				Name: "acorn", Weight: 2.5, Quotas: models.Quotas{MaxConcurrent: most(4), MaxGPUs: most(0), MaxVRAMMB: most(7), TokensPerMinute: most(600)},
				Rates: []models.RateLimit{{Key: "bank: y", Limit: 5, PerSeconds: 60, Burst: 2}},
			}, {Name: `b: "irch" #`, Weight: 1},
		},
		Kinds: []models.Kind{{Name: models.Batch, Precedence: 7, Weight: 2, MinShare: 0.2}},
		Lanes: []sim.Lane{
			{Tenant: "acorn", Name: "nightly", Kind: models.Compute, MaxConcurrent: 3, TaskTypes: []string{"a.*"}},
			{Tenant: "acorn", Name: "io", Kind: models.IO, MaxConcurrent: 2, TaskTypes: []string{}},
		},
		Workers: []sim.Worker{
			{Name: "w1", Count: 2, Worker: models.Worker{Pool: "cpu", Slots: 3, CPUMilli: 4500, MemoryMB: 100, LeaseSeconds: 30, Labels: map[string]string{"zone": "a"}}},
			{Name: "w2", Count: 1, Worker: models.Worker{Pool: "gpu", KindSlots: map[string]int32{"io": 5}, GPUs: []models.GPUCard{{VRAMMB: 9000}}, Kinds: []models.KindName{models.IO}, AnyModel: true, AnyPermit: true}},
		},
		Arrivals: []sim.Arrival{
			{
				Tenant: "acorn", Name: "acorn-1", Lane: "nightly", Class: models.Class{Type: "a.b", CPUMilli: 1500, Permissions: []string{}}, Priority: 70, Deadline: time.Minute, Hard: time.Hour,
				LimitKey: "site: x", KeyLimit: 2, MaxAttempts: 4, FailPercent: 10, Tokens: 30,
				Concurrency: []models.TaskKey{{Name: "second: z", Limit: 3}}, RateKeys: []string{"bank: y"}, Ordered: true,
				Items: []sim.Item{{At: 0, Run: 1500 * time.Millisecond}, {At: 2250 * time.Millisecond, Run: time.Second}},
			},
			{Tenant: `b: "irch" #`, Name: "second", Lane: "batch", Class: models.Class{Type: "c", Permissions: []string{}}, Priority: 50, MaxAttempts: 3, Items: []sim.Item{{At: time.Second, Run: time.Second}}},
		},
	}
	var text strings.Builder
	if err := Write(&text, r); err != nil {
		t.Fatal(err)
	}
	s, err := Read(strings.NewReader(text.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	if !reflect.DeepEqual(s.Tenants, r.Tenants) || len(s.Kinds) != 1 || s.Kinds[0].Weight != 2 || !reflect.DeepEqual(s.Lanes, r.Lanes) {
		t.Errorf("%+v", s)
	}
	if w := s.Workers; len(w) != 2 || w[0].Count != 2 || w[0].CPUMilli != 4500 || w[0].Labels["zone"] != "a" || w[1].KindSlots["io"] != 5 || w[1].GPUs[0].VRAMMB != 9000 || w[1].Kinds[0] != models.IO || w[0].AnyModel || w[0].AnyPermit || !w[1].AnyModel || !w[1].AnyPermit {
		t.Errorf("%+v", w)
	}
	for i, a := range s.Arrivals {
		want := r.Arrivals[i]
		if !reflect.DeepEqual(a.Concurrency, want.Concurrency) || !reflect.DeepEqual(a.RateKeys, want.RateKeys) || a.Ordered != want.Ordered || a.Tokens != want.Tokens || a.Class.Tokens != (want.Tokens > 0) {
			t.Errorf("%+v", a)
		}
		if a.Name != want.Name || a.Lane != want.Lane || a.Class.Type != want.Class.Type || a.Class.CPUMilli != want.Class.CPUMilli || a.LimitKey != want.LimitKey || a.MaxAttempts != want.MaxAttempts || a.FailPercent != want.FailPercent || a.Hard != want.Hard {
			t.Errorf("%+v", a)
		}
		for j, item := range a.Items {
			if item.At != want.Items[j].At || item.Run != want.Items[j].Run || item.Priority != want.Priority || item.Deadline != want.Deadline {
				t.Errorf("%+v", item)
			}
		}
	}
	changed, err := Change(s, "arrival.acorn-1.priority=5")
	if err != nil || changed.Arrivals[0].Items[1].Priority != 5 || s.Arrivals[0].Items[1].Priority != 70 {
		t.Errorf("%v", err)
	}
	s.Workers[0].Labels, s.Arrivals[0].FailPercent = nil, 0
	result := sim.New(s).Run()
	if len(result.Violations) > 0 || result.Flows[0].Ended != 2 {
		t.Errorf("%v, %+v", result.Violations, result.Flows)
	}
	for name, bad := range map[string]string{
		"a negative moment":  "recorded: [[-1, 2]]",
		"three numbers":      "recorded: [[1, 2, 3]]",
		"a run beside":       "recorded: [[1, 2]]\n    run: 3s",
		"two ways":           "recorded: [[1, 2]]\n    backlog: 4",
		"beyond all bounds":  "recorded: [[1, 1e300]]",
		"no number":          "recorded: [[.nan, 1]]",
		"an estimate's mean": "recorded: [[1, 2]]\n    estimate: mean",
	} {
		text := "tenants: [{name: a}]\nworkers: [{name: w, slots: 1}]\narrivals:\n  - tenant: a\n    " + bad + "\n"
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}
