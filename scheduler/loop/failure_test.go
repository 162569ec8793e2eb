package loop

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

func TestFailuresOfABatchHaveTheirRules(t *testing.T) {
	for _, c := range []struct {
		name     string
		happened bool
		codes    []models.Code
		told     string
		stands   string
		figures  func(Figures) bool
	}{
		{"rolled back twice", false, []models.Code{models.Rollback, models.Rollback}, "done", "ready", func(f Figures) bool { return f.Rebuilds == 3 }},
		{"rolled back three times", false, []models.Code{models.Rollback, models.Rollback, models.Rollback}, "unavailable", "absent", nil},
		{"a row count differs", false, []models.Code{models.RowCount}, "done", "ready", func(f Figures) bool { return f.CounterDrift == 1 }},
		{"a row count differs for good", false, []models.Code{models.RowCount, models.RowCount, models.RowCount}, "internal", "absent", nil},
		{"unclear, and it happened", true, []models.Code{models.Unclear}, "done", "ready", func(f Figures) bool { return f.Unclear == 1 && f.Epoch == 2 }},
		{"unclear, and it did not happen", false, []models.Code{models.Unclear}, "done", "ready", func(f Figures) bool { return f.Unclear == 1 && f.Epoch == 2 }},
		{"unclear twice", false, []models.Code{models.Unclear, models.Unclear}, "done", "ready", nil},
		{"the database went away", false, []models.Code{models.Unavailable}, "unavailable", "absent", nil},
		{"bad data once", false, []models.Code{models.BadData}, "done", "ready", func(f Figures) bool { return f.Culprits == 0 }},
		{"bad data", false, []models.Code{models.BadData, models.BadData}, "validation_failed", "absent", func(f Figures) bool { return f.Culprits == 1 }},
		{"a code without a rule", false, []models.Code{"odd"}, "unavailable", "absent", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				w.store.fails(c.happened, c.codes...)
				cmd := w.task(payloadOf(1))
				answer, err := w.do(w.loop, cmd)
				if told(err) != c.told || w.stands(cmd) != c.stands {
					t.Errorf("told %v, the task is %s", err, w.stands(cmd))
				}
				if err == nil && (len(answer.Made) != 1 || answer.Submitted.Tasks[0].Row.ID != cmd.Submit.Tasks[0].ID) {
					t.Errorf("answered %+v", answer)
				}
				if f := w.loop.Figures(); c.figures != nil && !c.figures(f) {
					t.Errorf("figures %+v", f)
				}
				again := w.task(payloadOf(2))
				if _, err := w.do(w.loop, again); err != nil || w.stands(again) != "ready" {
					t.Errorf("afterwards: %v, the task is %s", err, w.stands(again))
				}
			})
		})
	}
}

// many asks commands at once, in one batch, and tells what each was told.
func (w *world) many(cmds []*engine.Command) map[*engine.Command]error {
	freeze := make(chan struct{})
	w.store.set(func(s *shaky) { s.freeze = freeze })
	go func() { _, _ = w.do(w.loop, w.look()) }() // it is under way while the others gather
	synctest.Wait()
	type result struct {
		cmd *engine.Command
		err error
	}
	results := make(chan result)
	for _, cmd := range cmds {
		go func() {
			_, err := w.do(w.loop, cmd)
			results <- result{cmd, err}
		}()
	}
	synctest.Wait()
	w.store.set(func(s *shaky) { s.freeze = nil })
	close(freeze)
	out := map[*engine.Command]error{}
	for range cmds {
		r := <-results
		out[r.cmd] = r.err
	}
	return out
}

func TestOneBadCommandAmongFiveHundred(t *testing.T) {
	for _, c := range []struct {
		name    string
		payload string
		told    models.Code
		panics  bool
	}{
		{"NUL", "{\"x\":\"a\x00b\"}", models.ValidationFailed, false},
		{"overflow", `{"n":"99999999999999999999"}`, models.ValidationFailed, false},
		{"panic", `{"panic":true}`, models.Internal, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				isBad := func(s *models.Spec) bool { return string(s.Payload) == c.payload }
				o := Options{}
				if c.panics {
					o.failpoint = func(cmds []*engine.Command) {
						for _, cmd := range cmds {
							if cmd.Submit != nil && string(cmd.Submit.Tasks[0].Payload) == c.payload {
								panic("forced")
							}
						}
					}
				}
				w := newWorld(t, o)
				refuse := func(plan *models.Plan, _ func() error) error {
					for i := range plan.Specs {
						if isBad(&plan.Specs[i]) {
							return models.Errorf(models.BadData, "22021: invalid byte sequence")
						}
					}
					return nil
				}
				w.store.set(func(s *shaky) {
					for range 2000 {
						s.apply = append(s.apply, refuse)
					}
				})
				var cmds []*engine.Command
				for i := range 500 {
					cmds = append(cmds, w.task(payloadOf(i)))
				}
				bad := w.task(c.payload)
				cmds[137] = bad
				for cmd, err := range w.many(cmds) {
					want, stands := models.Code(""), "ready"
					if cmd == bad {
						want, stands = c.told, "absent"
					}
					if models.CodeOf(err) != want || w.stands(cmd) != stands {
						t.Errorf("told %v, the task is %s", err, w.stands(cmd))
					}
				}
				if f := w.loop.Figures(); f.Culprits != 1 {
					t.Errorf("%d culprits", f.Culprits)
				}
				if _, alone := w.loop.inbox.alone[w.tenant]; !alone {
					t.Error("the tenant shares its batches with others")
				}
			})
		})
	}
}

