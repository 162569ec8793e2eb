package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

const whole = `
seed: 4
horizon: 30m
timeline: 60
tenants:
  - {name: acorn, weight: 3}
  - {name: birch}
kinds:
  - {name: batch, weight: 2, min_share: 0.2, yields_to: [realtime], max_hold_seconds: 600}
lanes:
  - {tenant: acorn, name: heavy, elastic: true, yields_to: [nightly, io], max_hold_seconds: 60}
  - {tenant: acorn, name: nightly, kind: batch, max_concurrent: 4, task_types: ["report.*"]}
workers:
  - {name: cpu, count: 2, slots: 4, cpu: 4, memory_mb: 8192}
  - {name: gpu, pool: gpu, slots: 2, cpu: 8, gpus: [24000, 24000], from: 1m, to: 20m}
arrivals:
  - {tenant: acorn, name: reports, type: report.build, poisson: {every: 2s}, run: {mean: 5s, shape: exponential}, priority: [10, 90]}
  - {tenant: birch, name: crawl, backlog: 40, run: 3s, key: {name: site, limit: 2}, estimate: exact, deadline: {after: 1m, slack: 2}}
  - {tenant: birch, name: train, type: train, needs: {gpu: 1, vram_mb: 16000}, closed: {clients: 2, think: 10s}, run: {mean: 20s, shape: lognormal, sigma: 0.5}, estimate: {sigma: 1}}
  - tenant: acorn
    name: flow
    burst: {every: 5m, count: 3}
    run: 2s
    graph:
      - {name: split}
      - {name: left, after: [split], run: 4s}
      - {name: right, after: [split]}
      - {name: join, after: [left, right]}
faults: {crash_every: 5m, down_for: 10s, lost_answers_percent: 1}
`

