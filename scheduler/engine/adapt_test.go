package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// realtime is a task that somebody waits for, long one of the kind that yields which runs for an hour.
func (w *world) realtime(change ...func(*engine.NewTask)) engine.NewTask {
	return w.task(append(change, func(t *engine.NewTask) {
		t.Lane, t.Class.Type, t.EstimateMS, t.HardSeconds = "realtime", "chat", 60_000, 100_000
	})...)
}

func (w *world) long(change ...func(*engine.NewTask)) engine.NewTask {
	return w.task(append([]func(*engine.NewTask){func(t *engine.NewTask) { t.EstimateMS = 3_600_000 }}, change...)...)
}

// quiet is a box with so many slots and a lease that needs no beats.
func (w *world) quiet(slots int32, change ...func(*models.Worker)) models.Worker {
	w.t.Helper()
	return w.worker("box", append([]func(*models.Worker){func(m *models.Worker) { m.Slots, m.LeaseSeconds = slots, 3600 }}, change...)...)
}

// hears notes the names of what happens to lanes and tasks in holds.
func (w *world) hears() *[]string {
	var heard []string
	w.saw = func(p *models.Plan) {
		for _, e := range p.Events {
			if strings.HasSuffix(e.Name, ".held") || e.Name == "lane.released" || e.Name == "task.released" && e.Worker.IsZero() {
				if e.Reason == "" {
					w.t.Errorf("%s says no numbers", e.Name)
				}
				heard = append(heard, e.Name)
			}
		}
	}
	return &heard
}

// Work of an elastic kind takes all slots while nobody else wants them, leaves room once somebody does, and gets it back
// when that has passed: after a dwell, once, and told with its numbers.
func TestElasticWorkYieldsToWhatPeopleWaitFor(t *testing.T) {
	w := newWorld(t, engine.Config{})
	box := w.quiet(10)
	var ids []models.ID
	for range 30 {
		ids = append(ids, w.submit(w.long())...)
	}
	first := w.claim(box, 10)
	if len(first) != 10 {
		t.Fatalf("nobody needs the pool, and %d of 10 slots were given", len(first))
	}
	heard := w.hears()
	w.submit(w.realtime(), w.realtime(), w.realtime())
	w.settle(box, ok(first[0]), ok(first[1]), ok(first[2]))
	chats := w.claim(box, 3)
	w.advance(5 * time.Second)
	w.settle(box, ok(first[3]), ok(first[4]))
	if got := w.claim(box, 5); len(got) != 1 { // of 10 slots 3 are needed and 1 stays free beside them
		t.Fatalf("beside three chats and five long tasks %d were started", len(got))
	}
	if why := w.why(ids[12]); !slices.Contains(why, "lane_held") {
		t.Fatalf("a held task is explained by %v", why)
	}
	if !slices.Equal(*heard, []string{"lane.held", "task.held", "task.released"}) { // one of them had room
		t.Fatalf("told: %v", *heard)
	}
	w.rebuild()
	if got := w.claim(box, 5); len(got) != 0 {
		t.Fatalf("after a rebuild %d were started", len(got))
	}
	w.submit(w.realtime())
	more := w.claim(box, 5)
	if len(more) != 1 || more[0].Type != "chat" {
		t.Fatalf("a fourth chat found no slot: %v", more)
	}
	w.settle(box, ok(chats[0]), ok(chats[1]), ok(chats[2]), ok(more[0]))
	w.advance(55 * time.Second)
	if got := w.claim(box, 1); len(got) > 1 {
		t.Fatalf("%d were started within a dwell", len(got))
	}
	w.advance(20 * time.Minute) // the mean forgets slowly
	if got := w.claim(box, 5); len(got) == 0 {
		t.Fatal("long after the last chat nothing is started")
	}
	w.advance(2 * time.Minute)
	w.claim(box, 10)
	if w.running() != 10 {
		t.Fatalf("long after the last chat %d of 10 slots are in use", w.running())
	}
	if last := (*heard)[len(*heard)-1]; !slices.Contains(*heard, "lane.released") {
		t.Fatalf("told: %v, %s last", *heard, last)
	}
}