// Each of several callers in one unclear batch is told the truth, and nothing is done twice.
func TestEveryCallerOfAnUnclearBatchIsToldTheTruth(t *testing.T) {
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprintf("happened %v", happened), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				parked := make(chan *engine.Answer)
				go func() { parked <- w.must(w.loop, w.claim(1, 30*time.Second)) }()
				time.Sleep(2 * time.Second)
				var cmds []*engine.Command
				for i := range 50 {
					cmds = append(cmds, w.task(payloadOf(i)))
				}
				w.store.fails(happened, models.Unclear)
				for cmd, err := range w.many(cmds) {
					if err != nil || w.stands(cmd) == "absent" {
						t.Errorf("told %v, the task is %s", err, w.stands(cmd))
					}
				}
				if got := <-parked; len(got.Claimed.Leases) != 1 {
					t.Errorf("the parked claim got %d leases", len(got.Claimed.Leases))
				}
				time.Sleep(5 * time.Second)
				states := map[models.State]int{}
				for _, row := range w.store.Tasks() {
					states[row.State]++
				}
				if want := map[models.State]int{models.Ready: 49, models.Running: 1}; !maps.Equal(states, want) {
					t.Errorf("the tasks are %v, not %v", states, want)
				}
			})
		})
	}
}

// A claim parked before a failure is still answered after it, once.
func TestParkedClaimsOutliveARebuild(t *testing.T) {
	for _, code := range []models.Code{models.Rollback, models.RowCount, models.Unclear, models.Unavailable} {
		t.Run(string(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				parked := make(chan *engine.Answer, 3)
				for range 3 {
					go func() { parked <- w.must(w.loop, w.claim(1, 30*time.Second)) }()
				}
				time.Sleep(time.Second)
				w.store.fails(false, code)
				_, err := w.do(w.loop, w.task(payloadOf(1)))
				time.Sleep(2 * retryFirst)
				want := int64(3)
				if err == nil {
					want = 2 // the task went to one of them
				}
				if n := w.held(); n != want || w.loop.Figures().Parked != int(want) {
					t.Errorf("the engine holds %d claims, the loop %d, not %d", n, w.loop.Figures().Parked, want)
				}
				for i := range 3 {
					w.must(w.loop, w.task(payloadOf(2+i)))
				}
				for range 3 {
					if got := <-parked; len(got.Claimed.Leases) != 1 {
						t.Errorf("a parked claim got %d leases", len(got.Claimed.Leases))
					}
				}
				time.Sleep(3 * time.Second)
				running := 0
				for _, row := range w.store.Tasks() {
					if row.State == models.Running {
						running++
					}
				}
				if running != 3 || w.loop.Figures().Parked != 0 {
					t.Errorf("%d tasks are running, %d claims parked", running, w.loop.Figures().Parked)
				}
			})
		})
	}
}

// A claim that a failed batch had parked is refused, and the engine holds nothing of it.
func TestARefusedClaimIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.store.fails(false, models.Unavailable)
		results := w.many([]*engine.Command{w.claim(1, 20*time.Second), w.task(payloadOf(1)), w.claim(1, 20*time.Second)})
		for cmd, err := range results {
			if models.CodeOf(err) != models.Unavailable {
				t.Errorf("%+v was told %v", cmd, err)
			}
		}
		if n := w.held(); n != 0 {
			t.Errorf("the engine holds %d claims", n)
		}
	})
}

