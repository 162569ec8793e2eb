package figures

import (
	"os"
	"runtime"
	"testing"
	"time"

	"nightshift/scheduler/sim"
	"nightshift/scheduler/sim/trace"
)

// The quick figures reach their goals; those that take longer are printed by `make sim`.
func TestQuickFigures(t *testing.T) {
	if testing.Short() {
		t.Skip("the figures are printed by make sim-quick, and held to their goals by the whole tests")
	}
	began := time.Now()
	around := Around{
		Traces: os.Getenv("TRACE_DIR"), Clock: func() time.Duration { return time.Since(began) },
		Heap: func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		},
	}
	made := Run(around, true, nil, nil)
	if err := Print(testWriter{t}, made, true); err != nil {
		t.Fatal(err)
	}
	for _, f := range made {
		if f.Only == "" && f.Verdict() != "reached" {
			t.Errorf("%s: "+f.Format+", the goal is "+f.Format+" (%s)", f.Name, f.Value, f.Goal, f.Note)
		}
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("\n%s", p)
	return len(p), nil
}

func TestVerdicts(t *testing.T) {
	for want, f := range map[string]Figure{
		"reached": {Value: 2, Goal: 2, Fails: 5}, "short": {Value: 3, Goal: 2, Fails: 5}, "FAILS": {Value: 0.9, Goal: 2, Fails: 1, More: true},
	} {
		if got := f.Verdict(); got != want {
			t.Errorf("%+v: %s, want %s", f, got, want)
		}
	}
}

// A small form of the figure that takes long: keyed tasks hide nothing.
func TestKeyedTasksHideNothing(t *testing.T) {
	l := &lab{}
	r := l.live(keyScenario(5_000))
	for _, f := range r.Flows[1:] {
		if f.Wait.Tasks != 10 || f.Wait.Most > time.Second {
			t.Errorf("%s: %d of 10 free tasks started, the last after %s", f.Name, f.Wait.Tasks, f.Wait.Most)
		}
	}
	for _, v := range l.violations {
		t.Error(v)
	}
}

// A small form of the figure that needs a recorded trace: timers made up like it.
func TestTimersApplyWhatIsSuggested(t *testing.T) {
	var made trace.Trace
	for i, every := range []int{5, 5, 5, 5, 10, 10, 15, 30, 30, 60, 60, 60, 1} {
		for at := 0; at < 240; at += every {
			made.Tasks = append(made.Tasks, trace.Task{Item: sim.Item{At: time.Duration(at) * time.Minute}})
			made.Tasks[len(made.Tasks)-1].Class.Type = string(rune('a' + i))
		}
	}
	loads, span := regular(&made, 2)
	if len(loads) != 12 {
		t.Fatalf("%d timers are regular, twelve are", len(loads))
	}
	before, after, moves := settled(loads, span)
	if before < 6 || after > 3 || moves < 8 {
		t.Errorf("peak ÷ mean is %.2f as scheduled, and %.2f after %d moves", before, after, moves)
	}
}
