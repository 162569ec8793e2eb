package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// listener makes a schedule for the triggers named "sale": five seconds of quiet, at most twenty of waiting.
func (w *world) listener(name string, change ...func(*models.ScheduleRule)) models.TaskRef {
	w.t.Helper()
	return w.schedule(name, func(s *models.Schedule) {
		s.Rule = models.ScheduleRule{
			Kind: "event", GraceSeconds: 5, Misfire: "run_once", Overlap: "allow",
			Event: &models.EventRule{Name: "sale", DebounceSeconds: 5, MaxWaitSeconds: 20},
		}
		for _, c := range change {
			c(&s.Rule)
		}
	})
}

func (w *world) publishing(name string, data ...string) *engine.Command {
	cmd := &engine.Command{ID: w.id(), Publish: &engine.Publish{Env: w.env, Name: name}}
	for _, d := range data {
		cmd.Publish.Messages = append(cmd.Publish.Messages, engine.NewMessage{ID: w.id(), Data: json.RawMessage(d)})
	}
	return cmd
}

// tell sends triggers named "sale", one command each.
func (w *world) tell(data ...string) {
	w.t.Helper()
	for _, d := range data {
		w.do(w.publishing("sale", d))
	}
}

// events are the data of what each run of a schedule took, a run behind a bar.
func (w *world) events(of models.TaskRef) string {
	var runs []string
	for _, r := range w.store.Runs(of) {
		var data []string
		messages, _ := w.store.Taken(models.TaskRef{Env: r.Env, ID: r.ID})
		for _, m := range messages {
			data = append(data, string(m.Data))
		}
		runs = append(runs, strings.Join(data, " "))
	}
	return strings.Join(runs, " | ")
}

func (w *world) eventsAre(of models.TaskRef, want string) {
	w.t.Helper()
	if got := w.events(of); got != want {
		w.t.Fatalf("the runs took\n%s\nwant\n%s", got, want)
	}
}

func TestTriggersGatherUntilItIsQuiet(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.listener("on a sale")
	other := w.listener("too", func(r *models.ScheduleRule) { r.Event = &models.EventRule{Name: "sale"} })
	if got := w.do(w.publishing("nobody", `0`)).Published; got.Matched != 0 || got.New != 1 {
		t.Errorf("to nobody: %+v", got)
	}
	if got := w.do(w.publishing("sale", `1`)).Published; got.Matched != 2 {
		t.Errorf("to two: %+v", got)
	}
	w.outcomesAre(other, "dispatched/ready") // it waits for nothing
	w.advance(4 * time.Second)
	w.tell(`2`)
	w.advance(4 * time.Second)
	w.tell(`"three"`)
	last := w.now
	w.outcomesAre(of, "")
	w.advance(4 * time.Second)
	w.outcomesAre(of, "")
	w.advance(time.Second)
	w.outcomesAre(of, "dispatched/ready")
	w.eventsAre(of, `1 2 "three"`)
	run := w.store.Runs(of)[0]
	if run.Origin != "event" || run.ScheduledFor != last.Add(5*time.Second) || run.LateMS != 0 {
		t.Errorf("the run is %+v", run)
	}
	spec, _ := w.store.Spec(models.TaskRef{Env: w.env, ID: run.Task})
	var payload struct {
		For    string                `json:"for"`
		Event  json.RawMessage       `json:"event"`
		Events []engine.EventPayload `json:"events"`
	}
	w.must(json.Unmarshal(spec.Payload, &payload))
	if payload.For == "" || string(payload.Event) != `"three"` || len(payload.Events) != 3 || string(payload.Events[1].Data) != `2` || payload.Events[0].Name != "sale" ||
		!strings.HasPrefix(payload.Events[0].ID, "evt_") || payload.Events[2].At != last.Time().Format(time.RFC3339Nano) {
		t.Errorf("the payload is %s", spec.Payload)
	}
	if !strings.Contains(string(spec.Input), `"fed":"event"`) {
		t.Errorf("the input is %s", spec.Input)
	}
	w.advance(time.Minute)
	w.eventsAre(of, `1 2 "three"`)
	w.eventsAre(other, `1 | 2 | "three"`)
}

