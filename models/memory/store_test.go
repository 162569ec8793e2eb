package memory_test

import (
	"encoding/json"
	"slices"
	"testing"

	"nightshift/models"
	"nightshift/models/memory"
)

const start = models.Instant(1_790_000_000_000_000)

// world is a store with a brain and the plans given to it.
type world struct {
	*testing.T
	*memory.Store
	now   models.Instant
	epoch int64
	batch int64
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, now: start}
	w.Store = memory.New(func() models.Instant { return w.now })
	epoch, err := w.TakeOver(t.Context(), models.Brain{}, "here")
	if err != nil {
		t.Fatal(err)
	}
	w.epoch = epoch
	return w
}

// plan is a plan of the next batch.
func (w *world) plan() *models.Plan {
	return &models.Plan{Cell: 1, Epoch: w.epoch, Batch: w.batch + 1, At: w.now}
}

func (w *world) apply(p *models.Plan) *models.Effects {
	w.Helper()
	e, err := w.Apply(w.Context(), p)
	if err != nil {
		w.Fatal(err)
	}
	w.batch = p.Batch
	return e
}

// refuse applies a plan that must fail with this code and change nothing.
func (w *world) refuse(code models.Code, p *models.Plan) {
	w.Helper()
	before, _ := json.Marshal(w.Tasks())
	_, err := w.Apply(w.Context(), p)
	if got := models.CodeOf(err); got != code {
		w.Fatalf("answered %v, want %s", err, code)
	}
	if after, _ := json.Marshal(w.Tasks()); string(before) != string(after) {
		w.Fatalf("a refused plan changed rows:\n%s\n%s", before, after)
	}
	if b, _ := w.Brain(w.Context()); b.Batch != w.batch {
		w.Fatalf("a refused plan left batch %d", b.Batch)
	}
}

func id(n byte) models.ID { return models.ID{15: n} }

func ref(n byte) models.TaskRef { return models.TaskRef{Env: 1, ID: id(n)} }

func task(n byte, s models.State) models.Task {
	t := models.Task{Env: 1, ID: id(n), State: s, Lane: 1, Class: 1, AgeKey: int64(n), CreatedAt: start}
	if s.Live() {
		t.Token, t.Worker = id(100+n), id(99)
	}
	return t
}

func ids(tasks []models.Task) (out []byte) {
	for _, t := range tasks {
		out = append(out, t.ID[15])
	}
	return out
}

func (w *world) want(n byte, s models.State) models.Task {
	w.Helper()
	t, ok := w.Task(ref(n))
	if !ok || t.State != s {
		w.Fatalf("task %d is %s (there: %v), want %s", n, t.State, ok, s)
	}
	return t
}

func TestPlansHappenWholeOrNotAtAll(t *testing.T) {
	w := newWorld(t)
	p := w.plan()
	p.Tasks = []models.Task{task(1, models.Ready), task(2, models.Running)}
	w.apply(p)

	w.refuse(models.BadData, p) // the batch exists
	late := w.plan()
	late.Epoch--
	w.refuse(models.FenceLost, late)

	twice := w.plan()
	twice.Tasks = []models.Task{task(3, models.Ready), task(1, models.Ready)}
	w.refuse(models.BadData, twice)

	guard := w.plan()
	guard.Tasks = []models.Task{task(3, models.Ready)}
	guard.Changes = []models.Change{{From: models.Pending, After: task(1, models.Ready)}}
	w.refuse(models.RowCount, guard)

	token := w.plan()
	token.Changes = []models.Change{{From: models.Running, Token: id(7), After: task(2, models.Succeeded)}}
	w.refuse(models.RowCount, token)

	unlawful := w.plan()
	unlawful.Changes = []models.Change{{From: models.Ready, After: task(1, models.DeadLetter)}}
	w.apply(&models.Plan{Cell: 1, Epoch: w.epoch, Batch: w.batch + 1}) // an empty plan is a batch too
	unlawful.Batch = w.batch + 1
	w.apply(unlawful) // ready → running → dead letter, merged: the Law leads there
	w.want(1, models.DeadLetter)
	back := w.plan()
	back.Changes = []models.Change{{From: models.DeadLetter, After: task(1, models.Pending)}}
	w.apply(back) // redriven, claimed, suspended
	stuck := w.plan()
	stuck.Changes = []models.Change{{From: models.Pending, After: task(1, models.Staged)}}
	w.refuse(models.BadData, stuck)

	tokenless := task(4, models.Running)
	tokenless.Token = models.ID{}
	bare := w.plan()
	bare.Tasks = []models.Task{tokenless}
	w.refuse(models.BadData, bare)
	parked := task(4, models.Pending)
	parked.Gate = "key:a"
	bare.Tasks = []models.Task{parked}
	w.refuse(models.BadData, bare)
}

