package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nightshift/models"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// world is an engine under a clock of its own, over the reference store with PostgreSQL beside it, so that every story is
// told to both.
type world struct {
	t      rapid.TB
	ctx    context.Context
	now    models.Instant
	store  *storetest.Mirror
	engine *engine.Engine
	epoch  int64
	batch  int64
	env    int32
	serial uint32
	late   map[*engine.Command]engine.Reply
	saw    func(*models.Plan) // hears of every plan; nil: nobody does
	asks   func(*models.Need) // hears of what each batch needs; nil: nobody does
}

func newWorld(t *testing.T, cfg engine.Config) *world {
	t.Helper()
	if testing.Short() {
		return worldOn(t, cfg, storetest.Lone)
	}
	return worldOn(t, cfg, storetest.NewMirror)
}

// bothOn tells a part of a long story on both stores, and the rest on the one that is quick.
func bothOn(both bool) func(testing.TB, func() models.Instant) *storetest.Mirror {
	if both && !testing.Short() {
		return storetest.NewMirror
	}
	return storetest.Lone
}

// worldOn is for stories too long to be told twice.
func worldOn(t *testing.T, cfg engine.Config, store func(testing.TB, func() models.Instant) *storetest.Mirror) *world {
	t.Helper()
	return worldFor(t, cfg, func(clock func() models.Instant) *storetest.Mirror { return store(t, clock) })
}

// worldFor is for properties: what fails in it fails the draw.
func worldFor(t rapid.TB, cfg engine.Config, store func(clock func() models.Instant) *storetest.Mirror) *world {
	t.Helper()
	w := &world{t: t, ctx: context.Background(), now: 1_800_000_000_000_000, late: map[*engine.Command]engine.Reply{}}
	w.store = store(func() models.Instant { return w.now })
	w.engine = engine.New(cfg)
	brain, err := w.store.Brain(w.ctx)
	w.must(err)
	w.epoch, err = w.store.TakeOver(w.ctx, brain, "here")
	w.must(err)
	w.rebuild()
	answer := w.do(&engine.Command{Configure: &engine.Configure{New: true, Action: "tenant.create", Tenant: &models.Tenant{ID: w.id(), Slug: "acorn", Name: "Acorn", Weight: 1, Timezone: "UTC"}}})
	for _, env := range w.engine.Board().Envs {
		if env.Tenant == answer.Tenant.Number {
			w.env = env.Env
		}
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) id() models.ID {
	w.serial++
	return models.NewID(w.now, [10]byte{0, byte(w.serial), 0, byte(w.serial >> 8), byte(w.serial >> 16)})
}

func (w *world) rebuild() {
	heads, most := w.engine.Limits()
	snapshot, err := w.store.Load(w.ctx, heads, most)
	w.must(err)
	w.batch = snapshot.Batch
	w.engine.Rebuild(snapshot)
}

// turn runs one batch and what follows it, then holds the board against the rows.
func (w *world) turn(cmds ...*engine.Command) []engine.Reply {
	w.t.Helper()
	replies := w.once(cmds)
	for turns := 0; w.engine.Busy(); turns++ {
		if turns > 10_000 {
			w.t.Fatal("the engine never comes to rest")
		}
		replies = append(replies, w.once(nil)...)
	}
	heads, most := w.engine.Limits()
	snapshot, err := w.store.Load(w.ctx, heads, most)
	w.must(err)
	if err := w.engine.Check(snapshot); err != nil {
		w.t.Fatalf("the board is not its rebuild: %v", err)
	}
	return replies
}

func (w *world) once(cmds []*engine.Command) []engine.Reply {
	w.t.Helper()
	need := w.engine.Need(cmds)
	if w.asks != nil {
		w.asks(need)
	}
	facts, err := w.store.Facts(w.ctx, need)
	w.must(err)
	plan, replies := w.engine.Decide(w.batch+1, w.epoch, facts, cmds)
	effects := &models.Effects{}
	if !plan.Empty() {
		effects, err = w.store.Apply(w.ctx, plan)
		w.must(err)
		w.batch++
		if w.saw != nil {
			w.saw(plan)
		}
	}
	replies = append(replies, w.engine.Commit(effects)...)
	if ask := w.engine.Asks(); ask != nil {
		refill, err := w.store.Refill(w.ctx, ask)
		w.must(err)
		w.engine.Refilled(ask, refill)
	}
	for _, r := range replies {
		w.late[r.To] = r
	}
	return replies
}

func (w *world) try(cmd *engine.Command) (*engine.Answer, error) {
	w.t.Helper()
	if cmd.ID.IsZero() {
		cmd.ID = w.id()
	}
	for _, r := range w.turn(cmd) {
		if r.To == cmd {
			return r.Answer, r.Err
		}
	}
	return nil, nil
}

func (w *world) do(cmd *engine.Command) *engine.Answer {
	w.t.Helper()
	answer, err := w.try(cmd)
	w.must(err)
	return answer
}

func (w *world) advance(d time.Duration) {
	w.t.Helper()
	for d > 0 {
		step := min(d, time.Second)
		w.now = w.now.Add(step)
		d -= step
		w.turn(&engine.Command{Tick: &engine.Tick{}})
	}
}

func (w *world) task(change ...func(*engine.NewTask)) engine.NewTask {
	t := engine.NewTask{ID: w.id(), Class: models.Class{Type: "work"}, Priority: 50, MaxAttempts: 3, Input: json.RawMessage(`{}`), Payload: json.RawMessage(`{}`)}
	for _, c := range change {
		c(&t)
	}
	return t
}

func (w *world) submit(tasks ...engine.NewTask) []models.ID {
	w.t.Helper()
	answer := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: tasks, InBatch: true}})
	var ids []models.ID
	for _, t := range answer.Submitted.Tasks {
		ids = append(ids, t.Row.ID)
	}
	return ids
}

