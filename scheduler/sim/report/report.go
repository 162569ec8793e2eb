package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nightshift/scheduler/sim"
)

// Report is a world, and perhaps the same with something changed.
type Report struct {
	Title   string
	Tenants []string // in order, as in the points of the timeline
	Base    sim.Result
	Changes []string // what is different in WhatIf
	WhatIf  *sim.Result
}

// mostFlows is how many arrivals the table shows; the rest are summed up.
const mostFlows = 30

// Table writes the report as text.
func (r *Report) Table(w io.Writer) error {
	t := &table{both: r.WhatIf != nil}
	t.line("", r.Title, "")
	if t.both {
		t.line("", "what if "+strings.Join(r.Changes, ", "), "")
	}
	r.flows(t)
	r.shares(t)
	other := r.other()
	t.head("of the whole")
	t.pair("lived", span(r.Base.Lived), span(other.Lived), seconds(r.Base.Lived, other.Lived))
	t.pair("makespan", span(r.Base.Makespan), span(other.Makespan), seconds(r.Base.Makespan, other.Makespan))
	t.pair("Jain index of share ÷ weight", number("%.4f", r.Base.Jain), number("%.4f", other.Jain), signed("%+.4f", other.Jain-r.Base.Jain))
	t.pair("order inversions", number("%.0f", float64(r.Base.Inversions)), number("%.0f", float64(other.Inversions)), signed("%+.0f", float64(other.Inversions-r.Base.Inversions)))
	for i, p := range r.Base.Pools {
		o := p
		if i < len(other.Pools) {
			o = other.Pools[i]
		}
		t.pair(fmt.Sprintf("pool %s, %d slots: in use", p.Name, p.Slots), percent(p.Utilization), percent(o.Utilization), signed("%+.1f", 100*(o.Utilization-p.Utilization)))
		t.pair("  while something waited", percent(p.Contended), percent(o.Contended), signed("%+.1f", 100*(o.Contended-p.Contended)))
	}
	for _, v := range append(slices.Clone(r.Base.Violations), other.violations(t.both)...) {
		t.line("", "VIOLATION "+v, "")
	}
	_, err := io.WriteString(w, t.out.String())
	return err
}

type result struct{ *sim.Result }

func (r result) violations(both bool) []string {
	if !both {
		return nil
	}
	return r.Violations
}

// other is the changed world, or the same again.
func (r *Report) other() result {
	if r.WhatIf != nil {
		return result{r.WhatIf}
	}
	return result{&r.Base}
}

func (r *Report) flows(t *table) {
	other := r.other()
	for i, f := range r.Base.Flows {
		if i == mostFlows {
			t.head(fmt.Sprintf("and %d more arrivals (all of them with --json)", len(r.Base.Flows)-i))
			return
		}
		o := other.Flows[i]
		name := f.Name
		if f.Tenant != f.Name {
			name = f.Tenant + " · " + f.Name
		}
		t.head(name)
		t.pair("tasks", number("%.0f", float64(f.Tasks)), number("%.0f", float64(o.Tasks)), signed("%+.0f", float64(o.Tasks-f.Tasks)))
		t.pair("ended", number("%.0f", float64(f.Ended)), number("%.0f", float64(o.Ended)), signed("%+.0f", float64(o.Ended-f.Ended)))
		if f.Refused+o.Refused > 0 {
			t.pair("refused", number("%.0f", float64(f.Refused)), number("%.0f", float64(o.Refused)), signed("%+.0f", float64(o.Refused-f.Refused)))
		}
		t.pair("wait, mean", span(f.Wait.Mean), span(o.Wait.Mean), seconds(f.Wait.Mean, o.Wait.Mean))
		t.pair("wait, p50", span(f.Wait.P50), span(o.Wait.P50), seconds(f.Wait.P50, o.Wait.P50))
		t.pair("wait, p99", span(f.Wait.P99), span(o.Wait.P99), seconds(f.Wait.P99, o.Wait.P99))
		t.pair("wait, longest", span(f.Wait.Most), span(o.Wait.Most), seconds(f.Wait.Most, o.Wait.Most))
		if f.Deadlines+o.Deadlines > 0 {
			t.pair("deadlines missed", missed(f), missed(o), signed("%+.0f", float64(o.Missed-f.Missed)))
		}
	}
}

func missed(f sim.Flow) string { return fmt.Sprintf("%d of %d", f.Missed, f.Deadlines) }

func (r *Report) shares(t *table) {
	other := r.other()
	if len(r.Tenants) < 2 || len(r.Tenants) > mostFlows || r.Base.Contended+other.Contended == 0 {
		return
	}
	t.head("share of the slots while all had work (" + span(r.Base.Contended) + ")")
	for _, name := range r.Tenants {
		a, b := r.Base.Shares[name], other.Shares[name]
		t.pair(name, percent(a), percent(b), signed("%+.1f", 100*(b-a)))
	}
}

// table is text in columns.
type table struct {
	both bool
	out  strings.Builder
}

func (t *table) head(text string) { t.out.WriteString("\n" + text + "\n") }

func (t *table) pair(name, base, whatIf, difference string) {
	if !t.both {
		whatIf, difference = "", ""
	}
	t.line("  ", name, base, whatIf, difference)
}

func (t *table) line(indent, name string, cells ...string) {
	text := indent + name
	for i, c := range cells {
		text += strings.Repeat(" ", max(1, 40+14*i+14-utf8.RuneCountInString(text)-utf8.RuneCountInString(c))) + c
	}
	t.out.WriteString(strings.TrimRight(text, " ") + "\n")
}

func number(format string, v float64) string { return fmt.Sprintf(format, v) }

func signed(format string, v float64) string {
	text := fmt.Sprintf(format, v)
	if strings.Trim(text, "+-0.") == "" {
		return "="
	}
	return strings.Replace(text, "-", "−", 1)
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func seconds(a, b time.Duration) string {
	if a == b {
		return "="
	}
	sign := "+"
	if b < a {
		sign = "−"
	}
	return sign + span((b - a).Abs())
}

// span is a duration with as much of it as says something.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1f d", d.Hours()/24)
	case d >= time.Hour:
		return fmt.Sprintf("%.2f h", d.Hours())
	case d >= time.Minute:
		return fmt.Sprintf("%.1f min", d.Minutes())
	}
	return fmt.Sprintf("%.3g s", math.Round(d.Seconds()*1000)/1000)
}

// JSON writes the report for programs; spans are seconds.
func (r *Report) JSON(w io.Writer) error {
	out := struct {
		Title   string   `json:"title"`
		Base    outcome  `json:"base"`
		Changes []string `json:"changes,omitempty"`
		WhatIf  *outcome `json:"what_if,omitempty"`
	}{Title: r.Title, Base: r.outcome(&r.Base), Changes: r.Changes}
	if r.WhatIf != nil {
		other := r.outcome(r.WhatIf)
		out.WhatIf = &other
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
