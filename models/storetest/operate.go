package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// begin makes two tenants, a second environment for one, a lane beside the first four, and three workers.
func (r *run) begin() {
	for i, weight := range []float64{5, 2} {
		slug := fmt.Sprintf("tenant-%d", i)
		r.do(r.configure(&engine.Configure{Tenant: &models.Tenant{ID: r.id(), Slug: slug, Name: slug, Weight: weight, Timezone: "UTC"}, New: true, Action: "tenant.create"}))
	}
	staging := &models.Environment{ID: r.id(), Tenant: r.known.tenants[0].Number, Name: "staging", Kind: "staging"}
	r.do(r.configure(&engine.Configure{Environment: staging, New: true, Action: "environment.create"}))
	for _, e := range r.known.envs {
		r.do(r.configure(&engine.Configure{Lane: &models.Lane{Env: e.Env, Name: "sync", Kind: models.IO, Weight: 1, MaxConcurrent: 2, HighWater: 5, TaskTypes: []string{"b.*"}}, New: true, Action: "lane.create"}))
		r.do(r.configure(&engine.Configure{Rate: &models.RateLimit{Env: e.Env, Key: "rate-0", Limit: 2, PerSeconds: 5}, Action: "rate_limit.put"}))
		r.do(r.configure(&engine.Configure{Rate: &models.RateLimit{Env: e.Env, Key: "rate-1", Limit: 3, PerSeconds: 20, Burst: 1}, Action: "rate_limit.put"}))
	}
	for _, e := range r.known.envs {
		r.do(r.configure(&engine.Configure{Grants: &models.Grants{Env: e.Env, Granted: []string{"net"}}, Action: "permissions.set"}))
	}
	for range 6 {
		r.do(r.model())
	}
	for range 3 {
		r.do(r.register())
	}
	r.settle()
	r.check()
}

// operate does one thing.
func (r *run) operate() {
	r.now = r.now.Add(time.Duration(r.rng.IntN(400)) * time.Millisecond)
	switch n := r.rng.IntN(100); {
	case n < 3:
		r.do(r.schedule())
	case n < 6:
		r.do(r.publishes()...)
	case n < 20:
		r.do(r.submits(1 + r.rng.IntN(3))...)
	case n < 25:
		r.do(r.command(&engine.Command{Submit: r.workflow()}))
	case n < 28:
		r.stage()
	case n < 31:
		r.do(r.spawns()...)
	case n < 48:
		r.do(r.claims()...)
	case n < 66:
		r.do(r.results()...)
	case n < 74:
		r.do(r.beats()...)
	case n < 76:
		r.do(r.cancel())
	case n < 80:
		r.do(r.steer())
	case n < 83:
		r.do(r.dead())
	case n < 84:
		if r.chance(50) {
			r.do(r.rate())
		} else {
			r.do(r.model())
		}
		r.do(r.giveBack())
	case n < 87:
		r.do(r.workers())
	case n < 89:
		r.do(r.limit())
	case n < 91:
		r.do(r.edit())
	case n < 92:
		r.do(r.words()...)
	case n < 93:
		r.do(r.spawns()...)
	case n < 94:
		r.do(r.look())
	case n < 98:
		r.jump()
	case n < 99:
		r.rebuild()
		r.again(nil)
	default:
		r.takeOver()
	}
}

// jump lets time pass: a few seconds, past a lease, or past every retry and expiry.
func (r *run) jump() {
	seconds := [...]int{2, 5, 12, 35, 70, 400}[r.rng.IntN(6)]
	for range 4 { // the clock ticks on the way
		r.now = r.now.Add(models.Seconds(seconds) / 4)
		r.settle()
	}
}

func (r *run) id() models.ID {
	var entropy [10]byte
	for i := range entropy {
		entropy[i] = byte(r.rng.UintN(256))
	}
	return models.NewID(r.now, entropy)
}

func (r *run) chance(percent int) bool { return r.rng.IntN(100) < percent }

// pick is one of a list; the zero value of an empty one.
func pick[T any](r *run, of []T) (one T) {
	if len(of) > 0 {
		one = of[r.rng.IntN(len(of))]
	}
	return one
}

func (r *run) command(c *engine.Command) *engine.Command {
	c.ID = r.id()
	c.Actor = models.Actor{Kind: "key", ID: "script"}
	if c.Tenant == 0 && len(r.known.tenants) > 0 {
		c.Tenant = pick(r, r.known.tenants).Number
	}
	return c
}

