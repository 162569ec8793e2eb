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

// keys gives a task concurrency keys of limit 1.
func keys(names ...string) func(*engine.NewTask) {
	return func(n *engine.NewTask) {
		var all []models.TaskKey
		for _, name := range names {
			all = append(all, models.TaskKey{Name: name, Limit: 1})
		}
		n.LimitKey, n.KeyLimit, n.MoreKeys = models.PackKeys(all)
	}
}

func inOrder(n *engine.NewTask) { n.Ordered = true }

func rated(names ...string) func(*engine.NewTask) {
	return func(n *engine.NewTask) {
		var all []models.TaskKey
		for _, name := range names {
			all = append(all, models.TaskKey{Name: name})
		}
		n.LimitKey, n.KeyLimit, n.MoreKeys = models.PackKeys(all)
	}
}

func in(lane string) func(*engine.NewTask) { return func(n *engine.NewTask) { n.Lane = lane } }

func started(leases []engine.Lease) (ids []models.ID) {
	for _, l := range leases {
		ids = append(ids, l.Row.ID)
	}
	return ids
}

func (w *world) rate(key string, limit, perSeconds, burst int64) {
	w.t.Helper()
	w.do(&engine.Command{Configure: &engine.Configure{Rate: &models.RateLimit{Env: w.env, Key: key, Limit: limit, PerSeconds: perSeconds, Burst: burst}, Action: "rate_limit.put"}})
}

func (w *world) explained(id models.ID) []engine.Block {
	w.t.Helper()
	return w.do(&engine.Command{Look: &engine.Look{Explain: &models.TaskRef{Env: w.env, ID: id}}}).Looked.Explain.BlockedBy
}

// A task holds all its keys, and what becomes ready behind them is born parked: its row is written once.
func TestATaskHoldsAllItsKeys(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 10 })
	ids := w.submit(w.task(keys("a", "b")))
	first := w.claim(worker, 9)
	ids = append(ids, w.submit(w.task(keys("b", "a")), w.task(keys("b")), w.task(keys("c", "b")), w.task(keys("c")))...)
	for _, id := range ids[1:4] {
		if row := w.row(id); row.Gate == "" || row.UpdatedAt != row.CreatedAt {
			t.Fatalf("born at the gate %q", row.Gate)
		}
	}
	if got := started(w.claim(worker, 9)); !slices.Equal(got, ids[4:]) {
		t.Fatalf("while a and b are held %x started", got)
	}
	if why := w.explained(ids[3]); len(why) != 2 || why[0].Key != "c" || why[1].Key != "b" || why[1].Holders[0] != ids[0].Text(models.TaskPrefix) {
		t.Fatalf("explained by %+v", why)
	}
	w.settle(worker, ok(first[0]))
	if got := started(w.claim(worker, 9)); !slices.Equal(got, ids[1:2]) {
		t.Fatalf("after a and b are free %x started", got)
	}
}

// The limit of each task counts: one that allows two holders starts beside one, and not beside two.
func TestEachTaskBringsItsOwnLimit(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 10 })
	limit := func(n int32) func(*engine.NewTask) {
		return func(t *engine.NewTask) { t.LimitKey, t.KeyLimit = "k", n }
	}
	ids := w.submit(w.task(limit(3)), w.task(limit(1)), w.task(limit(2)), w.task(limit(2)))
	first := w.claim(worker, 9)
	if got := started(first); !slices.Equal(got, []models.ID{ids[0], ids[2]}) {
		t.Fatalf("started %x", got)
	}
	w.settle(worker, ok(first[0]))
	second := w.claim(worker, 9)
	if got := started(second); !slices.Equal(got, ids[3:]) {
		t.Fatalf("beside one holder %x started", got)
	}
	w.settle(worker, ok(first[1]), ok(second[0]))
	if got := started(w.claim(worker, 9)); !slices.Equal(got, ids[1:2]) {
		t.Fatalf("alone %x started", got)
	}
}

