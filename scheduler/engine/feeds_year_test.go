package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// Random triggers and items come in batches, runs end or not, schedules pause and go on, and brains die before and after
// their commits. At the end each message has been taken by exactly one run of each schedule it was for, in its order.
func TestEachMessageIsTakenOnceWhateverDies(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := worldOn(t, engine.Config{}, bothOn(seed < 2))
			rng := rand.New(rand.NewPCG(seed, 5))
			overlaps := []string{"skip", "queue_one", "allow"}
			var listeners []models.TaskRef
			for i := range 3 {
				listeners = append(listeners, w.listener(fmt.Sprint("l", i), func(r *models.ScheduleRule) {
					r.Overlap = overlaps[i]
					r.Event = &models.EventRule{Name: "sale", DebounceSeconds: float64(rng.IntN(4)), MaxWaitSeconds: 6, MaxEvents: int32(rng.IntN(3) * 5)}
				}))
			}
			drain := w.drainer("d", func(r *models.ScheduleRule) { r.Overlap = overlaps[seed%3] })
			worker := w.worker("one", func(r *models.Worker) { r.LeaseSeconds = 300; r.Slots = 100 })
			sent, put, kills := 0, 0, 0
			for range 120 {
				var cmds []*engine.Command
				for range rng.IntN(12) {
					cmd := w.publishing("sale", strconv.Itoa(sent))
					sent++
					if rng.IntN(3) == 0 {
						sent--
						cmd = w.publishing("mail", strconv.Itoa(put))
						cmd.Publish.Source = models.FromQueue
						put++
					}
					cmds = append(cmds, cmd)
				}
				kills += w.live(rng, cmds, listeners)
				for _, lease := range w.claim(worker, int32(1+rng.IntN(6))) {
					w.settle(worker, ok(lease))
				}
			}
			for _, of := range listeners {
				w.turnSchedule(of, true)
			}
			for range 150 { // until all is done: one run of five at a time at worst
				w.now = w.now.Add(7 * time.Second)
				w.turn(&engine.Command{Tick: &engine.Tick{}})
				for _, lease := range w.claim(worker, 50) {
					w.settle(worker, ok(lease))
				}
			}
			for _, of := range append(listeners, drain) {
				want := sent
				if of == drain {
					want = put
				}
				if got := w.taken(of); !slices.Equal(got, upTo(want)) {
					t.Fatalf("of %d messages these were taken, in this order: %v", want, got)
				}
			}
			t.Logf("%d triggers, %d items, %d brains died, %d runs of the first", sent, put, kills, len(w.store.Runs(listeners[0])))
		})
	}
}

// taken are the numbers that a schedule's runs took, one run after the other.
func (w *world) taken(of models.TaskRef) (out []int) {
	for _, r := range w.store.Runs(of) {
		messages, _ := w.store.Taken(models.TaskRef{Env: r.Env, ID: r.ID})
		for _, m := range messages {
			var n int
			w.must(json.Unmarshal(m.Data, &n))
			out = append(out, n)
		}
	}
	return out
}

func upTo(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// again sends commands once more.
func (w *world) again(cmds []*engine.Command) {
	w.t.Helper()
	for _, c := range cmds {
		c.Resent = true
	}
	w.turn(cmds...)
}

// live lets a moment pass in which commands come, and says whether a brain died of it.
func (w *world) live(rng *rand.Rand, cmds []*engine.Command, listeners []models.TaskRef) (kills int) {
	w.t.Helper()
	w.now = w.now.Add(time.Duration(rng.IntN(1500)) * time.Millisecond)
	cmds = append(cmds, &engine.Command{Tick: &engine.Tick{}})
	switch rng.IntN(12) {
	case 0: // its commands are sent again, as their callers do
		w.crash(models.Rollback, false, cmds...)
		w.again(cmds)
	case 1:
		w.crash(models.Unclear, true, cmds...)
		w.again(cmds)
	case 2:
		w.turn(cmds...)
		w.takeOver()
	case 3:
		w.turn(cmds...)
		w.turnSchedule(listeners[rng.IntN(3)], rng.IntN(2) == 0)
		return 0
	default:
		w.turn(cmds...)
		return 0
	}
	return 1
}