func (w *world) worker(name string, change ...func(*models.Worker)) models.Worker {
	w.t.Helper()
	row := models.Worker{ID: w.id(), Session: w.id(), Name: name, Instance: name, Pool: "cpu", CPUMilli: 8000, MemoryMB: 8192, Slots: 4, LeaseSeconds: 30}
	for _, c := range change {
		c(&row)
	}
	return *w.do(&engine.Command{Register: &engine.Register{Worker: row}}).Worker
}

func (w *world) claim(worker models.Worker, most int32) []engine.Lease {
	w.t.Helper()
	return w.do(&engine.Command{Claim: &engine.Claim{Worker: worker.ID, Session: worker.Session, Most: most}}).Claimed.Leases
}

func (w *world) settle(worker models.Worker, results ...engine.Result) []engine.Settled {
	w.t.Helper()
	return w.do(&engine.Command{Settle: &engine.Settle{Worker: worker.ID, Session: worker.Session, Results: results}}).Settled
}

func (w *world) state(id models.ID) models.State {
	w.t.Helper()
	row, ok := w.store.Task(models.TaskRef{Env: w.env, ID: id})
	if !ok {
		w.t.Fatalf("there is no task %x", id)
	}
	return row.State
}

func (w *world) row(id models.ID) models.Task {
	w.t.Helper()
	row, _ := w.store.Task(models.TaskRef{Env: w.env, ID: id})
	return row
}

func (w *world) want(id models.ID, state models.State) {
	w.t.Helper()
	if got := w.state(id); got != state {
		w.t.Fatalf("the task is %s, want %s", got, state)
	}
}

func ok(l engine.Lease) engine.Result {
	return engine.Result{Token: l.Row.Token, Task: models.TaskRef{Env: l.Row.Env, ID: l.Row.ID}, Outcome: models.AttemptSucceeded, Result: json.RawMessage(`{"done":true}`)}
}