func TestWaitingAndCountingBoundTheDebounce(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.listener("s", func(r *models.ScheduleRule) { r.Event.MaxEvents = 7 })
	began := w.now
	for i := range 6 {
		w.tell(fmt.Sprint(i))
		w.advance(4 * time.Second)
	}
	runs := w.store.Runs(of)
	if len(runs) != 1 || runs[0].ScheduledFor != began.Add(20*time.Second) {
		t.Fatalf("the runs are %+v", runs)
	}
	w.eventsAre(of, "0 1 2 3 4")
	w.advance(time.Minute)
	w.eventsAre(of, "0 1 2 3 4 | 5")
	w.do(w.publishing("sale", "0", "1", "2", "3", "4", "5", "6", "7", "8"))
	w.eventsAre(of, "0 1 2 3 4 | 5 | 0 1 2 3 4 5 6") // at once; what is left over waits for quiet
	w.advance(4 * time.Second)
	w.eventsAre(of, "0 1 2 3 4 | 5 | 0 1 2 3 4 5 6")
	w.advance(time.Second)
	w.eventsAre(of, "0 1 2 3 4 | 5 | 0 1 2 3 4 5 6 | 7 8")
}

func TestWhatHindersARunLosesNoTrigger(t *testing.T) {
	for policy, want := range map[string][3]string{ // while the first runs, after its end, and what each took
		"skip":            {"dispatched/ready skipped_overlap", "dispatched/succeeded skipped_overlap dispatched/ready", "1 |  | 2 3 4"},
		"queue_one":       {"dispatched/ready waits", "dispatched/succeeded dispatched/ready", "1 | 2 3 4"},
		"allow":           {"dispatched/ready dispatched/ready dispatched/ready", "dispatched/succeeded dispatched/ready dispatched/ready", "1 | 2 | 3 4"},
		"cancel_previous": {"superseded/cancelled superseded/cancelled dispatched/ready", "superseded/cancelled superseded/cancelled dispatched/succeeded", "1 | 2 | 3 4"},
	} {
		t.Run(policy, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			of := w.listener("s", func(r *models.ScheduleRule) { r.Overlap = policy })
			w.tell("1")
			w.advance(6 * time.Second)
			w.tell("2")
			w.advance(6 * time.Second)
			w.tell("3", "4")
			w.advance(6 * time.Second)
			w.outcomesAre(of, want[0])
			worker := w.worker("one")
			w.settle(worker, ok(w.claim(worker, 1)[0]))
			w.advance(time.Second)
			w.outcomesAre(of, want[1])
			w.eventsAre(of, want[2])
		})
	}
}

func TestPausesKeepTriggers(t *testing.T) {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	of := w.listener("s")
	w.turnSchedule(of, false)
	w.tell("1")
	w.advance(time.Hour)
	w.tell("2")
	w.advance(time.Hour)
	w.outcomesAre(of, "skipped_paused")
	w.turnSchedule(of, true)
	w.advance(time.Second)
	w.outcomesAre(of, "skipped_paused dispatched/ready")
	w.eventsAre(of, " | 1 2")
	if r := w.store.Runs(of)[1]; r.LateMS != 0 {
		t.Errorf("the run is %+v", r)
	}
	pause := func(on bool) {
		env := *w.engine.Board().Envs[w.env]
		env.Paused = on
		w.do(&engine.Command{Configure: &engine.Configure{Environment: &env, Version: env.Version, Action: "environment.pause"}})
	}
	pause(true)
	w.tell("3")
	w.advance(time.Minute)
	w.outcomesAre(of, "skipped_paused dispatched/ready skipped_paused")
	pause(false)
	w.eventsAre(of, " | 1 2 |  | 3")
}

func TestTriggersThatCameTooLate(t *testing.T) {
	for want, change := range map[string]func(*models.ScheduleRule){
		"dispatched/ready": func(r *models.ScheduleRule) {},
		"misfired":         func(r *models.ScheduleRule) { r.Misfire = "skip" },
		"expired":          func(r *models.ScheduleRule) { r.ExpireSeconds = 60 },
	} {
		t.Run(want, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			of := w.listener("s", change)
			w.tell("1", "2")
			w.now = w.now.Add(10 * time.Minute) // nobody decides
			w.takeOver()
			w.turn(&engine.Command{Tick: &engine.Tick{}})
			w.outcomesAre(of, want)
			w.eventsAre(of, "1 2")
			w.tell("3")
			w.advance(6 * time.Second)
			w.eventsAre(of, "1 2 | 3")
		})
	}
}