func (w *world) running() int { return len(w.engine.Board().Leases) }

// hold leaves a world in which a box of ten slots runs eight chats and one long task, and more long tasks are held.
func hold(t *testing.T, change func(*world)) (*world, models.Worker) {
	w := newWorld(t, engine.Config{})
	if change != nil {
		change(w)
	}
	box := w.quiet(10)
	chats := make([]engine.NewTask, 8)
	for i := range chats {
		chats[i] = w.realtime()
	}
	w.submit(chats...)
	w.claim(box, 8)
	w.submit(w.long())
	w.claim(box, 1)
	w.advance(6 * time.Second)
	return w, box
}

func TestAHeldTaskStartsWhenItsTimeHasCome(t *testing.T) {
	w, box := hold(t, func(w *world) {
		k := w.engine.Board().Kinds[models.Batch]
		k.MaxHold = 600
		w.configure(&engine.Configure{Kind: &k, Action: "kind.edit"})
	})
	heard := w.hears()
	id := w.submit(w.long())[0]
	if got := w.claim(box, 1); len(got) != 0 {
		t.Fatal("held work was started")
	}
	w.advance(10 * time.Second)
	live := w.do(&engine.Command{Look: &engine.Look{Live: []models.TaskRef{{Env: w.env, ID: id}}}}).Looked.Live
	if len(live) != 1 || live[0].HeldUntil < w.now.Add(590*time.Second) || live[0].HeldUntil > w.now.Add(600*time.Second) {
		t.Fatalf("held until: %+v", live)
	}
	w.now = live[0].HeldUntil - 11_000_000
	w.advance(time.Second)
	if got := w.claim(box, 1); len(got) != 0 {
		t.Fatal("it was let go before its time")
	}
	w.advance(5 * time.Second)
	got := w.claim(box, 2)
	if len(got) != 1 || got[0].Row.ID != id || w.now > live[0].HeldUntil {
		t.Fatalf("%s before the longest time it may be held %d tasks were started", live[0].HeldUntil.Sub(w.now), len(got))
	}
	if !slices.Contains(*heard, "task.released") {
		t.Fatalf("told: %v", *heard)
	}
}

// What a hold has let go is held by none again: not when its room shuts anew, nor by the hold that comes after it.
func TestATaskThatWasLetGoIsNotHeldAgain(t *testing.T) {
	w, box := hold(t, func(w *world) {
		k := w.engine.Board().Kinds[models.Batch]
		k.MaxHold = 600
		w.configure(&engine.Configure{Kind: &k, Action: "kind.edit"})
	})
	id := w.submit(w.long())[0]
	w.advance(10 * time.Minute)
	heard := w.hears()
	chats := func() {
		tasks := make([]engine.NewTask, 8)
		for i := range tasks {
			tasks[i] = w.realtime()
		}
		w.submit(tasks...)
	}
	free := func(leases []engine.Lease) {
		for _, l := range leases {
			w.settle(box, ok(l))
		}
	}
	free(w.leasesOf("chat"))
	w.advance(22 * time.Minute) // the mean forgets slowly
	if !slices.Contains(*heard, "lane.released") {
		t.Fatalf("nobody chats, and the lane is held: %v", *heard)
	}
	*heard = nil
	later := w.submit(w.long())[0]
	chats()
	if got := w.claim(box, 8); len(got) != 8 || got[0].Type != "chat" {
		t.Fatalf("%d started", len(got))
	}
	w.advance(3 * time.Minute)
	if !slices.Equal(*heard, []string{"lane.held", "task.held"}) {
		t.Fatalf("told: %v", *heard) // of the later one alone
	}
	if why := w.why(id); slices.Contains(why, "lane_held") {
		t.Fatalf("what was let go waits for %v", why)
	}
	if why := w.why(later); !slices.Contains(why, "lane_held") {
		t.Fatalf("what was not let go waits for %v", why)
	}
	w.rebuild()
	w.advance(6 * time.Second)
	got := w.claim(box, 1)
	if len(got) != 1 || got[0].Row.ID != id {
		t.Fatalf("what was let go is held again: %+v", got)
	}
}