func failed(l engine.Lease, class string) engine.Result {
	return engine.Result{Token: l.Row.Token, Task: models.TaskRef{Env: l.Row.Env, ID: l.Row.ID}, Outcome: models.AttemptFailed, Error: &models.TaskError{Class: class, Message: "no " + class}}
}

func TestATaskIsSubmittedClaimedAndSucceeds(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id := w.submit(w.task())[0]
	w.want(id, models.Ready)
	leases := w.claim(worker, 5)
	if len(leases) != 1 || leases[0].Row.ID != id || leases[0].Row.Attempt != 1 {
		t.Fatalf("claimed %+v", leases)
	}
	w.want(id, models.Running)
	if got := w.settle(worker, ok(leases[0]))[0]; !got.Accepted || got.Row.State != models.Succeeded {
		t.Fatalf("settled %+v", got)
	}
	w.want(id, models.Succeeded)
	if got := w.settle(worker, ok(leases[0]))[0]; !got.Accepted {
		t.Fatalf("the same token after settlement: %+v", got)
	}
}

func TestAParkedClaimGetsASubmittedTaskInTheSameCommit(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	claim := &engine.Command{Claim: &engine.Claim{Worker: worker.ID, Session: worker.Session, Most: 1, Until: w.now.Add(30 * time.Second)}}
	w.turn(claim)
	before := w.batch
	id := w.submit(w.task())[0]
	if w.batch != before+1 {
		t.Fatalf("%d commits, want one", w.batch-before)
	}
	if got := w.late[claim]; got.Answer == nil || got.Answer.Claimed.Leases[0].Row.ID != id {
		t.Fatalf("the parked claim got %+v", got)
	}
}

func TestFailuresAreRetriedThenDead(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id := w.submit(w.task())[0]
	for attempt := range 3 {
		leases := w.claim(worker, 1)
		if len(leases) != 1 {
			t.Fatalf("attempt %d was not offered", attempt+1)
		}
		w.settle(worker, failed(leases[0], "network"))
		if attempt < 2 {
			w.want(id, models.RetryWait)
			w.advance(5 * time.Second)
			w.want(id, models.Ready)
		}
	}
	w.want(id, models.DeadLetter)
	w.do(&engine.Command{Redrive: &engine.Redrive{Env: w.env, Task: id, Reason: "again"}})
	w.want(id, models.Ready)
	leases := w.claim(worker, 1)
	if leases[0].Row.Attempt != 4 {
		t.Fatalf("attempt %d, want 4: it counts on", leases[0].Row.Attempt)
	}
	w.settle(worker, failed(leases[0], "invalid_input"))
	w.want(id, models.DeadLetter)
	w.do(&engine.Command{Discard: &engine.Discard{Env: w.env, Task: id, Reason: "enough"}})
	w.want(id, models.Failed)
}

func TestALostLeaseMakesTheTaskReadyAgainAndTheThirdADeadLetter(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	id := w.submit(w.task())[0]
	var first engine.Lease
	for n := range 3 {
		leases := w.claim(worker, 1)
		if n == 0 {
			first = leases[0]
		}
		w.advance(31 * time.Second)
		if n < 2 {
			w.want(id, models.Ready)
		}
	}
	w.want(id, models.DeadLetter)
	r := ok(first)
	r.Usage = json.RawMessage(`{"tokens_in":5}`)
	if got := w.settle(worker, r)[0]; got.Accepted || got.Code != models.LeaseLost || !got.Booked {
		t.Fatalf("a stale result: %+v", got)
	}
	w.want(id, models.DeadLetter)
}