func TestNothingFinalChanges(t *testing.T) {
	w := newWorld(t)
	p := w.plan()
	p.Tasks = []models.Task{task(1, models.Succeeded)}
	w.apply(p)
	again := w.plan()
	again.Changes = []models.Change{{From: models.Succeeded, After: task(1, models.Succeeded)}}
	w.refuse(models.BadData, again)
}

func TestBusinessKeysAreHeldByLiveDeadAndSucceededTasks(t *testing.T) {
	keyed := func(n byte, s models.State) models.Task {
		row := task(n, s)
		row.IdemKey = "k"
		return row
	}
	for s := models.Scheduled; s <= models.Skipped; s++ {
		w := newWorld(t)
		p := w.plan()
		p.Tasks = []models.Task{keyed(1, s)}
		w.apply(p)
		next := w.plan()
		next.Tasks = []models.Task{keyed(2, models.Ready)}
		facts, err := w.Facts(t.Context(), &models.Need{IdemKeys: []models.IdemRef{{Env: 1, Key: "k"}, {Env: 2, Key: "k"}}})
		if err != nil {
			t.Fatal(err)
		}
		if free := s > models.Succeeded; free {
			w.apply(next)
			if len(facts.IdemKeys) != 0 {
				t.Errorf("%s: the key is held by %v", s, facts.IdemKeys)
			}
		} else {
			w.refuse(models.BadData, next)
			if held := facts.IdemKeys[models.IdemRef{Env: 1, Key: "k"}]; len(facts.IdemKeys) != 1 || held.ID != id(1) {
				t.Errorf("%s: the key is held by %v", s, facts.IdemKeys)
			}
		}
	}
	w := newWorld(t)
	p := w.plan()
	p.Tasks = []models.Task{keyed(1, models.Ready), keyed(2, models.Ready)}
	w.refuse(models.BadData, p)
}

func TestEdgesFireOnceAndTellWhomTheyFreed(t *testing.T) {
	w := newWorld(t)
	waits := func(n byte, remaining int32) models.Task {
		row := task(n, models.Pending)
		row.Remaining = remaining
		return row
	}
	p := w.plan()
	p.Tasks = []models.Task{task(1, models.Running), task(2, models.Running), waits(13, 2), waits(12, 1), waits(11, 1)}
	edge := func(from, to byte, on models.On) models.Edge {
		return models.Edge{Env: 1, From: id(from), To: id(to), On: on}
	}
	p.Edges = []models.Edge{
		edge(1, 13, models.OnSucceeded), edge(2, 13, models.OnFinished), edge(1, 12, models.OnFailed), edge(1, 11, models.OnFinished),
	}
	w.apply(p)

	end := w.plan()
	end.Changes = []models.Change{{From: models.Running, Token: id(101), After: task(1, models.DeadLetter)}}
	end.Ends = []models.End{{Env: 1, Task: id(1), State: models.DeadLetter}}
	effects := w.apply(end)
	if got := ids(effects.Freed); !slices.Equal(got, []byte{11, 12}) {
		t.Fatalf("a dead letter freed %v, want 11 and 12 in order", got)
	}
	if row := w.want(13, models.Pending); row.Remaining != 2 {
		t.Fatalf("a dead letter leaves its succeeded edge open, %d remain", row.Remaining)
	}

	discard := w.plan() // dead letter → failed: succeeded edges die, the others have fired already
	discard.Changes = []models.Change{{From: models.DeadLetter, After: task(1, models.Failed)}}
	discard.Ends = []models.End{{Env: 1, Task: id(1), State: models.Failed}}
	effects = w.apply(discard)
	if got := ids(effects.Freed); !slices.Equal(got, []byte{13}) {
		t.Fatalf("freed %v, want 13 alone", got)
	}
	if row := w.want(13, models.Pending); row.Remaining != 1 || row.Killed != 1 {
		t.Fatalf("%d remain, %d killed; want 1 and 1", row.Remaining, row.Killed)
	}
	for _, e := range w.Edges(ref(1)) {
		want := models.EdgeFired
		if e.On == models.OnSucceeded {
			want = models.EdgeKilled
		}
		if e.State != want {
			t.Errorf("the edge to %d is %d, want %d", e.To[15], e.State, want)
		}
	}
	skip := w.plan()
	after := task(13, models.Skipped)
	after.Remaining, after.Killed = 9, 9 // never taken from a change
	skip.Changes = []models.Change{{From: models.Pending, After: after}}
	w.apply(skip)
	if row := w.want(13, models.Skipped); row.Remaining != 1 || row.Killed != 1 {
		t.Fatalf("a change wrote the counters: %d, %d", row.Remaining, row.Killed)
	}
}