func (r *run) configure(c *engine.Configure) *engine.Command {
	cmd := r.command(&engine.Command{Configure: c})
	cmd.Tenant = 0
	return cmd
}

func (r *run) env() int32 { return pick(r, r.known.envs).Env }

// claims come from one to three workers; half of them wait.
func (r *run) claims() (out []*engine.Command) {
	for range 1 + r.rng.IntN(3) {
		w := pick(r, r.known.workers)
		claim := &engine.Claim{Worker: w.row.ID, Session: w.row.Session, Most: 1 + r.rng.Int32N(3)}
		if r.chance(50) {
			claim.Until = r.now.Add(models.Seconds(1 + r.rng.IntN(20)))
		}
		if r.chance(3) {
			claim.Session = r.id()
		}
		out = append(out, r.command(&engine.Command{Claim: claim}))
	}
	return out
}

// giveBack returns a lease that could not be delivered, and a claim nobody waits for any more.
func (r *run) giveBack() *engine.Command {
	back := &engine.Return{}
	if w := pick(r, r.known.workers); len(w.leases) > 0 {
		back.Tokens = append(back.Tokens, w.leases[0].token)
		r.lost(w.leases[0].token)
	}
	if len(r.parked) > 0 && r.chance(50) {
		back.Claim = pick(r, r.parked).ID
	}
	return r.command(&engine.Command{Return: back})
}

// beats come from the worker form, which now and then forgets a lease, or the single one.
func (r *run) beats() (out []*engine.Command) {
	for _, w := range r.known.workers {
		if w.gone || r.chance(30) {
			continue
		}
		beat := &engine.Heartbeat{Worker: w.row.ID, Session: w.row.Session, All: true}
		for _, l := range w.leases {
			if r.chance(8) {
				continue
			}
			one := engine.Beat{Token: l.token, Task: l.ref}
			if r.chance(20) {
				one.Progress = json.RawMessage(fmt.Sprintf(`{"done":%d}`, r.rng.IntN(100)))
			}
			if r.chance(10) {
				one.Checkpoint = json.RawMessage(fmt.Sprintf(`"at %d"`, r.rng.IntN(100)))
			}
			beat.Leases = append(beat.Leases, one)
		}
		out = append(out, r.command(&engine.Command{Heartbeat: beat}))
	}
	if l := pick(r, r.known.stale); r.chance(15) && !l.token.IsZero() {
		out = append(out, r.command(&engine.Command{Heartbeat: &engine.Heartbeat{Env: l.ref.Env, Task: l.ref.ID, Leases: []engine.Beat{{Token: l.token, Task: l.ref}}}}))
	}
	return out
}

// results end about half of what runs, now and then twice or by a token that was lost.
func (r *run) results() (out []*engine.Command) {
	for _, w := range r.known.workers {
		settle := &engine.Settle{Worker: w.row.ID, Session: w.row.Session}
		for _, l := range w.leases {
			if r.chance(55) {
				settle.Results = append(settle.Results, r.result(l))
			}
		}
		if l := pick(r, r.known.stale); r.chance(15) && !l.token.IsZero() {
			settle.Results = append(settle.Results, r.result(l))
		}
		if n := len(settle.Results); n > 0 && r.chance(5) {
			settle.Results = append(settle.Results, settle.Results[n-1])
		}
		if len(settle.Results) == 1 && r.chance(40) {
			one := settle.Results[0]
			settle.Worker, settle.Session, settle.Env, settle.Task = models.ID{}, models.ID{}, one.Task.Env, one.Task.ID
		}
		if len(settle.Results) > 0 {
			out = append(out, r.command(&engine.Command{Settle: settle}))
		}
	}
	return out
}