func TestCancelReachesARunningTaskThroughItsHeartbeat(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	ids := w.submit(w.task(), w.task(), w.task())
	leases := w.claim(worker, 2)
	for _, id := range ids {
		w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Task: id, Reason: "stop"}})
	}
	w.want(ids[2], models.Cancelled)
	w.want(leases[0].Row.ID, models.CancelRequested)
	beat := w.do(&engine.Command{Heartbeat: &engine.Heartbeat{Worker: worker.ID, Session: worker.Session, All: true, Leases: []engine.Beat{{Token: leases[0].Row.Token}, {Token: leases[1].Row.Token}}}})
	if s := beat.Beaten.Leases[0].Signals; len(s) != 1 || s[0] != "cancel" {
		t.Fatalf("signals %v", s)
	}
	w.settle(worker, ok(leases[0]), failed(leases[1], "internal"))
	w.want(leases[0].Row.ID, models.Succeeded)
	w.want(leases[1].Row.ID, models.Cancelled)
}

func TestDependantsFollowTheirEdges(t *testing.T) {
	for _, c := range []struct {
		class string // empty: success
		want  [3]models.State
	}{
		{"", [3]models.State{models.Ready, models.Skipped, models.Ready}},
		{"invalid_input", [3]models.State{models.Pending, models.Ready, models.Ready}},
	} {
		t.Run("after "+c.class, func(t *testing.T) {
			w := newWorld(t, engine.Config{})
			worker := w.worker("one")
			source := w.task()
			tasks := []engine.NewTask{source}
			for on := range 3 {
				tasks = append(tasks, w.task(func(n *engine.NewTask) {
					n.DependsOn = []engine.Dependency{{Task: source.ID, On: models.On(on)}}
				}))
			}
			answer := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: tasks, Workflow: &engine.NewWorkflow{ID: w.id(), Name: "diamond", Input: json.RawMessage(`{}`)}}})
			leases := w.claim(worker, 1)
			result := ok(leases[0])
			if c.class != "" {
				result = failed(leases[0], c.class)
			}
			w.settle(worker, result)
			for i, state := range c.want {
				w.want(tasks[i+1].ID, state)
			}
			for _, lease := range w.claim(worker, 5) {
				w.settle(worker, ok(lease))
			}
			flow, _ := w.store.Workflow(models.TaskRef{Env: w.env, ID: answer.Submitted.Workflow.ID})
			want := models.WorkflowSucceeded
			if c.class != "" {
				want = models.WorkflowFailed
			}
			if flow.State != want {
				t.Fatalf("the workflow is %s with %v, want %s", flow.State, flow.Counts, want)
			}
		})
	}
}

func TestAKeyLetsItsLimitRunAndParksTheRest(t *testing.T) {
	w := newWorld(t, engine.Config{Heads: 2, MostEntries: 20, Slice: 3})
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 50 })
	keyed := func(n *engine.NewTask) { n.LimitKey, n.KeyLimit = "account:1", 2 }
	var tasks []engine.NewTask
	for range 20 {
		tasks = append(tasks, w.task(keyed))
	}
	tasks = append(tasks, w.task())
	w.submit(tasks...)
	done := 0
	for range 20 {
		leases := w.claim(worker, 50)
		live := 0
		for _, l := range leases {
			if l.Row.LimitKey != "" {
				live++
			}
		}
		if live > 2 {
			t.Fatalf("%d tasks of a key with limit 2 started at once", live)
		}
		for _, l := range leases {
			w.settle(worker, ok(l))
			done++
		}
	}
	if done != 21 {
		t.Fatalf("%d of 21 ran; counted %+v", done, w.engine.Board().Counted)
	}
}