// Streams on a and on b never leave both free at once. The task of both takes them one by one past its bound.
func TestNobodyStarvesBetweenTwoStreams(t *testing.T) {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 10 })
	fast := in("realtime")
	w.submit(w.task(keys("a"), fast))
	leases := w.claim(worker, 9)
	w.advance(time.Second)
	w.submit(w.task(keys("b"), fast))
	leases = append(leases, w.claim(worker, 9)...)
	both := w.submit(w.task(keys("b", "a"), fast), w.task(keys("a", "b"), fast))
	waited, began := 0, map[models.ID]bool{}
	for ; waited < 60 && len(began) < 2; waited++ {
		w.submit(w.task(keys("a"), fast), w.task(keys("b"), fast))
		lease := leases[0] // a and b end in turns, a second apart
		w.settle(worker, ok(lease))
		leases = append(leases[1:], w.claim(worker, 9)...)
		for _, id := range both {
			if w.row(id).Attempt > 0 {
				began[id] = true
			}
		}
		w.advance(time.Second)
	}
	if waited < 28 || waited > 40 {
		t.Errorf("the tasks of both keys started after %d s; their bound is 30 s", waited)
	}
}

// What is kept for a task is given back when nothing of its line may start, and is not kept at all for a key that a dead
// task holds.
func TestNothingIsKeptInVain(t *testing.T) {
	w := worldOn(t, engine.Config{}, storetest.Lone)
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 10 })
	fast := in("realtime")
	w.submit(w.task(keys("b"), in("io")), w.task(keys("a"), in("io")))
	held := w.claim(worker, 9)
	both := w.submit(w.task(keys("a", "b"), fast))[0]
	w.wait(worker, 31)
	w.settle(worker, ok(held[1])) // a is free, and taken at once
	other := w.submit(w.task(keys("a"), in("io")))[0]
	why := w.explained(other)
	if got := w.claim(worker, 9); len(why) == 0 || !strings.Contains(why[0].Detail, "kept for "+both.Text(models.TaskPrefix)) || len(got) != 0 {
		t.Fatalf("a is not kept: %+v, %x started", why, started(got))
	}
	lane := w.engine.Board().LaneNamed(w.env, "realtime").Lane
	lane.Paused = true
	w.do(&engine.Command{Configure: &engine.Configure{Lane: &lane, Action: "lane.pause"}})
	w.advance(2 * time.Second)
	if got := w.claim(worker, 9); len(got) == 0 {
		t.Errorf("a is kept for a task of a paused lane: %+v", w.explained(other))
	}
}

// Ordered tasks of a key start as they became ready, over priorities, lanes, retries, lost leases, rebuilds and takeovers.
func TestOrderedTasksKeepTheirOrder(t *testing.T) {
	w := newWorld(t, engine.Config{Heads: 2, MostEntries: 20, Slice: 3})
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 10 })
	var tasks []engine.NewTask
	for i := range 8 {
		tasks = append(tasks, w.task(keys("k"), inOrder, in([]string{"batch", "io"}[i%2]), func(n *engine.NewTask) { n.Priority = int16(10 * i) }))
	}
	ids := w.submit(tasks...)
	for i, id := range ids {
		leases := w.claim(worker, 9)
		if got := started(leases); len(got) != 1 || got[0] != id {
			t.Fatalf("number %d: %x started", i, got)
		}
		switch i {
		case 2: // it is tried again before those behind it
			w.settle(worker, failed(leases[0], "internal"))
			if got := w.claim(worker, 9); len(got) != 0 {
				t.Fatalf("%x passed one that waits to be tried again", started(got))
			}
			w.advance(3 * time.Second)
			leases = w.claim(worker, 9)
		case 4:
			w.rebuild()
		case 5: // its lease is given back
			w.settle(worker, engine.Result{Token: leases[0].Row.Token, Task: models.TaskRef{Env: w.env, ID: id}, Outcome: models.AttemptReleased})
			w.rebuild()
			leases = w.claim(worker, 9)
		}
		if len(leases) != 1 || leases[0].Row.ID != id {
			t.Fatalf("number %d: %x started again", i, started(leases))
		}
		w.settle(worker, ok(leases[0]))
	}
}

