package scenario

import (
	"slices"
	"strings"
	"testing"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

const gated = `
horizon: 10m
tenants: [{name: acorn, rate_limits: [{key: bank, limit: 4, per_seconds: 60, burst: 2}]}]
workers: [{name: w, slots: 8}]
arrivals:
  - {tenant: acorn, backlog: 12, run: 2s, rate_keys: [bank]}
  - {tenant: acorn, backlog: 9, run: 1s, key: {name: site, count: 3}, concurrency: [{key: door, limit: 2}], ordered: true}
`

func TestKeysAndRatesOfAScenario(t *testing.T) {
	s, err := Read(strings.NewReader(gated))
	if err != nil {
		t.Fatal(err)
	}
	if rates := s.Tenants[0].Rates; len(rates) != 1 || rates[0] != (models.RateLimit{Key: "bank", Limit: 4, PerSeconds: 60, Burst: 2}) {
		t.Errorf("rates %+v", rates)
	}
	if a := s.Arrivals[0]; !slices.Equal(a.RateKeys, []string{"bank"}) {
		t.Errorf("%+v", a)
	}
	if a := s.Arrivals[1]; !a.Ordered || a.Keys != 3 || len(a.Concurrency) != 1 || a.Concurrency[0] != (models.TaskKey{Name: "door", Limit: 2}) {
		t.Errorf("%+v", a)
	}
	r := sim.New(s).Run()
	if len(r.Violations) > 0 || r.Rates[0].Starts != 12 || r.Rates[0].Most != 4 || r.Flows[1].Ended != 9 {
		t.Errorf("%v; %+v, %d ended", r.Violations, r.Rates, r.Flows[1].Ended)
	}
	for _, wrong := range [][2]string{
		{"limit: 4, per", "limit: 0, per"}, {"key: {name: site, count: 3}, concurrency: [{key: door, limit: 2}], ordered", "ordered"}, {"{key: door, limit: 2}", "{limit: 2}"},
	} {
		if _, err := Read(strings.NewReader(strings.Replace(gated, wrong[0], wrong[1], 1))); err == nil {
			t.Errorf("%q is taken", wrong[1])
		}
	}
}
