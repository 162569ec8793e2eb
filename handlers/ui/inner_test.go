package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
	"nightshift/templates"
)

const sampleAt = models.Instant(1_800_000_000_000_000)

func TestQueryLines(t *testing.T) {
	flow := models.NewID(sampleAt, [10]byte{1})
	f, err := readQuery(`state:ready state:running embed type:"a b" lane:io kind:batch label.customer:a label.customer:b workflow:`+flow.Text("wf")+` created:<2h created:>30m`, sampleAt)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f.States, []models.State{models.Ready, models.Running}) || !slices.Equal(f.Types, []string{"embed", "a b"}) ||
		!slices.Equal(f.Lanes, []string{"io"}) || !slices.Equal(f.Kinds, []models.KindName{models.Batch}) ||
		!slices.Equal(f.Labels["customer"], []string{"a", "b"}) || !slices.Equal(f.Workflows, []models.ID{flow}) ||
		f.CreatedAfter != sampleAt.Add(-models.Seconds(7200)) || f.CreatedBefore != sampleAt.Add(-models.Seconds(1800)) {
		t.Errorf("%+v", f)
	}
}

func TestQueryLinesThatCantBeRead(t *testing.T) {
	for line, want := range map[string]string{
		"state:gone": "no state", "state:": "no value", "kind:x": "no kind", "worker:abc": "no id", "fingerprint:zz": "no fingerprint",
		"created:1h": "created:<1h", "created:<": "created:<1h", "created:<99999999999999999999h": "created:<1h", "created:<0s": "created:<1h",
		"label.:x": "no filter", "payload.x:y": "no filter", "-state:ready": "no filter", "wf:x": "no filter",
	} {
		if _, err := readQuery(line, sampleAt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func names(list []templates.Step) string {
	var out []string
	for _, s := range list {
		out = append(out, s.State)
	}
	return strings.Join(out, " ")
}

func TestStepsAreToldFromRowAndAttempts(t *testing.T) {
	at := func(s int) models.Instant { return sampleAt.Add(models.Seconds(s)) }
	attempt := func(n int32, o models.Outcome, from, to int) models.Attempt {
		return models.Attempt{N: n, Outcome: o, StartedAt: at(from), FinishedAt: at(to)}
	}
	for _, c := range []struct {
		what     string
		task     models.Task
		depends  bool
		attempts []models.Attempt
		want     string
	}{
		{"new", models.Task{State: models.Ready, CreatedAt: at(0), ReadyAt: at(0)}, false, nil, "ready"},
		{"timed", models.Task{State: models.Scheduled, CreatedAt: at(0)}, false, nil, "scheduled"},
		{"waits", models.Task{State: models.Pending, CreatedAt: at(0)}, true, nil, "pending"},
		{"skipped", models.Task{State: models.Skipped, CreatedAt: at(0), FinishedAt: at(9)}, true, nil, "pending skipped"},
		{"runs", models.Task{State: models.Running, CreatedAt: at(0), ReadyAt: at(0), StartedAt: at(1), Attempt: 1}, false, nil, "ready running"},
		{
			"succeeded",
			models.Task{State: models.Succeeded, CreatedAt: at(0), ReadyAt: at(3), FinishedAt: at(5), Attempt: 1},
			true,
			[]models.Attempt{attempt(1, models.AttemptSucceeded, 4, 5)},
			"pending ready running succeeded",
		},
		{
			"tries again",
			models.Task{State: models.RetryWait, CreatedAt: at(0), ReadyAt: at(0), UpdatedAt: at(9), Attempt: 2},
			false,
			[]models.Attempt{attempt(1, models.AttemptFailed, 1, 2), attempt(2, models.AttemptTimedOut, 5, 9)},
			"ready running retry_wait ready running retry_wait",
		},
		{
			"lost once",
			models.Task{State: models.Ready, CreatedAt: at(0), ReadyAt: at(0), UpdatedAt: at(3), Attempt: 1},
			false,
			[]models.Attempt{attempt(1, models.AttemptLost, 1, 3)},
			"ready running ready",
		},
		{
			"died",
			models.Task{State: models.DeadLetter, CreatedAt: at(0), ReadyAt: at(0), UpdatedAt: at(3), Attempt: 1},
			false,
			[]models.Attempt{attempt(1, models.AttemptFailed, 1, 3)},
			"ready running dead_letter",
		},
		{"asked to stop", models.Task{State: models.CancelRequested, CreatedAt: at(0), ReadyAt: at(0), StartedAt: at(1), CancelAt: at(2), Attempt: 1}, false, nil, "ready running cancel_requested"},
		{"cancelled early", models.Task{State: models.Cancelled, CreatedAt: at(0), FinishedAt: at(2)}, true, nil, "pending cancelled"},
	} {
		if got := names(steps(&c.task, c.depends, c.attempts)); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

func TestAHintNamesAtMostSoManyObjects(t *testing.T) {
	hub := NewHub()
	l := hub.join([]int32{1})
	for i := range byte(hintIDs + 5) {
		e := models.Event{Env: 1, Name: "task.ready", Task: models.NewID(sampleAt, [10]byte{0, i})}
		hub.Take(e)
		hub.Take(e)
	}
	hub.Take(models.Event{Env: 2, Name: "task.ready", Task: models.NewID(sampleAt, [10]byte{9})})
	hints, reset := hub.take(l)
	if len(hints) != 1 || reset || !hints[0].More || len(hints[0].IDs) != 0 || !slices.Equal(hints[0].Topics, []string{"tasks", "lanes"}) {
		t.Errorf("%v %+v", reset, hints)
	}
	if hints, reset = hub.take(l); len(hints) != 0 || reset {
		t.Error("a hint is told twice")
	}
	hub.Reset()
	if _, reset = hub.take(l); !reset {
		t.Error("the listener is not told to draw everything again")
	}
	if recent := hub.Recent(1, 3); len(recent) != 3 || recent[0].Task != models.NewID(sampleAt, [10]byte{0, hintIDs + 4}) {
		t.Errorf("%+v", recent)
	}
}

// What happens between the drawing of a page and the beginning of its stream is told when it begins.
func TestAStreamBeginsWithWhatMovedOfLate(t *testing.T) {
	hub := NewHub()
	hub.Take(models.Event{Env: 1, Name: "task.redriven", Task: models.NewID(sampleAt, [10]byte{1})})
	hub.Take(models.Event{Env: 2, Name: "workflow.ended", Workflow: models.NewID(sampleAt, [10]byte{2})})
	hub.Take(models.Event{Name: "worker.joined", Worker: models.NewID(sampleAt, [10]byte{3})})
	l := hub.join([]int32{1})
	select {
	case <-l.wake:
	default:
		t.Error("the stream is not woken")
	}
	hints, reset := hub.take(l)
	if len(hints) != 2 || reset || hints[0].Scope != "" || !slices.Equal(hints[0].Topics, []string{"workers"}) ||
		hints[1].Scope != "1" || !slices.Equal(hints[1].Topics, []string{"dead", "lanes", "tasks"}) || !hints[1].More {
		t.Errorf("%v %+v", reset, hints)
	}
	hub.moved[1]["tasks"] = time.Now().Add(-2 * lookBack)
	if hints, _ = hub.take(hub.join([]int32{1})); len(hints) != 2 || !slices.Equal(hints[1].Topics, []string{"dead", "lanes"}) {
		t.Errorf("after a while: %+v", hints)
	}
}

func TestEveryPageSaysWhoMaySeeIt(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range (&pages{}).table() {
		if row.scope == "" || seen[row.method+row.path] {
			t.Errorf("%s %s: scope %q, or there twice", row.method, row.path, row.scope)
		}
		seen[row.method+row.path] = true
	}
	for _, entry := range templates.Navigation() {
		if !seen["GET"+entry.Path] {
			t.Errorf("the navigation names %s, which is no page", entry.Path)
		}
	}
}

// A lane that is held back says so where nothing stronger closes it, and how much room there is.
func TestAHeldLaneSaysSo(t *testing.T) {
	held := []engine.LaneHold{{Pool: "cpu", Room: 3, Running: 3, Capacity: 10, Needed: 6.25, Until: 1_800_000_000_000_000, Says: "why"}, {Pool: "gpu", Room: 1, Capacity: 2}}
	for want, lane := range map[string]models.Lane{"held": {}, "paused": {Paused: true}, "draining": {Draining: true}} {
		if got := laneState(&lane, held); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	if got := laneState(&models.Lane{}, nil); got != "open" {
		t.Errorf("an open lane is %s", got)
	}
	rows := holdsOf(held)
	if len(rows) != 2 || rows[0].Pool != "cpu" || rows[0].Room != 3 || rows[0].Until.IsZero() || rows[0].Says != "why" || !rows[1].Until.IsZero() {
		t.Errorf("%+v", rows)
	}
}