func (r *run) result(l lease) engine.Result {
	out := engine.Result{Token: l.token, Task: l.ref, Outcome: models.AttemptSucceeded}
	n := r.rng.IntN(10)
	if r.known.modelled[l.ref.ID] && (r.known.outage || r.chance(40)) {
		n = 5 // it fails
	}
	switch {
	case n < 5:
		out.Result = json.RawMessage(fmt.Sprintf(`{"n": %d}`, r.rng.IntN(1000)))
	case n < 8:
		out.Outcome = models.AttemptFailed
		class := pick(r, append(models.ErrorClasses, "unheard_of"))
		if r.known.modelled[l.ref.ID] && r.chance(75) {
			class = pick(r, []string{"provider_outage", "overloaded", "quality_too_low", "quality_too_low"})
			if r.known.outage {
				class = "provider_outage"
			}
		}
		out.Error = &models.TaskError{Class: class, Message: fmt.Sprintf("it broke at line %d", r.rng.IntN(3)), Stack: pick(r, []string{"", "main.work\nmain.main"})}
		if r.chance(20) {
			out.RetryAfter = float64(r.rng.IntN(90))
		}
	case n < 9:
		out.Outcome = pick(r, []models.Outcome{models.AttemptCancelled, models.AttemptSuspended})
	default:
		out.Outcome = pick(r, []models.Outcome{models.AttemptReleased, models.AttemptSuspended})
	}
	if r.known.itemized[l.ref.ID] && r.chance(60) || r.chance(2) {
		out.Items = r.items()
	}
	if r.chance(30) {
		out.Usage = json.RawMessage(`{"tokens_in":12,"cost_usd":0.01}`)
		if r.chance(40) {
			out.Usage = json.RawMessage(fmt.Sprintf(`{"tokens_in":%d,"tokens_out":40,"quality":0.%d}`, 100+r.rng.IntN(300), r.rng.IntN(10)))
		}
	}
	if r.chance(10) {
		out.Checkpoint = json.RawMessage(`"half"`)
	}
	return out
}

// items are those that failed of what was claimed, which the client has not looked at closely.
func (r *run) items() *engine.ItemsReport {
	report := &engine.ItemsReport{}
	for i := range int32(4) {
		if r.chance(25) {
			report.Failed = append(report.Failed, engine.ItemFailed{Index: i, Class: pick(r, models.ErrorClasses), Message: "no good"})
		}
	}
	if r.chance(10) {
		done := r.rng.Int32N(4)
		report.Done = &done
	}
	return report
}

// cancel stops a task, a workflow, or something that is not there.
func (r *run) cancel() *engine.Command {
	if w := pick(r, r.known.workflows); r.chance(25) && !w.ID.IsZero() {
		return r.command(&engine.Command{Cancel: &engine.Cancel{Env: w.Env, Workflow: w.ID, Reason: "no longer wanted"}})
	}
	ref := pick(r, r.known.all)
	if r.chance(5) {
		ref = models.TaskRef{Env: r.env(), ID: r.id()}
	}
	return r.command(&engine.Command{Cancel: &engine.Cancel{Env: ref.Env, Task: ref.ID, Reason: "no longer wanted"}})
}

// dead redrives or discards one dead letter or all of a fingerprint.
func (r *run) dead() *engine.Command {
	ref, print := pick(r, r.known.dead), pick(r, r.known.prints)
	switch n := r.rng.IntN(10); {
	case ref.ID.IsZero() || n == 0:
		ref = pick(r, r.known.all)
		fallthrough
	case n < 5:
		return r.command(&engine.Command{Redrive: &engine.Redrive{Env: ref.Env, Task: ref.ID, Reason: "mended"}})
	case n < 7:
		return r.command(&engine.Command{Discard: &engine.Discard{Env: ref.Env, Task: ref.ID, Reason: "given up"}})
	}
	kind := pick(r, []models.CursorKind{models.RedriveDead, models.RedriveDead, models.DiscardDead})
	bulk := &engine.Bulk{ID: r.id(), Env: print.Env, Kind: kind, Fingerprint: print.ID, Matched: 1, Reason: "all of them"}
	if r.chance(50) {
		bulk.Until = r.id()
	}
	return r.command(&engine.Command{Bulk: bulk})
}

// register makes a worker, or an instance begin anew.
func (r *run) register() *engine.Command {
	n := r.rng.IntN(6)
	w := models.Worker{
		ID: r.id(), Session: r.id(), KeyID: "k", Name: fmt.Sprintf("worker %d", n), Instance: fmt.Sprintf("instance-%d", n), Version: "1",
		Pool: "cpu", Slots: 1 + r.rng.Int32N(4), LeaseSeconds: pick(r, []int32{10, 30, 60}), CPUMilli: 4_000, MemoryMB: 4_096, DiskMB: 1_000,
	}
	switch n {
	case 1:
		w.TaskTypes, w.Labels = []string{"a.*"}, map[string]string{"zone": "north"}
	case 2:
		w.Pool, w.GPUs, w.Models = "gpu", []models.GPUCard{{VRAMMB: 24_000}, {VRAMMB: 8_000}}, []string{"small"}
	case 3:
		w.Lanes = []string{"sync", "batch"}
	case 4:
		w.Slots, w.KindSlots = 0, map[string]int32{"io": 3, "batch": 1}
	case 5:
		w.Tenant, w.Permissions = pick(r, r.known.tenants).Number, []string{"net"}
	}
	w.AnyModel, w.AnyPermit = len(w.Models) == 0 && r.chance(20), len(w.Permissions) == 0 && r.chance(20)
	cmd := &engine.Command{Register: &engine.Register{Worker: w}}
	for _, old := range r.known.workers {
		if old.row.Instance == w.Instance && old.row.Tenant == w.Tenant && r.chance(50) {
			for _, l := range old.leases {
				cmd.Register.Leases = append(cmd.Register.Leases, l.token)
			}
		}
	}
	return r.command(cmd)
}

