package web_test

import (
	"fmt"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scrape reads /metrics as Prometheus does.
func (s *stage) scrape() map[string]*dto.MetricFamily {
	s.t.Helper()
	r := s.want(s.call("GET", "/metrics", nil), 200, "")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(r.text))
	s.must(err)
	return families
}

// labelled finds the metric with these labels, which are all it has; nil when there is none.
func labelled(f *dto.MetricFamily, labels ...string) *dto.Metric {
	for _, m := range f.GetMetric() {
		same := 2*len(m.GetLabel()) == len(labels)
		for i := 0; same && i < len(labels); i += 2 {
			same = false
			for _, l := range m.GetLabel() {
				same = same || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
			}
		}
		if same {
			return m
		}
	}
	return nil
}

func value(m *dto.Metric) float64 {
	switch {
	case m == nil:
		return -1
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

// floor is a worker that speaks the protocol by hand.
type floor struct {
	*stage
	id      string
	headers []string
}

func (s *stage) floor(root string, slots int) floor {
	r := s.want(s.call("POST", "/v1/workers", map[string]any{
		"name": "one", "instance_id": "one", "slots": slots, "version": "1",
		"resources": map[string]any{"gpu": 2, "vram_mb": 2048},
	}, "Authorization", root), 201, "")
	return floor{s, r.str("worker_id"), []string{"Authorization", root, "Nightshift-Session", r.str("session")}}
}

func (f floor) claim(most int) []map[string]any {
	list, _ := f.want(f.call("POST", "/v1/workers/"+f.id+"/claim", map[string]any{"max_tasks": most}, f.headers...), 200, "").body["tasks"].([]any)
	out := make([]map[string]any, len(list))
	for i := range list {
		out[i], _ = list[i].(map[string]any)
	}
	return out
}

func (f floor) report(results ...map[string]any) {
	f.want(f.call("POST", "/v1/workers/"+f.id+"/results", map[string]any{"results": results}, f.headers...), 200, "")
}

func (s *stage) submit(token string, types ...string) {
	tasks := make([]map[string]any, len(types))
	for i, name := range types {
		tasks[i] = map[string]any{"type": name, "estimated_cost_usd": 0.25}
	}
	s.want(s.call("POST", "/v1/tasks/batch", map[string]any{"tasks": tasks}, "Authorization", token), 201, "")
}

func TestMetricsShowWhatRan(t *testing.T) {
	s := newStage(t)
	root := s.root()
	_, _, acorn := s.tenant(root, "acorn", "tasks:read", "tasks:write")
	w := s.floor(root, 4)
	s.submit(acorn, "letters.sort", "letters.sort", "letters.burn", "letters.keep")
	claimed := w.claim(3)
	if len(claimed) != 3 {
		t.Fatalf("claimed %d", len(claimed))
	}
	busy := s.scrape()
	for _, c := range claimed {
		result := map[string]any{
			"lease_token": c["lease_token"], "status": "succeeded", "result": map[string]any{},
			"usage": map[string]any{"model": "owl", "tokens_in": 100, "tokens_out": 20, "tokens_cached": 3, "cost_usd": 0.5},
		}
		if c["type"] == "letters.burn" {
			result = map[string]any{"lease_token": c["lease_token"], "status": "failed", "error": map[string]any{"class": "invalid_input", "message": "it burns"}}
		}
		w.report(result)
	}
	after := s.scrape()
	batch := func(kind string, labels ...string) []string { return append([]string{"kind", kind}, labels...) }
	for _, c := range []struct {
		name   string
		labels []string
		busy   float64 // below zero: it is not there
		after  float64
	}{
		{"tasks_submitted_total", batch("batch", "type", "letters.sort"), 2, 2},
		{"tasks_started_total", batch("batch", "type", "letters.sort"), 2, 2},
		{"tasks_succeeded_total", batch("batch", "type", "letters.sort"), 0, 2},
		{"tasks_failed_total", batch("batch", "type", "letters.burn"), 0, 0},
		{"tasks_retried_total", batch("batch", "type", "letters.burn"), 0, 0},
		{"tasks_dead_lettered_total", batch("batch", "type", "letters.burn"), 0, 1},
		{"tasks_expired_total", batch("batch", "type", "letters.keep"), 0, 0},
		{"tasks_cancelled_total", batch("batch", "type", "letters.keep"), 0, 0},
		{"tasks_ready", batch("batch"), 1, 1},
		{"tasks_running", batch("batch"), 3, 0},
		{"tasks_running", batch("realtime"), 0, 0},
		{"tasks_parked", batch("batch"), 0, 0},
		{"tasks_held", batch("batch"), 0, 0},
		{"lane_depth", batch("batch", "lane", "batch"), 1, 1},
		{"lane_depth", batch("io", "lane", "other"), 0, 0},
		{"queue_wait_seconds", batch("batch"), 3, 3},
		{"execution_seconds", batch("batch"), 0, 3},
		{"worker_utilization_ratio", []string{"pool", "gpu"}, 0.75, 0},
		{"gpu_utilization_ratio", []string{"pool", "gpu"}, 0, 0},
		{"fair_lag", []string{"pool", "gpu"}, 0, 0},
		{"tokens_total", []string{"model", "owl", "direction", "in"}, -1, 200},
		{"tokens_total", []string{"model", "owl", "direction", "out"}, -1, 40},
		{"tokens_total", []string{"model", "owl", "direction", "cached"}, -1, 6},
		{"cost_usd_total", []string{"model", "owl", "basis", "actual"}, -1, 1},
		{"cost_usd_total", []string{"model", "owl", "basis", "estimated"}, -1, 0.5},
		{"cost_usd_total", []string{"model", "none", "basis", "estimated"}, -1, 0.25},
		{"leases_lost_total", []string{"cause", "silent"}, 0, 0},
		{"brain_epoch", nil, 1, 1},
		{"board_entries", nil, 1, 1},
	} {
		if got := value(labelled(busy["nightshift_"+c.name], c.labels...)); got != c.busy {
			t.Errorf("busy: %s%v is %v, want %v", c.name, c.labels, got, c.busy)
		}
		if got := value(labelled(after["nightshift_"+c.name], c.labels...)); got != c.after {
			t.Errorf("after: %s%v is %v, want %v", c.name, c.labels, got, c.after)
		}
	}
	for _, name := range []string{"lane_oldest_age_seconds", "batch_commands", "batch_commit_seconds", "board_rebuild_seconds"} {
		if len(after["nightshift_"+name].GetMetric()) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
}

// Nothing that grows with tenants, keys or tasks is a label, and types are the busiest and the others.
func TestMetricsStayFewWithAThousandTypes(t *testing.T) {
	s := newStage(t)
	root := s.root()
	_, _, acorn := s.tenant(root, "acorn", "tasks:read", "tasks:write")
	w := s.floor(root, 100)
	before := 0
	for _, f := range s.scrape() {
		before += len(f.GetMetric())
	}
	for first := 0; first < 1000; first += 100 {
		types := make([]string, 100)
		for i := range types {
			types[i] = fmt.Sprintf("letters.sort-%03d", first+i)
		}
		s.submit(acorn, types...)
		var results []map[string]any
		for _, c := range w.claim(100) {
			results = append(results, map[string]any{
				"lease_token": c["lease_token"], "status": "succeeded", "result": nil,
				"usage": map[string]any{"model": c["type"], "tokens_in": 1},
			})
		}
		w.report(results...)
	}
	allowed := map[string]bool{
		"kind": true, "type": true, "lane": true, "pool": true, "model": true, "direction": true, "basis": true,
		"cause": true, "code": true, "alert": true, "source": true, "method": true, "route": true, "status": true,
	}
	families := s.scrape()
	for name, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.HasPrefix(name, "nightshift_") && !allowed[l.GetName()] {
					t.Errorf("%s has the label %s", name, l.GetName())
				}
			}
		}
	}
	done, names := 0.0, 0
	for _, m := range families["nightshift_tasks_succeeded_total"].GetMetric() {
		done += m.GetCounter().GetValue()
		names++
	}
	if done != 1000 || names != 201 {
		t.Errorf("%v succeeded under %d types, want 1000 under 201", done, names)
	}
	if got := len(families["nightshift_tokens_total"].GetMetric()); got != 3*201 {
		t.Errorf("%d figures of tokens, want 3 for each of 201 models", got)
	}
	after := 0
	for _, f := range families {
		after += len(f.GetMetric())
	}
	if most := before + 9*201 + 5*201 + 50; after > most {
		t.Errorf("%d figures, %d before: at most %d", after, before, most)
	}
}