func TestAWholeScenarioIsReadAndLivedThrough(t *testing.T) {
	s, err := Read(strings.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	if s.Until != 30*time.Minute || s.Tenants[1].Weight != 1 || s.Kinds[0].Weight != 2 || s.Lanes[1].MaxConcurrent != 4 || len(s.Workers[1].GPUs) != 2 {
		t.Errorf("%+v", s)
	}
	if k, l := s.Kinds[0], s.Lanes[0]; !k.Elastic || k.YieldsTo[0] != "realtime" || k.MaxHold != 600 || !l.Elastic || len(l.YieldsTo) != 2 || l.MaxHold != 60 {
		t.Errorf("who yields: %+v, %+v", k, l)
	}
	reports, crawl, train, flow := s.Arrivals[0], s.Arrivals[1], s.Arrivals[2], s.Arrivals[3]
	if !reports.Poisson || reports.Count != -1 || reports.Shape != sim.Exponential || reports.PriorityTo != 90 {
		t.Errorf("%+v", reports)
	}
	if crawl.Batch != 40 || crawl.KeyLimit != 2 || !crawl.Exact || crawl.Slack != 2 || crawl.Priority != 50 {
		t.Errorf("%+v", crawl)
	}
	if train.Closed != 2 || train.Wrong != 1 || train.Spread != 0.5 || train.Class.VRAMMB != 16_000 {
		t.Errorf("%+v", train)
	}
	if len(flow.Graph) != 4 || flow.Graph[1].Run != 4*time.Second || flow.Graph[2].Run != 2*time.Second || len(flow.Graph[3].After) != 2 {
		t.Errorf("%+v", flow)
	}
	r := sim.New(s).Run()
	for _, v := range r.Violations {
		t.Error(v)
	}
	for _, f := range r.Flows {
		if f.Ended == 0 {
			t.Errorf("nothing of %s ended", f.Name)
		}
	}
	if len(r.Timeline) < 59 {
		t.Errorf("the timeline has %d points", len(r.Timeline))
	}
}

func TestWhatMakesNoSenseIsRefusedWithItsLine(t *testing.T) {
	head := "tenants:\n  - name: a\nworkers:\n  - {name: w, slots: 1}\narrivals:\n"
	for text, want := range map[string]string{
		"":                      "empty",
		"tenants: []\n":         "no tenants",
		"seed: 1\nhorizont: 1h": `line 2: there is no field "horizont" here`,
		"tenants:\n  - name: a\n  - {name: b, wait: 3}\n":                                               `line 3: there is no field "wait" here`,
		"tenants:\n  - name: a\n  - name: a\nworkers: [{name: w, slots: 1}]\narrivals: [{tenant: a}]\n": "line 3: there are two tenants",
		head + "  - {tenant: b, backlog: 1, run: 1s}\n":                                                 `line 6: there is no tenant "b"`,
		head + "  - {tenant: a, backlog: 1, run: {mean: 1s, form: x}}\n":                                `line 6: there is no field "form" here`,
		head + "  - {tenant: a, backlog: 1}\n":                                                          "line 6: the run time",
		head + "  - {tenant: a, run: 1s}\n":                                                             "line 6: work comes in exactly one way",
		head + "  - {tenant: a, run: 1s, backlog: 1, poisson: {every: 1s}}\n":                           "line 6: work comes in exactly one way",
		head + "  - {tenant: a, run: 1s, burst: {every: 0s}}\n":                                         "line 6: every is above 0",
		head + "  - {tenant: a, run: soon, backlog: 1}\n":                                               "line 6: `soon` cannot be read as a span of time",
		head + "  - {tenant: a, run: 1s, backlog: 1, estimate: guess}\n":                                "line 6: an estimate is",
		head + "  - {tenant: a, run: 1s, backlog: 1, priority: [1, 2, 3]}\n":                            "line 6: a priority",
		head + "  - {tenant: a, run: 1s, backlog: 1, priority: 101}\n":                                  "line 6: nothing is negative",
		head + "  - {tenant: a, run: 1s, poisson: {every: 1us}}\n":                                      "line 6: with it about",
		head + "  - {tenant: a, run: 1s, backlog: 1, graph: [{name: x, after: [y]}]}\n":                 "line 6: task \"x\" of the graph waits",
		head + "  - {tenant: a, run: {mean: 1s, shape: flat}, backlog: 1}\n":                            "line 6: run times are",
		"tenants: [{name: a}]\nworkers: [{name: w, slots: 1}]\narrivals: [{tenant: a, run: 1s, backlog: 1}]\nkinds:\n  - {name: batch, yields_to: [fast]}\n":               "line 5: a kind yields to other kinds",
		"tenants: [{name: a}]\nworkers: [{name: w, slots: 1}]\narrivals: [{tenant: a, run: 1s, backlog: 1}]\nlanes:\n  - {tenant: a, name: x, yields_to: [y]}\n":           "line 5: a lane yields to other lanes",
		"tenants: [{name: a}]\nworkers: [{name: w, slots: 1}]\narrivals: [{tenant: a, run: 1s, backlog: 1}]\nlanes:\n  - {tenant: a, name: x, max_hold_seconds: -1}\n":     "line 5: max_concurrent and max_hold_seconds",
		"tenants: [{name: a}]\nworkers: [{name: w, slots: 1}]\narrivals: [{tenant: a, run: 1s, backlog: 1}]\nlanes:\n  - {tenant: a, name: io, kind: batch}\n":             "line 5: the lane io is of the kind",
		"tenants: [{name: a}]\nworkers: [{name: w, slots: 1}]\narrivals: [{tenant: a, run: 1s, backlog: 1}]\nlanes:\n  - {tenant: a, name: x}\n  - {tenant: a, name: x}\n": "line 6: a has two lanes",
		"tenants:\n  - {name: a, quotas: {max_gpus: -1}}\nworkers: [{name: w, slots: 1}]\narrivals: [{tenant: a, run: 1s, backlog: 1}]\n":                                  "line 2: quotas are not negative",
		"- a\n":                   "cannot be read",
		"a: [":                    "line 1",
		"seed: 1\n---\nseed: 2\n": "one document",
	} {
		_, err := Read(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestOneValueIsChanged(t *testing.T) {
	s, err := Read(strings.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	changed := s
	for _, change := range []string{
		"tenant.birch.weight=7", "worker.cpu.count=5", "lane.acorn.nightly.max_concurrent=9", "kind.batch.weight=4", "kind.io.precedence=5", "kind.batch.elastic=false", "kind.batch.yields_to=realtime,compute",
		"lane.birch.io.max_concurrent=2", "lane.acorn.heavy.max_hold_seconds=5", "lane.acorn.heavy.yields_to=",
		"arrival.crawl.deadline=90s", "arrival.reports.priority=3",
	} {
		if changed, err = Change(changed, change); err != nil {
			t.Fatal(err)
		}
	}
	if changed.Tenants[1].Weight != 7 || changed.Workers[0].Count != 5 || changed.Lanes[1].MaxConcurrent != 9 || changed.Kinds[0].Elastic || len(changed.Kinds[0].YieldsTo) != 2 || changed.Lanes[0].MaxHold != 5 || len(changed.Lanes[0].YieldsTo) != 0 || changed.Kinds[0].Weight != 4 ||
		changed.Kinds[1].Precedence != 5 || changed.Arrivals[1].Deadline != 90*time.Second || changed.Arrivals[0].PriorityTo != 3 {
		t.Errorf("%+v", changed)
	}
	if last := changed.Lanes[len(changed.Lanes)-1]; last.Tenant != "birch" || last.Name != "io" || last.Kind != models.IO || last.MaxConcurrent != 2 || len(s.Lanes) != 2 {
		t.Errorf("%+v", changed.Lanes)
	}
	if s.Tenants[1].Weight != 1 || s.Workers[0].Count != 2 || len(s.Kinds) != 1 || s.Kinds[0].Weight != 2 {
		t.Error("the world it was read from has changed too")
	}
	for _, text := range []string{"weight", "tenant.x.weight=1", "tenant.acorn.weight=0", "tenant.acorn.size=1", "planet.x.y=1", "kind.slow.weight=1", "kind.batch.elastic=perhaps", "lane.acorn.heavy.max_hold_seconds=-1", "arrival.crawl.deadline=soon"} {
		if _, err := Change(s, text); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

// The examples that the project shows are read, and each is a world without violations.
func TestExamples(t *testing.T) {
	paths, err := filepath.Glob("../../../examples/scenarios/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Read(f)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if testing.Short() {
			continue
		}
		r := sim.New(s).Run()
		t.Logf("%s: %d tasks", filepath.Base(path), r.Counters["tasks"])
		for _, v := range r.Violations {
			t.Errorf("%s: %s", path, v)
		}
	}
}