func TestAPausedLaneStartsNothing(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	lane := w.engine.Board().LaneNamed(w.env, "batch").Lane
	lane.Paused, lane.Reason = true, "maintenance"
	w.do(&engine.Command{Configure: &engine.Configure{Lane: &lane, Action: "lane.pause"}})
	id := w.submit(w.task())[0]
	if leases := w.claim(worker, 1); len(leases) != 0 {
		t.Fatal("a paused lane started a task")
	}
	look := w.do(&engine.Command{Look: &engine.Look{Explain: &models.TaskRef{Env: w.env, ID: id}}})
	if b := look.Looked.Explain.BlockedBy; len(b) != 1 || b[0].Reason != "lane_paused" {
		t.Fatalf("blocked by %+v", b)
	}
	lane.Paused = false
	w.do(&engine.Command{Configure: &engine.Configure{Lane: &lane, Action: "lane.resume"}})
	if leases := w.claim(worker, 1); len(leases) != 1 {
		t.Fatal("a resumed lane starts nothing")
	}
}

func TestExpiryAndRunAt(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	ids := w.submit(
		w.task(func(n *engine.NewTask) { n.RunAt = w.now.Add(90 * time.Second) }),
		w.task(func(n *engine.NewTask) { n.ExpiresInSeconds = 10 }),
		w.task(func(n *engine.NewTask) { n.DelaySeconds = 5 }),
	)
	w.want(ids[0], models.Scheduled)
	w.want(ids[2], models.Scheduled)
	w.advance(11 * time.Second)
	w.want(ids[1], models.Expired)
	w.want(ids[2], models.Ready)
	w.advance(80 * time.Second)
	w.want(ids[0], models.Ready)
	if got := len(w.claim(worker, 9)); got != 2 {
		t.Fatalf("%d started, want 2", got)
	}
}

func TestWeightsShareThePool(t *testing.T) {
	w := newWorld(t, engine.Config{Heads: 2, MostEntries: 50})
	w.do(&engine.Command{Configure: &engine.Configure{New: true, Action: "tenant.create", Tenant: &models.Tenant{ID: w.id(), Slug: "birch", Weight: 3, Timezone: "UTC"}}})
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 1 })
	envs := []int32{w.env, w.env + 1}
	for n := range 80 {
		w.env = envs[n%2]
		w.submit(w.task())
	}
	got := map[int32]int{}
	for range 40 {
		lease := w.claim(worker, 1)[0]
		got[lease.Row.Env]++
		w.now = w.now.Add(time.Second)
		w.settle(worker, ok(lease))
	}
	if got[envs[0]] != 10 || got[envs[1]] != 30 {
		t.Fatalf("shares %v, want 10 and 30", got)
	}
}

func TestAWorkflowIsCancelledInSlices(t *testing.T) {
	w := newWorld(t, engine.Config{Slice: 3})
	worker := w.worker("one")
	var tasks []engine.NewTask
	for range 10 {
		tasks = append(tasks, w.task())
	}
	answer := w.do(&engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: tasks, Workflow: &engine.NewWorkflow{ID: w.id(), Name: "ten", Input: json.RawMessage(`{}`)}}})
	leases := w.claim(worker, 1)
	ref := models.TaskRef{Env: w.env, ID: answer.Submitted.Workflow.ID}
	w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Workflow: ref.ID}})
	for _, task := range tasks {
		want := models.Cancelled
		if task.ID == leases[0].Row.ID {
			want = models.CancelRequested
		}
		w.want(task.ID, want)
	}
	w.settle(worker, failed(leases[0], "internal"))
	if flow, _ := w.store.Workflow(ref); flow.State != models.WorkflowCancelled {
		t.Fatalf("the workflow is %s: %v", flow.State, flow.Counts)
	}
}

func TestEnginesWithOneSeedDecideAlike(t *testing.T) {
	run := func() string {
		w := newWorld(t, engine.Config{Seed: [32]byte{7}})
		worker := w.worker("one")
		w.submit(w.task(), w.task())
		return fmt.Sprintf("%+v", w.claim(worker, 2))
	}
	if a, b := run(), run(); a != b {
		t.Fatalf("two runs differ:\n%s\n%s", a, b)
	}
}