// leasesOf are the leases of a type.
func (w *world) leasesOf(typ string) (out []engine.Lease) {
	for _, l := range w.engine.Board().Leases {
		if w.engine.Board().Classes[l.Row().Class].Type == typ {
			out = append(out, engine.Lease{Row: *l.Row()})
		}
	}
	slices.SortFunc(out, func(a, b engine.Lease) int { return a.Row.ID.Compare(b.Row.ID) })
	return out
}

func TestADeadlineEndsAHold(t *testing.T) {
	w, box := hold(t, nil)
	w.submit(w.long())
	due := w.submit(w.long(func(t *engine.NewTask) { t.Deadline = w.now.Add(3600*time.Second + 20*time.Minute) }))[0]
	w.advance(10 * time.Second)
	if got := w.claim(box, 1); len(got) != 0 {
		t.Fatal("held work was started")
	}
	w.advance(13 * time.Minute)
	got := w.claim(box, 1)
	if len(got) != 1 || got[0].Row.ID != due || got[0].Row.LatestStart < w.now {
		t.Fatalf("the task with a deadline did not start in time: %+v", got)
	}
	if got := w.claim(box, 1); len(got) != 0 {
		t.Fatal("with it another was let go")
	}
}

// Another brain goes on with what is held: it starts nothing more of it at once, and tells nobody twice.
func TestATakeoverStartsNoStorm(t *testing.T) {
	w, box := hold(t, nil)
	for range 20 {
		w.submit(w.long())
	}
	w.advance(10 * time.Second)
	held := len(w.snapshot().Held)
	if held != 1 {
		t.Fatalf("%d lanes are held", held)
	}
	heard := w.hears()
	brain, err := w.store.Brain(w.ctx)
	w.must(err)
	w.epoch, err = w.store.TakeOver(w.ctx, brain, "there")
	w.must(err)
	w.engine = engine.New(engine.Config{})
	w.rebuild()
	if got := w.claim(box, 10); len(got) != 0 {
		t.Fatalf("the new brain started %d at once", len(got))
	}
	w.advance(30 * time.Second)
	if got := w.claim(box, 10); len(got) != 0 {
		t.Fatalf("soon the new brain started %d", len(got))
	}
	if len(*heard) != 0 {
		t.Fatalf("it told anew: %v", *heard)
	}
}

func (w *world) snapshot() *models.Snapshot {
	heads, most := w.engine.Limits()
	s, err := w.store.Load(w.ctx, heads, most)
	w.must(err)
	return s
}

// Slots that the other side could not use are never held for it.
func TestNothingIsHeldWhereNobodyElseCouldRun(t *testing.T) {
	for name, change := range map[string]func(*models.Worker){
		"types of its own":   func(m *models.Worker) { m.TaskTypes = []string{"work"} },
		"slots of their own": func(m *models.Worker) { m.Slots, m.KindSlots = 0, map[string]int32{"realtime": 4, "batch": 10} },
		"one kind alone":     func(m *models.Worker) { m.Kinds = []models.KindName{models.Batch} },
		"one lane alone":     func(m *models.Worker) { m.Lanes = []string{"batch"} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			other := w.worker("other", func(m *models.Worker) {
				if m.Slots, m.LeaseSeconds = 4, 3600; name == "types of its own" {
					m.TaskTypes = []string{"chat"}
				} else {
					m.Kinds = []models.KindName{models.Realtime}
				}
			})
			box := w.quiet(10, change)
			w.submit(w.realtime(), w.realtime(), w.realtime(), w.realtime())
			w.claim(other, 4)
			w.advance(6 * time.Second)
			for range 10 {
				w.submit(w.long())
			}
			w.advance(6 * time.Second)
			if got := w.claim(box, 10); len(got) != 10 {
				t.Fatalf("%d of 10 were started", len(got))
			}
		})
	}
}