// A dead letter holds its keys until somebody decides: after a redrive it goes first, after a discard the next one does.
func TestADeadLetterHoldsTheOrder(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 10 })
	once := func(n *engine.NewTask) { n.MaxAttempts = 1 }
	ids := w.submit(w.task(keys("k"), inOrder, once), w.task(keys("k"), inOrder, once), w.task(keys("k"), inOrder, once), w.task(keys("k")))
	first := w.claim(worker, 9)
	w.settle(worker, failed(first[0], "internal"))
	w.rebuild()
	if got := w.claim(worker, 9); len(got) != 0 {
		t.Fatalf("%x passed a dead letter", started(got))
	}
	locks := w.do(&engine.Command{Look: &engine.Look{Locks: w.env}}).Looked.Locks
	if len(locks) != 1 || locks[0].Holders[0].Task != ids[0] || locks[0].Waiters != 3 {
		t.Fatalf("held are %+v", locks)
	}
	w.refuses(models.StateConflict, &engine.Command{Unlock: &engine.Unlock{Env: w.env, Key: "k"}})
	w.do(&engine.Command{Redrive: &engine.Redrive{Env: w.env, Task: ids[0]}})
	again := w.claim(worker, 9)
	if got := started(again); !slices.Equal(got, ids[:1]) {
		t.Fatalf("after the redrive %x started", got)
	}
	w.settle(worker, failed(again[0], "internal"))
	w.do(&engine.Command{Discard: &engine.Discard{Env: w.env, Task: ids[0], Reason: "given up"}})
	if got := started(w.claim(worker, 9)); len(got) != 1 || got[0] == ids[2] {
		t.Fatalf("after the discard %x started", got)
	}
}

// What is scheduled or waits for an approval holds nothing back, and has its old place when it returns.
func TestWhatIsNotReadyHoldsNoOrder(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 10 })
	ids := w.submit(
		w.task(keys("k"), inOrder, func(n *engine.NewTask) { n.DelaySeconds = 5 }),
		w.task(keys("k"), inOrder, func(n *engine.NewTask) { n.NeedsApproval = true }),
		w.task(keys("k"), inOrder), w.task(keys("k"), inOrder))
	first := w.claim(worker, 9)
	if got := started(first); !slices.Equal(got, ids[2:3]) {
		t.Fatalf("started %x", got)
	}
	w.advance(6 * time.Second)
	w.do(&engine.Command{Approve: &engine.Approve{Env: w.env, Task: ids[1]}})
	w.settle(worker, ok(first[0]))
	for _, next := range []models.ID{ids[1], ids[3], ids[0]} { // approved: ready before the others; delayed: after all
		leases := w.claim(worker, 9)
		if got := started(leases); len(got) != 1 || got[0] != next {
			t.Fatalf("%x started, not %x", got, next)
		}
		w.settle(worker, ok(leases[0]))
	}
}

// Tasks start as their rate lets them, woken by its opening, over rebuilds; retries count.
func TestARateLetsSoManyStart(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 100 })
	w.rate("bank", 3, 10, 0)
	begin := w.now
	var tasks []engine.NewTask
	for range 8 {
		tasks = append(tasks, w.task(rated("bank", "free")))
	}
	ids := w.submit(tasks...)
	starts := 0
	var leases []engine.Lease
	for second := range 30 {
		leases = append(leases, w.claim(worker, 9)...)
		starts = len(leases)
		if want := min(3*(second/10)+3, 9); starts != want {
			t.Fatalf("after %d s %d have started, not %d", second, starts, want)
		}
		switch second {
		case 4:
			w.rebuild()
			if why := w.explained(ids[7]); len(why) != 1 || why[0].Reason != "rate_limit" || why[0].OpensAt != begin.Add(10*time.Second).Time().Format(time.RFC3339Nano) {
				t.Fatalf("explained by %+v", why)
			}
			if next := w.engine.Board().NextOpening(); next != begin.Add(10*time.Second) {
				t.Fatalf("the board wakes at %d, not %d", next, begin.Add(10*time.Second))
			}
		case 5: // it counts again when it is tried again; another key is another rate
			w.settle(worker, failed(leases[0], "internal"))
			other := w.submit(w.task(rated("other")))
			if got := started(w.claim(worker, 9)); !slices.Equal(got, other) {
				t.Fatalf("under another rate %x started", got)
			}
		}
		w.wait(worker, 1)
	}
}

