package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

func world(weight float64) sim.Scenario {
	work := func(tenant string) sim.Arrival {
		return sim.Arrival{Tenant: tenant, Class: models.Class{Type: "x.work"}, Every: 400 * time.Millisecond, Poisson: true, Count: 1_000, Run: time.Second, Spread: 0.5, Deadline: time.Minute}
	}
	return sim.Scenario{
		Seed: 2, Tenants: []sim.Tenant{{Name: "acorn", Weight: weight}, {Name: "b<irch>", Weight: 1}}, Until: 10 * time.Minute, Points: 40,
		Workers: []sim.Worker{{Name: "w", Worker: models.Worker{Slots: 4}}}, Arrivals: []sim.Arrival{work("acorn"), work("b<irch>")},
	}
}

func both() *Report {
	base, other := sim.New(world(1)).Run(), sim.New(world(4)).Run()
	return &Report{Title: "two tenants", Tenants: []string{"acorn", "b<irch>"}, Base: base, WhatIf: &other, Changes: []string{"tenant.acorn.weight=4"}}
}

func TestTheSameArrivalsMeetAChangedWorld(t *testing.T) {
	r := both()
	for i := range r.Base.Flows {
		if a, b := r.Base.Flows[i], r.WhatIf.Flows[i]; a.Tasks != b.Tasks || a.Tasks != 1_000 {
			t.Errorf("%d tasks came, then %d", a.Tasks, b.Tasks)
		}
	}
	if r.WhatIf.Flows[0].Wait.Mean >= r.Base.Flows[0].Wait.Mean {
		t.Errorf("with four times the weight it waited %s, before %s", r.WhatIf.Flows[0].Wait.Mean, r.Base.Flows[0].Wait.Mean)
	}
}

func TestATableShowsBothAndTheDifference(t *testing.T) {
	var out, again bytes.Buffer
	r := both()
	if err := errors.Join(r.Table(&out), both().Table(&again)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"what if tenant.acorn.weight=4", "\nacorn\n", "wait, p99", "deadlines missed", "share of the slots while all had work", "pool cpu, 4 slots: in use"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, out.String())
		}
	}
	if out.String() != again.String() {
		t.Error("the same worlds gave two tables")
	}
	r.WhatIf = nil
	out.Reset()
	if err := r.Table(&out); err != nil || strings.Contains(out.String(), "what if") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestJSONCarriesTheTimeline(t *testing.T) {
	var out bytes.Buffer
	if err := both().JSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Base struct {
			Timeline []struct {
				Shares []float64 `json:"shares"`
				Busy   float64   `json:"utilization"`
			} `json:"timeline"`
			Arrivals []struct {
				Wait struct{ Longest float64 } `json:"wait_seconds"`
			} `json:"arrivals"`
		} `json:"base"`
		WhatIf *struct{ Hash string } `json:"what_if"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Base.Timeline) < 10 || len(got.Base.Timeline[3].Shares) != 2 || got.Base.Timeline[3].Busy <= 0 || got.Base.Arrivals[0].Wait.Longest <= 0 || got.WhatIf == nil || got.WhatIf.Hash == "" {
		t.Errorf("%s", out.String()[:600])
	}
}

func TestThePictureIsWellFormed(t *testing.T) {
	var out bytes.Buffer
	if err := both().SVG(&out); err != nil {
		t.Fatal(err)
	}
	elements := map[string]int{}
	for decoder := xml.NewDecoder(&out); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok {
			elements[start.Name.Local]++
		}
	}
	if elements["polyline"] != 8 || elements["rect"] < 60 || elements["text"] < 30 {
		t.Errorf("%v", elements)
	}
}

// With more tenants than colours those that take most have one, and long names go on in a row of their own.
func TestTheLargestTenantsHaveColours(t *testing.T) {
	r := Report{Base: sim.Result{Timeline: []sim.Point{{At: time.Second, Shares: make([]float64, 20), Depths: make([]int64, 20)}}}}
	for i := range 20 {
		r.Tenants = append(r.Tenants, fmt.Sprintf("a-tenant-with-a-long-name-%d", i))
		r.Base.Timeline[0].Shares[i] = float64(i) / 190
	}
	shown := r.largest()
	if !slices.Equal(shown, []int{12, 13, 14, 15, 16, 17, 18, 19}) {
		t.Errorf("%v have a colour", shown)
	}
	keys, rows := layKeys(r.Tenants, shown)
	if len(keys) != 9 || keys[8].name != "12 others" || rows != 3 {
		t.Errorf("%d rows of %v", rows, keys)
	}
	for _, k := range keys {
		if k.x+14+7*float64(len(k.name)) > width || k.row < 1 || int(k.row) > rows {
			t.Errorf("%+v is beyond the picture", k)
		}
	}
}

func TestSpansAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 1500 * time.Microsecond: "0.002 s", 59 * time.Second: "59 s", 90 * time.Second: "1.5 min", 5 * time.Hour: "5.00 h", 72 * time.Hour: "3.0 d",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
