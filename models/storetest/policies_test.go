package storetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/models/storetest"
	"nightshift/scheduler/engine"
)

// desk drives an engine over any store and keeps what its plans say of runs.
type desk struct {
	t      *testing.T
	ctx    context.Context
	now    models.Instant
	store  engine.Store
	engine *engine.Engine
	epoch  int64
	batch  int64
	env    int32
	serial uint32
	runs   map[models.ID]models.Run
}

func newDesk(t *testing.T, store func(clock func() models.Instant) engine.Store) *desk {
	d := &desk{t: t, ctx: t.Context(), now: 1_800_000_000_000_000, engine: engine.New(engine.Config{}), runs: map[models.ID]models.Run{}}
	d.store = store(func() models.Instant { return d.now })
	brain, err := d.store.Brain(d.ctx)
	d.must(err)
	d.epoch, err = d.store.TakeOver(d.ctx, brain, "here")
	d.must(err)
	d.rebuild()
	d.turn(&engine.Command{Configure: &engine.Configure{New: true, Action: "tenant.create", Tenant: &models.Tenant{ID: d.id(), Slug: "acorn", Name: "Acorn", Weight: 1, Timezone: "UTC"}}})
	for n := range d.engine.Board().Envs {
		d.env = n
	}
	return d
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) id() models.ID {
	d.serial++
	return models.NewID(d.now, [10]byte{1, byte(d.serial), 0, byte(d.serial >> 8)})
}

func (d *desk) rebuild() {
	heads, most := d.engine.Limits()
	snapshot, err := d.store.Load(d.ctx, heads, most)
	d.must(err)
	d.batch, snapshot.Now = snapshot.Batch, d.now
	d.engine.Rebuild(snapshot)
}

func (d *desk) turn(cmds ...*engine.Command) {
	d.t.Helper()
	for first := true; first || d.engine.Busy(); first, cmds = false, nil {
		facts, err := d.store.Facts(d.ctx, d.engine.Need(cmds))
		d.must(err)
		facts.Now = d.now
		plan, replies := d.engine.Decide(d.batch+1, d.epoch, facts, cmds)
		effects := &models.Effects{}
		if !plan.Empty() {
			effects, err = d.store.Apply(d.ctx, plan)
			d.must(err)
			d.batch++
		}
		for _, r := range append(replies, d.engine.Commit(effects)...) {
			d.must(r.Err)
		}
		for _, r := range plan.Schedules.Runs {
			d.runs[r.ID] = r
		}
	}
	heads, most := d.engine.Limits()
	snapshot, err := d.store.Load(d.ctx, heads, most)
	d.must(err)
	d.must(d.engine.Check(snapshot))
}

func (d *desk) tick() { d.turn(&engine.Command{Tick: &engine.Tick{}}) }

// policy is one combination of what a schedule may say of late and overlapping occurrences.
type policy struct {
	misfire, overlap string
	paused           string // "", schedule, environment
	expires          int64
}

func policies() (all []policy) {
	for _, misfire := range []string{"skip", "run_once", "catch_up"} {
		for _, overlap := range []string{"skip", "queue_one", "allow", "cancel_previous"} {
			for _, paused := range []string{"", "schedule", "disabled"} {
				for _, expires := range []int64{0, 15} {
					all = append(all, policy{misfire, overlap, paused, expires})
				}
			}
		}
	}
	return all
}

// want is what becomes of occurrences after 10, 20, 30 and 40 seconds when nobody looked for 42, said anew in plain steps:
// five seconds are allowed, the newest two are caught up.
func (p policy) want() string {
	out := make([]string, 4)
	live, waiting := []int{}, -1
	for i := range 4 {
		late := 42 - 10*int64(i+1)
		missed := late > 5
		made := !missed || p.misfire == "run_once" && i == 2 || p.misfire == "catch_up" && i >= 1
		switch {
		case p.paused != "":
			out[i] = "skipped_paused"
			continue
		case missed && !made:
			out[i] = "misfired"
			continue
		case p.expires > 0 && late > p.expires:
			out[i] = "expired"
			continue
		}
		switch {
		case len(live) == 0 || p.overlap == "allow":
			out[i], live = "dispatched", append(live, i)
		case p.overlap == "skip":
			out[i] = "skipped_overlap"
		case p.overlap == "queue_one":
			if waiting >= 0 {
				out[waiting] = "superseded"
			}
			out[i], waiting = "waits", i
		default:
			for _, before := range live {
				out[before] = "superseded"
			}
			out[i], live = "dispatched", []int{i}
		}
	}
	return strings.Join(out, " ")
}

// Each policy for what was missed, under each for what overlaps, paused or not, with and without an expiry; over both stores.
func TestEachPairOfPolicies(t *testing.T) {
	for name, store := range map[string]func(func() models.Instant) engine.Store{
		"memory":   func(clock func() models.Instant) engine.Store { return memory.New(clock) },
		"postgres": func(clock func() models.Instant) engine.Store { return storetest.Postgres(t, clock) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, store)
			of := map[models.ID]policy{}
			for i, p := range policies() {
				row := &models.Schedule{
					Env: d.env, ID: d.id(), Name: fmt.Sprint("s", i), Work: models.ScheduleWork{Task: json.RawMessage(`{"class":{"type":"work"},"max_attempts":1,"input":{}}`), Given: json.RawMessage(`{}`)},
					Rule: models.ScheduleRule{Kind: "interval", EverySeconds: 10, GraceSeconds: 5, CatchUp: 2, Misfire: p.misfire, Overlap: p.overlap, ExpireSeconds: p.expires},
				}
				on := p.paused != "disabled"
				d.turn(&engine.Command{Configure: &engine.Configure{Schedule: row, New: true, Enabled: &on, Action: "schedule.create"}})
				if p.paused == "schedule" {
					d.turn(&engine.Command{Configure: &engine.Configure{SwitchSchedule: &engine.SwitchSchedule{Env: d.env, ID: row.ID}, Action: "schedule.pause"}})
				}
				of[row.ID] = p
			}
			d.now = d.now.Add(42 * time.Second)
			d.rebuild()
			d.tick()
			got := map[models.ID][]models.Run{}
			for _, r := range d.runs {
				got[r.Schedule] = append(got[r.Schedule], r)
			}
			for id, p := range of { // any order: each on its own
				words := make([]string, 4)
				for _, r := range got[id] {
					i := int(r.ScheduledFor.Sub(1_800_000_000_000_000)/(10*time.Second)) - 1
					if words[i] != "" {
						t.Fatalf("%+v: two rows for one moment", p)
					}
					if words[i] = r.Outcome; r.Outcome == "" {
						words[i] = "waits"
					} else if r.Outcome != "dispatched" && r.Cause == "" {
						t.Errorf("%+v: %+v has no cause", p, r)
					}
				}
				if have := strings.Join(words, " "); have != p.want() {
					t.Errorf("%+v:\n%s, want\n%s", p, have, p.want())
				}
			}
		})
	}
}