func TestDeadlinesGoFirstWhenTheyAreNearAndFallBackWhenTheyAreLost(t *testing.T) {
	w := newWorld(t, engine.Config{Heads: 2, MostEntries: 12})
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 1 })
	ten := func(n *engine.NewTask) { n.EstimateMS = 10_000 }
	var old []engine.NewTask
	for range 10 {
		old = append(old, w.task(ten))
	}
	w.submit(old...)
	w.advance(5 * time.Second)
	by := func(d time.Duration) func(*engine.NewTask) {
		return func(n *engine.NewTask) { ten(n); n.Deadline = w.now.Add(d) }
	}
	ids := w.submit(w.task(by(60*time.Second)), w.task(by(30*time.Second)), w.task(by(5*time.Second)), w.task(by(24*time.Hour)))
	w.advance(2 * time.Second)
	var order []models.ID
	for range 14 {
		lease := w.claim(worker, 1)[0]
		order = append(order, lease.Row.ID)
		w.advance(10 * time.Second)
		w.settle(worker, ok(lease))
	}
	if order[0] != ids[1] || order[1] != ids[0] {
		t.Fatalf("the tasks due in 30 s and 60 s did not go first")
	}
	if order[2] != old[0].ID || order[12] != ids[2] || order[13] != ids[3] {
		t.Fatalf("the lost one and the one with a day left did not keep their rank")
	}
}

func TestDeadlinesNeverStarveWhatHasAged(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(w *models.Worker) { w.Slots = 1 })
	long := func(n *engine.NewTask) { n.EstimateMS = 1000 }
	aged := w.submit(w.task(long), w.task(long))
	w.advance(31 * time.Minute)
	var due []engine.NewTask
	for range 4 {
		due = append(due, w.task(long, func(n *engine.NewTask) { n.Deadline = w.now.Add(6 * time.Second) }))
	}
	w.submit(due...)
	w.advance(time.Second)
	var order []models.ID
	for range 4 {
		lease := w.claim(worker, 1)[0]
		order = append(order, lease.Row.ID)
		w.settle(worker, ok(lease))
	}
	if order[0] != due[0].ID || order[1] != aged[0] || order[2] != due[1].ID || order[3] != aged[1] {
		t.Fatalf("aged tasks were passed over more than every second time")
	}
}

func TestAWholeWorkerTaskIsNotStarvedBySmallOnes(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(w *models.Worker) { w.Slots, w.CPUMilli = 8, 8000 })
	small := func(n *engine.NewTask) { n.Class.CPUMilli, n.EstimateMS, n.Priority = 1000, 60_000, 100 }
	whole := w.submit(w.task(func(n *engine.NewTask) { n.Class.CPUMilli, n.EstimateMS = 8000, 60_000 }))[0]
	running := map[models.ID]engine.Lease{}
	ends := map[models.ID]models.Instant{}
	for minute := 0; w.state(whole) == models.Ready; minute++ {
		if minute > 60 {
			t.Fatal("the whole-worker task still waits after an hour")
		}
		for range 4 { // small ones end at different moments: there is never room for eight by itself
			w.submit(w.task(small), w.task(small))
			for _, l := range w.claim(worker, 8) {
				running[l.Row.ID], ends[l.Row.ID] = l, w.now.Add(60*time.Second)
			}
			w.advance(15 * time.Second)
			for id, l := range running {
				if w.now >= ends[id] && id != whole {
					w.settle(worker, ok(l))
					delete(running, id)
				}
			}
			var beats []engine.Beat
			for _, l := range running {
				beats = append(beats, engine.Beat{Token: l.Row.Token})
			}
			w.do(&engine.Command{Heartbeat: &engine.Heartbeat{Worker: worker.ID, Session: worker.Session, All: true, Leases: beats}})
		}
	}
	if waited := w.now.Sub(w.row(whole).ReadyAt); waited < 30*time.Minute || waited > 40*time.Minute {
		t.Fatalf("it started after %s; its bound is 30 minutes", waited)
	}
}