func TestATriggerCountsOnceByItsKey(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.listener("s")
	keyed := func(key string) *engine.Command {
		cmd := w.publishing("sale", `"`+key+`"`)
		cmd.Publish.Messages[0].Key = key
		return cmd
	}
	first := w.do(keyed("a")).Published
	again := w.do(keyed("a")).Published
	if first.New != 1 || again.New != 0 || !again.Messages[0].Deduplicated || again.Messages[0].ID != first.Messages[0].ID || again.Matched != 1 {
		t.Errorf("first %+v, again %+v", first, again)
	}
	same := []*engine.Command{keyed("b"), keyed("b"), keyed("c")} // in one batch
	w.turn(same...)
	if r := w.late[same[1]].Answer.Published; r.New != 0 || r.Messages[0].ID != w.late[same[0]].Answer.Published.Messages[0].ID {
		t.Errorf("in one batch: %+v", r)
	}
	resent := *same[2]
	resent.Resent = true
	if r := w.do(&resent).Published; r.New != 1 || r.Messages[0].Deduplicated || r.Matched != 1 {
		t.Errorf("sent again: %+v", r)
	}
	w.advance(time.Minute)
	w.eventsAre(of, `"a" "b" "c"`)
	w.now = w.now.Add(24 * time.Hour)
	if r := w.do(keyed("a")).Published; r.New != 1 {
		t.Errorf("a day later: %+v", r)
	}
}

func TestMessagesAreCounted(t *testing.T) {
	w := newWorld(t, engine.Config{})
	w.listener("one")
	w.listener("two", func(r *models.ScheduleRule) { r.Event.DebounceSeconds = 1000 })
	keyed := w.publishing("sale", "1", "2")
	keyed.Publish.Messages[0].Key, keyed.Publish.Messages[1].Key = "a", "a"
	w.do(keyed)
	w.fill(0, 3)
	dry := w.publishing("sale", "3")
	dry.Publish.Messages[0].Key, dry.Publish.Dry = "a", true
	w.do(dry)
	w.advance(6 * time.Second)
	is := func(want ...engine.MessageFigures) {
		t.Helper()
		if got := w.stats().Messages; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("counted\n%+v\nwant\n%+v", got, want)
		}
	}
	is(engine.MessageFigures{Source: "trigger", Received: 1, Deduplicated: 1, Taken: 1, Waiting: 1, Oldest: 6}, engine.MessageFigures{Source: "queue", Received: 3, Waiting: 3, Oldest: 6})
	w.drainer("mail", func(r *models.ScheduleRule) { r.Drain.MaxItems = 2 })
	w.advance(0)
	is(engine.MessageFigures{Source: "trigger", Received: 1, Deduplicated: 1, Taken: 1, Waiting: 1, Oldest: 6}, engine.MessageFigures{Source: "queue", Received: 3, Taken: 2, Waiting: 1, Oldest: 6})
	w.rebuild() // what waits is read again, what was counted stays with the brain
	is(engine.MessageFigures{Source: "trigger", Received: 1, Deduplicated: 1, Taken: 1, Waiting: 1, Oldest: 6}, engine.MessageFigures{Source: "queue", Received: 3, Taken: 2, Waiting: 1, Oldest: 6})
}

func TestARunTakesNoMoreThanItsPayloadHolds(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.listener("s", func(r *models.ScheduleRule) { r.Event.DebounceSeconds, r.Overlap = 0, "skip" })
	large := `"` + strings.Repeat("x", 60_000) + `"`
	w.do(w.publishing("sale", large, large, large, large, large))
	worker := w.worker("one", func(r *models.Worker) { r.Slots = 1 })
	var sizes []int
	for range 3 {
		w.advance(time.Second)
		lease := w.claim(worker, 1)[0]
		spec, _ := w.store.Spec(models.TaskRef{Env: w.env, ID: lease.Row.ID})
		if len(spec.Payload) > 256<<10 {
			t.Errorf("a payload of %d bytes", len(spec.Payload))
		}
		w.settle(worker, ok(lease))
	}
	for _, r := range w.store.Runs(of) {
		if r.Outcome == "dispatched" {
			messages, _ := w.store.Taken(models.TaskRef{Env: r.Env, ID: r.ID})
			sizes = append(sizes, len(messages))
		}
	}
	if fmt.Sprint(sizes) != "[2 2 1]" {
		t.Errorf("the runs took %v", sizes)
	}
}