// Claims of a batch that failed and was tried again are held once.
func TestAClaimTriedAgainIsHeldOnce(t *testing.T) {
	for _, code := range []models.Code{models.Rollback, models.RowCount, models.BadData} {
		t.Run(string(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				worker, session := w.register(w.loop, "full")
				zero := int32(0)
				for range 4 {
					go func() { // it waits, whatever there is to do
						_, _ = w.do(w.loop, &engine.Command{ID: newID(), Claim: &engine.Claim{
							Worker: worker, Session: session, Most: 1,
							WaitMS: 20_000, Free: &engine.Free{Slots: &zero},
						}})
					}()
				}
				time.Sleep(time.Millisecond)
				w.store.fails(false, code)
				w.many([]*engine.Command{w.task(payloadOf(1)), w.task(payloadOf(2))})
				time.Sleep(10 * time.Millisecond)
				if n := w.held(); n != 4 {
					t.Errorf("the engine holds %d claims, not 4", n)
				}
				time.Sleep(30 * time.Second)
				if n := w.held(); n != 0 {
					t.Errorf("the engine holds %d claims for ever", n)
				}
			})
		})
	}
}

// Work of the engine's own that can't be done is nobody's fault: whoever asks meanwhile is told to come again.
func TestNobodyIsBlamedForTheEnginesOwnWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		w := newWorld(t, Options{failpoint: func([]*engine.Command) {
			if broken.Load() {
				panic("a row of its own")
			}
		}})
		broken.Store(true)
		for cmd, err := range w.many([]*engine.Command{w.task(payloadOf(1)), w.task(payloadOf(2))}) {
			if models.CodeOf(err) != models.Unavailable {
				t.Errorf("%+v was told %v", cmd, err)
			}
		}
		if f := w.loop.Figures(); f.Culprits != 0 || f.OwnWork == 0 {
			t.Errorf("figures %+v", f)
		}
		broken.Store(false)
		w.must(w.loop, w.task(payloadOf(3)))
	})
}

func TestATickThatKeepsFailingIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ticks atomic.Int64
		var broken atomic.Bool
		w := newWorld(t, Options{failpoint: func(cmds []*engine.Command) {
			for _, cmd := range cmds {
				if cmd.Tick != nil {
					if ticks.Add(1); broken.Load() {
						panic("forced")
					}
				}
			}
		}})
		w.must(w.loop, w.look())
		broken.Store(true)
		ticks.Store(0)
		time.Sleep(30 * time.Second)
		if f := w.loop.Figures(); f.TicksAside != 1 || ticks.Load() > 10 {
			t.Errorf("%d ticks were tried, %d times set aside", ticks.Load(), f.TicksAside)
		}
		w.must(w.loop, w.task(payloadOf(1)))
		broken.Store(false)
		ticks.Store(0)
		time.Sleep(2 * time.Minute)
		if ticks.Load() < 30 {
			t.Errorf("only %d ticks once they work again", ticks.Load())
		}
	})
}

func TestFailingReadsCostOnlyTheirBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.store.set(func(s *shaky) {
			s.reads = []error{models.Errorf(models.Rollback, "57014"), models.Errorf(models.Rollback, "57014")}
		})
		w.must(w.loop, w.task(payloadOf(1)))
		w.store.set(func(s *shaky) { s.reads = []error{models.Errorf(models.Unavailable, "gone")} })
		if _, err := w.do(w.loop, w.task(payloadOf(2))); models.CodeOf(err) != models.Unavailable {
			t.Errorf("told %v", err)
		}
		w.must(w.loop, w.task(payloadOf(3)))
	})
}

// stated is an error of a database that names what is nobody's business.
type stated string

func (s stated) Error() string {
	return "insert_labels: ERROR: invalid value for column value of labels"
}
func (s stated) SQLState() string { return string(s) }

// What the culprit is told says what is wrong, and neither the loop's own words nor the database's.
func TestTheCulpritIsToldWhy(t *testing.T) {
	for state, want := range map[string]string{
		"22021": "a text holds a character", "22003": "out of its range", "54000": "too large", "23514": "SQLSTATE 23514", "": "it refuses a value",
	} { // any order: each in a world of its own
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.store.set(func(s *shaky) {
				for range 2 {
					s.apply = append(s.apply, func(*models.Plan, func() error) error {
						if state == "" {
							return models.Errorf(models.BadData, "insert_labels")
						}
						return models.Errorf(models.BadData, "the database says %s: %w", state, stated(state))
					})
				}
			})
			_, err := w.do(w.loop, w.task(payloadOf(1)))
			var e *models.Error
			if !errors.As(err, &e) || e.Code != models.ValidationFailed || !strings.Contains(e.Detail, want) || strings.Contains(e.Detail, "bad_data") || strings.Contains(e.Detail, "labels") {
				t.Errorf("of %q told %v", state, err)
			}
		})
	}
}
