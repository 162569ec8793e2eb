package figures

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"nightshift/scheduler/sim"
	"nightshift/scheduler/sim/trace"
)

// Around is what the figures need of the world outside.
type Around struct {
	Traces string               // folder with recorded traces; empty: none
	Clock  func() time.Duration // rises with the time this process computes
	Heap   func() uint64        // bytes in use after a collection
}

// Figure is one value with what it should be.
type Figure struct {
	Name   string
	Value  float64
	Goal   float64
	Fails  float64 // beyond it, on the other side of the goal, it has failed
	Format string  // of the three, like "%.2f h"
	More   bool    // more is better
	Only   string  // why there is no value, or what the value is compared with where it has no goal
	Note   string
}

// Verdict is what the value says.
func (f Figure) Verdict() string {
	better := func(a, b float64) bool { return f.More && a >= b || !f.More && a <= b }
	switch {
	case f.Only != "":
		return f.Only
	case better(f.Value, f.Goal):
		return "reached"
	case better(f.Value, f.Fails):
		return "short"
	}
	return "FAILS"
}

// measure makes some figures.
type measure struct {
	Name  string
	Quick bool
	run   func(*lab) []Figure
}

var all = []measure{
	{"lag", true, serviceLag},
	{"pools", true, twoPools},
	{"keys", false, keyed},
	{"classes", true, classes},
	{"jain", true, evenShares},
	{"flood", true, flood},
	{"limits", true, limits},
	{"gates", true, gates},
	{"elastic", true, elasticDay},
	{"models", true, routed},
	{"jobs", false, elasticJobs},
	{"whole", false, wholeWorkers},
	{"deadlines", false, deadlines},
	{"due", true, dueMadeUp},
	{"waits", true, fairWaits},
	{"workflows", true, workflows},
	{"timers", false, timers},
	{"speed", false, speed},
	{"memory", false, memory},
}

// lab is where figures are made.
type lab struct {
	Around
	violations []string
	quick      bool
}

// live lives through a scenario; what breaks in it is a figure of its own.
func (l *lab) live(s sim.Scenario) sim.Result {
	r := sim.New(s).Run()
	l.violations = append(l.violations, r.Violations...)
	return r
}

// read reads a recorded trace; false where there is none.
func (l *lab) read(name string) (trace.Trace, bool) {
	if l.Traces == "" {
		return trace.Trace{}, false
	}
	path := filepath.Join(l.Traces, name+".csv.gz")
	if _, err := os.Stat(path); err != nil {
		return trace.Trace{}, false
	}
	t, err := trace.ReadFile(path, trace.DefaultSpeed)
	if err != nil {
		l.violations = append(l.violations, err.Error())
		return trace.Trace{}, false
	}
	return t, true
}

// skipped is a figure without its trace.
func skipped(name string) Figure { return Figure{Name: name, Only: "skipped: no trace (TRACE_DIR)"} }

// Names are the measures, in order.
func Names() []string {
	var out []string
	for _, m := range all {
		out = append(out, m.Name)
	}
	return out
}

// Run makes the figures of the named measures, or of all, and hands each set over as soon as it is made.
func Run(around Around, quick bool, names []string, each func([]Figure)) []Figure {
	var out []Figure
	l := &lab{Around: around, quick: quick}
	for _, m := range all {
		if len(names) == 0 && quick && !m.Quick || len(names) > 0 && !has(names, m.Name) {
			continue
		}
		made := m.run(l)
		out = append(out, made...)
		if each != nil {
			each(made)
		}
	}
	last := Figure{Name: "worlds that broke a rule", Value: float64(len(l.violations)), Format: "%.0f"}
	if len(l.violations) > 0 {
		last.Note = l.violations[0]
	}
	if each != nil {
		each([]Figure{last})
	}
	return append(out, last)
}

func has(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// Print writes figures as a table.
func Print(w io.Writer, figures []Figure, head bool) error {
	var out strings.Builder
	line := func(cells ...string) {
		for i, width := range []int{66, 12, 12, 12, 0} {
			out.WriteString(cells[i])
			out.WriteString(strings.Repeat(" ", max(0, width-utf8.RuneCountInString(cells[i]))))
		}
		out.WriteByte('\n')
	}
	if head {
		line("name", "value", "goal", "fails at", "verdict")
	}
	for _, f := range figures {
		verdict := f.Verdict()
		if f.Note != "" {
			verdict += "  (" + f.Note + ")"
		}
		if f.Only != "" {
			line(f.Name, "", "", "", verdict)
			continue
		}
		goal, beyond := "≤ ", "> "
		if f.More {
			goal, beyond = "≥ ", "< "
		}
		line(f.Name, fmt.Sprintf(f.Format, f.Value), goal+fmt.Sprintf(f.Format, f.Goal), beyond+fmt.Sprintf(f.Format, f.Fails), verdict)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