// Room is a part of what is there: the slots of workers that have died, or were replaced without a word, leave nobody any.
func TestSlotsOfSilentWorkersMakeNoRoom(t *testing.T) {
	w := newWorld(t, engine.Config{})
	for _, name := range []string{"first", "second", "third", "fourth"} {
		w.worker(name, func(m *models.Worker) { m.Slots = 50 })
	}
	box := w.quiet(10)
	w.advance(40 * time.Second)
	for range 6 {
		w.submit(w.realtime())
	}
	w.claim(box, 6)
	for range 6 {
		w.submit(w.long())
	}
	if got := w.claim(box, 3); len(got) != 3 {
		t.Fatalf("%d of 3 were started", len(got))
	}
	w.advance(2 * time.Minute) // the mean of what is needed rises slowly
	if got := w.claim(box, 9); len(got) != 0 {
		t.Fatalf("of 10 slots 6 are needed, and %d more were given beside 3", len(got))
	}
}

// Where tasks are short, whoever goes first gets a slot at once: nothing is held back, and no slot stands idle.
func TestShortWorkIsNotHeld(t *testing.T) {
	w := newWorld(t, engine.Config{})
	box := w.quiet(10)
	w.submit(w.realtime())
	w.claim(box, 1)
	for range 30 {
		w.submit(w.task(func(t *engine.NewTask) { t.EstimateMS = 500 }))
	}
	w.advance(10 * time.Second)
	if got := w.claim(box, 10); len(got) != 9 {
		t.Fatalf("%d of 9 free slots were given", len(got))
	}
}

// What is foreseen is room as soon as it comes nearer than what starts now would run.
func TestAPeakAheadHoldsWorkBack(t *testing.T) {
	var peak models.Instant
	w := worldOn(t, engine.Config{Peak: func(pool string, kinds []models.KindName, from, until models.Instant) float64 {
		if pool != "cpu" || !slices.Contains(kinds, models.Realtime) || until < peak {
			return 0
		}
		return 6
	}}, storetest.Lone)
	peak = w.now.Add(100 * time.Minute)
	box := w.quiet(10)
	for range 40 {
		w.submit(w.long())
	}
	w.advance(6 * time.Second)
	got := w.claim(box, 10)
	if len(got) != 10 {
		t.Fatalf("an hour and a half before a peak %d tasks of an hour were started", len(got))
	}
	w.now = w.now.Add(45 * time.Minute)
	for _, l := range got[:9] {
		w.settle(box, ok(l))
	}
	w.advance(6 * time.Second)
	if got := w.claim(box, 10); len(got) != 2 { // 10 − 6 − 1
		t.Fatalf("an hour before a peak of six %d were started beside one", len(got))
	}
}

// What ends before a peak runs until then, and no more of it than there is room for now; what could end within it waits.
func TestBriefWorkRunsBeforeAPeak(t *testing.T) {
	var peak models.Instant
	w := worldOn(t, engine.Config{Peak: func(_ string, _ []models.KindName, _, until models.Instant) float64 {
		if until < peak {
			return 2
		}
		return 6
	}}, storetest.Lone)
	peak = w.now.Add(time.Hour)
	box := w.quiet(10)
	for range 20 {
		w.submit(w.long())
	}
	w.advance(6 * time.Second)
	if got := w.claim(box, 10); len(got) != 3 { // 10 − 6 − 1
		t.Fatalf("an hour before a peak of six %d tasks of an hour were started", len(got))
	}
	lasts := func(minutes int64) engine.NewTask {
		return w.long(func(t *engine.NewTask) { t.Class.Type, t.EstimateMS = "short", minutes*60_000 })
	}
	w.submit(lasts(50))
	w.advance(6 * time.Second)
	if got := w.claim(box, 10); len(got) != 0 {
		t.Fatalf("%d tasks were started that may run into the peak", len(got))
	}
	for range 8 {
		w.submit(lasts(10))
	}
	w.advance(6 * time.Second)
	got := w.claim(box, 10)
	if len(got) != 4 { // 10 − 2 − 1, beside three
		t.Fatalf("of what ends before the peak %d were started", len(got))
	}
	for _, l := range got {
		if l.Type != "short" {
			t.Fatalf("a task of type %s was started before the peak", l.Type)
		}
	}
	w.now = w.now.Add(50 * time.Minute) // ten minutes and a third before the peak nothing of ten minutes is brief any more
	for _, l := range got {
		w.settle(box, ok(l))
	}
	w.advance(6 * time.Second)
	if got := w.claim(box, 10); len(got) != 0 {
		t.Fatalf("%d were started right before the peak", len(got))
	}
}