// wait lets seconds pass in which a worker renews all its leases.
func (w *world) wait(worker models.Worker, seconds int) {
	w.t.Helper()
	for range seconds {
		beat := &engine.Heartbeat{Worker: worker.ID, Session: worker.Session}
		for _, l := range w.engine.Board().Workers[worker.ID].Leases {
			beat.Leases = append(beat.Leases, engine.Beat{Token: l.Row().Token})
		}
		w.do(&engine.Command{Heartbeat: beat})
		w.advance(time.Second)
	}
}

// A burst below the limit is spread, a changed limit keeps what has passed, and a lifted one holds nothing.
func TestARateIsChanged(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 100 })
	w.rate("bank", 6, 60, 2)
	var tasks []engine.NewTask
	for range 20 {
		tasks = append(tasks, w.task(rated("bank")))
	}
	w.submit(tasks...)
	if got := w.claim(worker, 9); len(got) != 2 {
		t.Fatalf("%d started at once", len(got))
	}
	w.wait(worker, 9)
	if got := w.claim(worker, 9); len(got) != 0 {
		t.Fatalf("%d started too early", len(got))
	}
	w.wait(worker, 1)
	if got := w.claim(worker, 9); len(got) != 1 {
		t.Fatalf("%d started after 10 s", len(got))
	}
	w.rate("bank", 4, 60, 0)
	if got := w.claim(worker, 9); len(got) != 1 {
		t.Fatalf("%d of 4 started when 3 had", len(got))
	}
	w.rebuild()
	w.rate("bank", 4, 30, 0)
	if got := w.claim(worker, 9); len(got) != 0 {
		t.Fatalf("%d started after the length changed", len(got))
	}
	w.wait(worker, 30)
	if got := w.claim(worker, 9); len(got) != 4 {
		t.Fatalf("%d started after 30 s", len(got))
	}
	w.do(&engine.Command{Configure: &engine.Configure{DeleteRate: &models.RateRef{Env: w.env, Key: "bank"}, Action: "rate_limit.delete"}})
	if got := w.claim(worker, 50); len(got) != 12 {
		t.Fatalf("%d started after the limit was lifted", len(got))
	}
}

// A suspended parent holds none of its keys; its children may need them.
func TestASuspendedParentFreesAllItsKeys(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 10 })
	parent := w.submit(w.task(keys("a", "b"), inOrder))[0]
	lease := w.claim(worker, 1)[0]
	child := w.task(keys("b"), func(n *engine.NewTask) { n.Key = "child" })
	w.do(&engine.Command{Spawn: &engine.Spawn{Env: w.env, Task: parent, Token: lease.Row.Token, Tasks: []engine.NewTask{child}}})
	w.settle(worker, engine.Result{Token: lease.Row.Token, Task: models.TaskRef{Env: w.env, ID: parent}, Outcome: models.AttemptSuspended})
	next := w.submit(w.task(keys("a"), inOrder))[0]
	leases := w.claim(worker, 9)
	if got := started(leases); len(got) != 2 || !slices.Contains(got, next) || !slices.Contains(got, child.ID) {
		t.Fatalf("%x started while the parent is suspended", got)
	}
	for _, l := range leases {
		w.settle(worker, ok(l))
	}
	if got := started(w.claim(worker, 9)); !slices.Equal(got, []models.ID{parent}) {
		t.Fatalf("%x started after the children", got)
	}
}