func TestTheTasksThatBeginAWorkflowGetItsEvents(t *testing.T) {
	w := newWorld(t, engine.Config{})
	rule := models.ScheduleRule{Kind: "event", Overlap: "allow", Event: &models.EventRule{Name: "sale", DebounceSeconds: 1}, Partitions: 2}
	of := w.fedRule("s", rule)
	w.tell("1", "2")
	w.advance(time.Second)
	w.flowsAre(of, "dispatched/running")
	w.eventsAre(of, "1 2") // the run's, once
	seen := map[string]string{}
	for _, task := range w.store.Tasks() {
		spec, _ := w.store.Spec(models.TaskRef{Env: of.Env, ID: task.ID})
		var payload struct {
			Event  json.RawMessage
			Events []json.RawMessage
		}
		w.must(json.Unmarshal(spec.Payload, &payload))
		seen[task.Key] = fmt.Sprint(string(payload.Event), len(payload.Events), strings.Contains(string(spec.Input), `"fed":"event"`))
	}
	if want := "map[a[0]:22 true a[1]:22 true b[0]:0 false b[1]:0 false c[0]:22 true c[1]:22 true]"; fmt.Sprint(seen) != want {
		t.Errorf("the tasks got\n%v\nwant\n%s", seen, want)
	}
	w.rebuild()
	w.work(w.worker("one"), ok)
	w.flowsAre(of, "dispatched/succeeded")
	w.advance(time.Minute)
	w.eventsAre(of, "1 2")
}

func TestAFlexibleScheduleStartsItsEventsLater(t *testing.T) {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	of := w.listener("s", func(r *models.ScheduleRule) { r.FlexibleSeconds = 3600; r.Event.DebounceSeconds = 0 })
	w.tell("1")
	w.outcomesAre(of, "dispatched/scheduled")
	w.advance(time.Hour)
	w.outcomesAre(of, "dispatched/ready")
}

func TestEditsKeepWhatWaitsForTheSameName(t *testing.T) {
	w := newWorld(t, engine.Config{})
	of := w.listener("s")
	w.tell("1")
	edit := func(name string, debounce float64) {
		row := models.Schedule{Env: of.Env, ID: of.ID, Name: "s", Work: models.ScheduleWork{Task: json.RawMessage(`{"class":{"type":"work"},"max_attempts":1,"input":{}}`)}}
		row.Rule = models.ScheduleRule{Kind: "event", Overlap: "allow", Event: &models.EventRule{Name: name, DebounceSeconds: debounce}}
		w.do(&engine.Command{Configure: &engine.Configure{Schedule: &row, Version: -1, Action: "schedule.edit"}})
	}
	edit("sale", 1)
	w.advance(time.Second)
	w.eventsAre(of, "1")
	w.tell("2")
	edit("refund", 1)
	w.do(w.publishing("refund", "3"))
	w.advance(time.Minute)
	w.eventsAre(of, "1 | 3")
	edit("sale", 1) // what came meanwhile was for nobody
	w.tell("4")
	w.advance(time.Minute)
	w.eventsAre(of, "1 | 3 | 4")
	run := w.trigger(of)
	if run.Outcome != "dispatched" || run.Origin != "manual:"+run.ID.Text(models.RunPrefix) {
		t.Errorf("by hand: %+v", run)
	}
	w.tell("5", "6")
	w.trigger(of)
	w.advance(time.Minute)
	w.eventsAre(of, "1 | 3 | 4 |  | 5 6")
	w.do(&engine.Command{Configure: &engine.Configure{DeleteSchedule: &of, Version: -1, Action: "schedule.delete"}})
	if got := w.do(w.publishing("sale", "7")).Published; got.Matched != 0 {
		t.Errorf("after its end: %+v", got)
	}
}