// A task that was told to be held, and starts because it is brief, is told to be released before it is told to start.
func TestABriefTaskIsToldToBeReleased(t *testing.T) {
	var peak models.Instant
	w := worldOn(t, engine.Config{Peak: func(_ string, _ []models.KindName, _, until models.Instant) float64 {
		if until < peak {
			return 2
		}
		return 6
	}}, storetest.Lone)
	peak = w.now.Add(time.Hour)
	w.configure(&engine.Configure{New: true, Lane: &models.Lane{Env: w.env, Name: "short", Kind: models.Batch, Weight: 1, HighWater: 1000}, Action: "lane.create"})
	box := w.quiet(10)
	for range 20 {
		w.submit(w.long())
	}
	w.advance(6 * time.Second)
	w.claim(box, 10)
	told := map[models.ID][]string{}
	w.saw = func(p *models.Plan) {
		for _, e := range p.Events {
			if e.Lane == "short" && (e.Name == "task.held" || e.Name == "task.released" || e.Name == "task.started") {
				told[e.Task] = append(told[e.Task], e.Name)
			}
		}
	}
	first := w.submit(w.long(func(t *engine.NewTask) { t.Lane, t.Class.Type, t.EstimateMS = "short", "short", 600_000 }))[0]
	w.advance(12 * time.Second)
	if got := w.claim(box, 10); len(got) != 1 || got[0].Row.ID != first {
		t.Fatalf("of what ends before the peak %d were started", len(got))
	}
	if want := []string{"task.held", "task.released", "task.started"}; !slices.Equal(told[first], want) {
		t.Fatalf("it was told %v, not %v", told[first], want)
	}
}

// A lane yields to the lanes of its environment that it names, kinds apart.
func TestALaneYieldsToALane(t *testing.T) {
	w := newWorld(t, engine.Config{})
	add := func(row models.Lane) {
		row.Env, row.Kind, row.Weight, row.HighWater = w.env, models.Batch, 1, 1000
		w.configure(&engine.Configure{New: true, Lane: &row, Action: "lane.create"})
	}
	add(models.Lane{Name: "sync"})
	add(models.Lane{Name: "heavy", Elastic: true, YieldsTo: []string{"sync"}, MaxHold: 1200})
	box := w.quiet(10)
	sync := func(t *engine.NewTask) { t.Lane, t.EstimateMS = "sync", 7_200_000 }
	heavy := func(t *engine.NewTask) { t.Lane = "heavy" }
	var tasks []engine.NewTask
	for range 4 {
		tasks = append(tasks, w.task(sync))
	}
	w.submit(tasks...)
	w.claim(box, 4)
	w.advance(6 * time.Second)
	var last models.ID
	for range 20 {
		last = w.submit(w.long(heavy))[0]
	}
	w.advance(6 * time.Second)
	if got := w.claim(box, 10); len(got) != 5 { // 10 − 4 − 1
		t.Fatalf("beside four of the lane it yields to %d were started", len(got))
	}
	if why := w.detail(last, "lane_held"); !strings.Contains(why, "heavy yield to sync") {
		t.Fatalf("explained: %s", why)
	}
	plain := w.submit(w.long())[0] // of another lane, which yields to nobody that is here
	if got := w.claim(box, 10); len(got) != 1 || got[0].Row.ID != plain {
		t.Fatalf("a task of another lane was not started: %+v", got)
	}
	w.rebuild()
	if got := w.claim(box, 10); len(got) != 0 {
		t.Fatalf("after a rebuild %d were started", len(got))
	}
	lane := w.engine.Board().LaneNamed(w.env, "heavy").Lane
	lane.Elastic = false
	w.configure(&engine.Configure{Lane: &lane, Action: "lane.edit"})
	if w.running() != 10 {
		w.claim(box, 10)
	}
	if w.running() > 11 || len(w.claim(box, 1)) != 0 {
		t.Fatal("there are only ten slots")
	}
	w.advance(2 * time.Minute)
	if n := len(w.snapshot().Held); n != 0 {
		t.Fatalf("%d lanes are held still", n)
	}
}
