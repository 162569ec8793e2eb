package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// crowd makes so many schedules, all due once at one moment.
func (w *world) crowd(n int, at models.Instant) []models.ID {
	ids := make([]models.ID, n)
	for i := range ids {
		ids[i] = newID()
		w.must(w.loop, &engine.Command{Tenant: w.tenant, Configure: &engine.Configure{New: true, Action: "schedule.create", Schedule: &models.Schedule{
			Env: w.env, ID: ids[i], Name: fmt.Sprint("s", i), Work: models.ScheduleWork{Task: json.RawMessage(`{"class":{"type":"work"},"max_attempts":1,"input":{}}`)},
			Rule: models.ScheduleRule{Kind: "once", Timezone: "UTC", RunAt: at, GraceSeconds: 3600},
		}}})
	}
	return ids
}

// fired collects, of every plan that is committed, which schedules ran.
type fired struct {
	mu  sync.Mutex
	all map[models.ID]int
}

func (f *fired) note(plan *models.Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range plan.Schedules.Runs {
		f.all[r.Schedule]++
	}
}

func newFired() *fired { return &fired{all: map[models.ID]int{}} }

// ran is how many schedules ran, and of is how often one did.
func (f *fired) ran() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all)
}

func (f *fired) of(id models.ID) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[id]
}

// slowly takes some time for each run, and gives up after 700 of them, as a statement's timeout does.
func slowly(plan *models.Plan, each time.Duration, lost models.Code) error {
	took := time.Duration(len(plan.Schedules.Runs)) * each
	if took > 700*time.Millisecond {
		time.Sleep(700 * time.Millisecond)
		return models.Errorf(lost, "as the test wants: %d runs take too long", len(plan.Schedules.Runs))
	}
	time.Sleep(took)
	return nil
}

// A store that is slow in proportion to what it is to write gets less to write: everything that is due is made, ticks never
// rest, and what callers ask is done meanwhile.
func TestASlowStoreGetsSmallerSlices(t *testing.T) {
	for _, code := range []models.Code{models.Rollback, models.Unclear} {
		for _, each := range []time.Duration{20 * time.Millisecond, 600 * time.Millisecond} {
			t.Run(fmt.Sprint(code, " ", each), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := 250
					if each > 100*time.Millisecond {
						n = 30
					}
					w, f := newWorld(t, Options{}), newFired()
					due := time.Now().Add(10 * time.Second)
					ids := w.crowd(n, models.InstantOf(due))
					w.store.set(func(s *shaky) {
						s.weigh = func(plan *models.Plan) error {
							err := slowly(plan, each, code)
							if err == nil {
								f.note(plan)
							}
							return err
						}
					})
					time.Sleep(time.Until(due))
					asked, done := 0, 0
					for end := due.Add(time.Duration(2*n) * each).Add(30 * time.Second); f.ran() < n && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
						asked++
						if _, err := w.do(w.loop, w.task(payloadOf(asked))); err == nil {
							done++
						}
					}
					for _, id := range ids {
						if f.of(id) != 1 {
							t.Fatalf("%d of %d schedules ran; one of them %d times, after %v", f.ran(), n, f.of(id), time.Since(due))
						}
					}
					if g := w.loop.Figures(); g.TicksAside != 0 || g.SchedulesAside != 0 {
						t.Errorf("ticks were set aside %d times, schedules %d times", g.TicksAside, g.SchedulesAside)
					}
					if done*10 < asked*8 {
						t.Errorf("of %d commands meanwhile %d were done", asked, done)
					}
					t.Logf("%d schedules ran within %v, %v each; %d of %d commands were done meanwhile", n, time.Since(due), each, done, asked)
				})
			})
		}
	}
}

// One schedule of many whose occurrence can't be made alone, because it takes too long or because of what it writes, rests;
// all others run, commands are done and blamed for nothing. What it missed is made as soon as that can be done.
func TestOnlyWhatFailsAloneIsSetAside(t *testing.T) {
	for _, code := range []models.Code{models.Rollback, models.Unclear, models.BadData} {
		t.Run(string(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 100
				w, f := newWorld(t, Options{}), newFired()
				due := time.Now().Add(10 * time.Second)
				ids := w.crowd(n, models.InstantOf(due))
				poison := ids[n/2]
				var broken atomic.Bool
				broken.Store(true)
				w.store.set(func(s *shaky) {
					s.weigh = func(plan *models.Plan) error {
						if broken.Load() && slices.ContainsFunc(plan.Schedules.Runs, func(r models.Run) bool { return r.Schedule == poison }) {
							time.Sleep(700 * time.Millisecond)
							return models.Errorf(code, "as the test wants")
						}
						f.note(plan)
						return nil
					}
				})
				time.Sleep(time.Until(due))
				for i := range 300 {
					_, err := w.do(w.loop, w.task(payloadOf(i)))
					if err != nil && models.CodeOf(err) != models.Unavailable {
						t.Errorf("a command was told %v", err)
					}
					time.Sleep(100 * time.Millisecond)
				}
				if f.ran() != n-1 || f.of(poison) != 0 {
					t.Errorf("%d of %d ran, the one that can't %d times", f.ran(), n, f.of(poison))
				}
				if g := w.loop.Figures(); g.SchedulesAside != 1 || g.TicksAside != 0 || g.OwnWork != 0 || g.Culprits != 0 {
					t.Errorf("%d schedules were set aside, ticks %d times, own work %d times; %d culprits", g.SchedulesAside, g.TicksAside, g.OwnWork, g.Culprits)
				}
				broken.Store(false)
				time.Sleep(time.Minute)
				if f.of(poison) != 1 {
					t.Errorf("the one that could not ran %d times once it could", f.of(poison))
				}
			})
		})
	}
}

// A database that can write nothing at all is no schedule's fault.
func TestADatabaseThatCanNothingSetsNoScheduleAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := newWorld(t, Options{}), newFired()
		due := time.Now().Add(10 * time.Second)
		w.crowd(20, models.InstantOf(due))
		var broken atomic.Bool
		w.store.set(func(s *shaky) {
			s.weigh = func(plan *models.Plan) error {
				if broken.Load() {
					return models.Errorf(models.Rollback, "as the test wants")
				}
				f.note(plan)
				return nil
			}
		})
		time.Sleep(time.Until(due) - time.Second)
		broken.Store(true)
		for i := range 200 { // a command in every batch: none is empty
			_, _ = w.do(w.loop, w.task(payloadOf(i)))
			time.Sleep(100 * time.Millisecond)
		}
		if g := w.loop.Figures(); g.SchedulesAside != 0 {
			t.Errorf("%d schedules were set aside", g.SchedulesAside)
		}
		broken.Store(false)
		time.Sleep(2 * time.Minute)
		if f.ran() != 20 {
			t.Errorf("%d of 20 ran afterwards", f.ran())
		}
	})
}