func TestAnswersOfACommitGetLostOnRequest(t *testing.T) {
	w := newWorld(t)
	p := w.plan()
	p.Tasks = []models.Task{task(1, models.Ready)}
	w.FailNext(models.Rollback, false)
	w.refuse(models.Rollback, p)
	if happened, next, err := w.Recover(t.Context(), w.epoch, p.Batch); err != nil || happened || next != w.epoch+1 {
		t.Fatalf("recovered %v, %d, %v", happened, next, err)
	}
	w.refuse(models.FenceLost, p)
	w.epoch++
	p = w.plan()
	p.Tasks = []models.Task{task(1, models.Ready)}
	w.FailNext(models.Unclear, true)
	if _, err := w.Apply(t.Context(), p); models.CodeOf(err) != models.Unclear {
		t.Fatalf("answered %v, want unclear", err)
	}
	if happened, _, err := w.Recover(t.Context(), w.epoch, p.Batch); err != nil || !happened {
		t.Fatalf("recovered %v, %v; it happened", happened, err)
	}
	w.want(1, models.Ready)
}

func TestTheBrainIsFenced(t *testing.T) {
	w := newWorld(t)
	seen, _ := w.Brain(t.Context())
	if seen.Epoch != w.epoch || seen.RenewedAt != start || seen.Address != "here" {
		t.Fatalf("the row says %+v", seen)
	}
	if err := w.Renew(t.Context(), w.epoch); err != nil {
		t.Fatal(err)
	}
	if _, err := w.TakeOver(t.Context(), seen, "there"); models.CodeOf(err) != models.FenceLost {
		t.Fatalf("a brain that lives was replaced: %v", err)
	}
	if err := w.HandOver(t.Context(), w.epoch); err != nil {
		t.Fatal(err)
	}
	seen, _ = w.Brain(t.Context())
	next, err := w.TakeOver(t.Context(), seen, "there")
	if seen.RenewedAt != 0 || err != nil || next != w.epoch+1 {
		t.Fatalf("handed over at %d, epoch %d, %v", seen.RenewedAt, next, err)
	}
	for what, err := range map[string]error{"renew": w.Renew(t.Context(), w.epoch), "hand over": w.HandOver(t.Context(), w.epoch)} {
		if models.CodeOf(err) != models.FenceLost {
			t.Errorf("an old brain could %s: %v", what, err)
		}
	}
	if _, _, err := w.Recover(t.Context(), w.epoch, 1); models.CodeOf(err) != models.FenceLost {
		t.Errorf("an old brain recovered: %v", err)
	}
}

func TestTimeNeverGoesBack(t *testing.T) {
	w := newWorld(t)
	for _, now := range []models.Instant{start + 5, start + 3, start + 9} {
		w.now = now
		facts, err := w.Facts(t.Context(), &models.Need{})
		if err != nil || facts.Now < start+5 {
			t.Fatalf("at %d it was %d, %v", now-start, facts.Now-start, err)
		}
	}
}