// workers come, drain and go.
func (r *run) workers() *engine.Command {
	w := pick(r, r.known.workers)
	switch r.rng.IntN(4) {
	case 0:
		return r.command(&engine.Command{Retire: &engine.Retire{Worker: w.row.ID, Session: w.row.Session}})
	case 1:
		return r.command(&engine.Command{Retire: &engine.Retire{Worker: w.row.ID, Gone: true}})
	}
	return r.register()
}

// edit changes what decisions read.
func (r *run) edit() *engine.Command {
	lane, env, tenant := pick(r, r.known.lanes), pick(r, r.known.envs), pick(r, r.known.tenants)
	switch r.rng.IntN(11) {
	case 9:
		return r.comeAndGo(tenant)
	case 10:
		lane.Elastic, lane.MaxHold = r.chance(70), pick(r, []int32{0, 5, 60})
		lane.YieldsTo = pick(r, [][]string{nil, {"sync"}, {"realtime", "io"}, {"batch"}, {"nowhere"}})
		lane.Defaults = map[int32]*models.LaneDefaults{5: {SoftSeconds: 9, HardSeconds: 40, ExpiresInSeconds: 50, RetryPolicy: &models.RetryPolicy{
			MaxAttempts: 2, Backoff: "fixed", InitialDelay: 1, MaxDelay: 9, Classes: map[string]models.ClassPolicy{"timeout": {MaxAttempts: 1}},
		}}}[lane.MaxHold]
		return r.configure(&engine.Configure{Lane: &lane, Version: lane.Version, Action: "lane.update"})
	case 8:
		lane.OpenWindows = nil
		if r.chance(70) {
			lane.OpenWindows = []models.Window{{Cron: "* * * * *", DurationSeconds: 1 + r.rng.Int32N(59)}}
		}
		return r.configure(&engine.Configure{Lane: &lane, Version: lane.Version, Action: "lane.update"})
	case 4:
		name := fmt.Sprintf("lane-%d", r.rng.IntN(3))
		return r.configure(&engine.Configure{Lane: &models.Lane{Env: env.Env, Name: name, Kind: models.KindName(r.rng.IntN(4)), Weight: 1, HighWater: 3, TaskTypes: []string{"a.two"}}, New: true, Action: "lane.create"})
	case 5:
		return r.configure(&engine.Configure{DeleteLane: &models.Lane{Env: lane.Env, Name: lane.Name}, Version: -1, Action: "lane.delete"})
	case 0:
		env.Paused = !env.Paused
		env.Reason = map[bool]string{true: "quiet hours"}[env.Paused]
		return r.configure(&engine.Configure{Environment: &env, Version: -1, Action: "environment.pause"})
	case 1:
		tenant.Weight = float64(1 + r.rng.IntN(9))
		return r.configure(&engine.Configure{Tenant: &tenant, Version: tenant.Version, Action: "tenant.update"})
	case 2:
		kind := models.DefaultKinds()[r.rng.IntN(4)]
		kind.Weight = float64(1 + r.rng.IntN(9))
		kind.Elastic, kind.MaxHold = r.chance(60), pick(r, []int32{0, 10, 100})
		kind.YieldsTo = pick(r, [][]string{nil, nil, {"realtime"}, {"compute", "io"}})
		return r.configure(&engine.Configure{Kind: &kind, Version: -1, Action: "kind.update"})
	case 3:
		lane.MaxConcurrent = r.rng.Int32N(4)
		return r.configure(&engine.Configure{Lane: &lane, Version: lane.Version, Action: "lane.update"})
	}
	lane.Paused = !lane.Paused
	lane.Reason = map[bool]string{true: "repairs"}[lane.Paused]
	return r.configure(&engine.Configure{Lane: &lane, Version: -1, Action: "lane.pause"})
}
