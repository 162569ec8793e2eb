package sim

import (
	"fmt"
	"math"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// patience is how long a claim waits, where heartbeats are as often as in production.
const patience = 20 * time.Second

// beat is how often a process says that it lives: three times in a lease.
func (p *process) beat() time.Duration { return time.Duration(p.row.LeaseSeconds) * time.Second / 3 }

// process is a worker of the world.
type process struct {
	n        int
	spec     *Worker
	row      models.Worker
	up       bool
	life     int // rises with each death: what an earlier life began does not come to an end
	claiming bool
	leases   []*attempt
}

// attempt is one task that a process works on.
type attempt struct {
	job    *job
	ref    models.TaskRef
	token  models.ID
	over   bool
	result engine.Result
}

// hire puts a process on the agenda.
func (w *World) hire(spec *Worker, n int) {
	p := &process{n: len(w.fleet), spec: spec, row: spec.Worker}
	p.row.Name = fmt.Sprintf("%s-%d", spec.Name, n)
	p.row.Instance, p.row.Version = p.row.Name, "1"
	if p.row.Pool == "" {
		p.row.Pool = "cpu"
	}
	if p.row.LeaseSeconds == 0 {
		p.row.LeaseSeconds = 30
	}
	w.fleet = append(w.fleet, p)
	w.after(spec.From, func() { w.start(p) })
	if spec.To > 0 {
		w.after(spec.To, func() { w.retire(p) })
	}
}

// start registers a process.
func (w *World) start(p *process) {
	p.up = true
	p.row.ID, p.row.Session = w.id(), w.id()
	life := p.life
	w.ask(&engine.Command{Register: &engine.Register{Worker: p.row}}, func(a *engine.Answer, err error) {
		switch {
		case life != p.life:
			return
		case err != nil:
			w.result.Counters["registrations_refused"]++
			w.after(time.Second, func() {
				if life == p.life {
					w.start(p)
				}
			})
			return
		}
		p.row = *a.Worker
		w.after(latency, func() { w.claim(p, life) })
		w.after(p.beat(), func() { w.beat(p, life) })
	})
}

// lost says that an answer does not arrive.
func (w *World) lost() bool {
	n := w.scenario.Faults.LostAnswers
	return n > 0 && w.rng.IntN(100) < n
}

// claim asks for as much as the process has room for, once at a time.
func (w *World) claim(p *process, life int) {
	room := p.room()
	if life != p.life || p.claiming || room == 0 {
		return
	}
	p.claiming = true
	claim := &engine.Claim{Worker: p.row.ID, Session: p.row.Session, Most: room, Until: w.now.Add(max(patience, 2*p.beat()))}
	w.ask(&engine.Command{Claim: claim}, func(a *engine.Answer, err error) {
		switch lost := w.lost(); {
		case life != p.life:
			return
		case lost || err != nil:
			w.result.Counters["claims_lost"]++
			w.after(time.Second, func() { p.claiming = p.claiming && life != p.life; w.claim(p, life) })
			if models.CodeOf(err) == models.SessionReplaced {
				w.die(p, 0)
			}
			return
		}
		p.claiming = false
		for _, l := range a.Claimed.Leases {
			w.work(p, life, l)
		}
		w.after(latency, func() { w.claim(p, life) })
	})
}

// room is how many more tasks the process takes; slots may be per kind, and then the engine counts.
func (p *process) room() int32 {
	slots := p.row.Slots
	if len(p.row.KindSlots) > 0 {
		slots = 0
		for _, n := range p.row.KindSlots { // any order: a sum
			slots += n
		}
	}
	return max(0, slots-int32(len(p.leases)))
}

// work runs a task to its end.
func (w *World) work(p *process, life int, l engine.Lease) {
	j := w.jobs[l.Row.ID]
	a := &attempt{job: j, ref: models.TaskRef{Env: l.Row.Env, ID: l.Row.ID}, token: l.Row.Token}
	p.leases = append(p.leases, a)
	fails := w.fails(j, l.Row.Attempt)
	w.pays(j)
	w.after(j.run, func() {
		if life != p.life || a.over {
			return
		}
		a.result = engine.Result{Token: a.token, Task: a.ref, Outcome: models.AttemptSucceeded, Result: []byte(`{}`), Usage: j.bill()}
		if fails {
			a.result.Outcome, a.result.Result = models.AttemptFailed, nil
			a.result.Error = &models.TaskError{Class: "internal", Message: "it broke"}
		}
		w.report(p, life, a)
	})
}

// report tells how an attempt ended until it is heard, and asks for the next one in the same breath.
func (w *World) report(p *process, life int, a *attempt) {
	if life != p.life || a.over {
		return
	}
	settle := &engine.Settle{Worker: p.row.ID, Session: p.row.Session, Results: []engine.Result{a.result}}
	w.ask(&engine.Command{Settle: settle}, func(answer *engine.Answer, err error) {
		if err == nil && answer.Settled[0].Accepted {
			w.accepted(a)
		}
		switch lost := w.lost(); {
		case life != p.life:
		case err != nil || lost:
			w.after(time.Second, func() { w.report(p, life, a) })
		default:
			if !answer.Settled[0].Accepted {
				w.result.Counters["results_refused"]++
			}
			p.drop(a)
			w.claim(p, life)
		}
	})
}

func (p *process) drop(a *attempt) {
	a.over = true
	for i := range p.leases {
		if p.leases[i] == a {
			p.leases = append(p.leases[:i], p.leases[i+1:]...)
			return
		}
	}
}

// beat says that the process lives and works on what it holds.
func (w *World) beat(p *process, life int) {
	if life != p.life {
		return
	}
	message := &engine.Heartbeat{Worker: p.row.ID, Session: p.row.Session, All: true}
	for _, a := range p.leases {
		message.Leases = append(message.Leases, engine.Beat{Token: a.token, Task: a.ref})
	}
	held := append([]*attempt(nil), p.leases...)
	w.after(p.beat(), func() { w.beat(p, life) })
	w.ask(&engine.Command{Heartbeat: message}, func(answer *engine.Answer, err error) {
		switch {
		case life != p.life || w.lost():
			return
		case models.CodeOf(err) == models.SessionReplaced || models.CodeOf(err) == models.NotFound:
			w.die(p, 0) // it begins anew
			return
		case err != nil:
			return
		}
		for i, b := range answer.Beaten.Leases {
			if !b.OK {
				w.result.Counters["leases_found_lost"]++
				p.drop(held[i])
			}
		}
		w.claim(p, life)
	})
}

// troubles puts the deaths of processes on the agenda, at random moments.
func (w *World) troubles() {
	every := w.scenario.Faults.CrashEvery
	if every == 0 || len(w.fleet) == 0 {
		return
	}
	next := time.Duration(-math.Log(1-w.rng.Float64()) * float64(every))
	w.after(next, func() {
		if p := w.fleet[w.rng.IntN(len(w.fleet))]; p.up {
			w.result.Counters["crashes"]++
			w.note("w%d dies with %d leases", p.n, len(p.leases))
			w.die(p, w.scenario.Faults.DownFor)
		}
		w.troubles()
	})
}

// die ends a process without a word; it begins anew after a while.
func (w *World) die(p *process, down time.Duration) {
	p.life++
	p.up, p.claiming, p.leases = false, false, nil
	life := p.life
	w.after(max(down, latency), func() {
		if life == p.life {
			w.start(p)
		}
	})
}

// retire ends a process for good: its leases go back at once.
func (w *World) retire(p *process) {
	if !p.up {
		p.life++ // it does not begin anew
		return
	}
	retire := &engine.Retire{Worker: p.row.ID, Session: p.row.Session, Gone: true}
	p.life++
	p.up, p.claiming, p.leases = false, false, nil
	w.ask(&engine.Command{Retire: retire}, func(*engine.Answer, error) {})
}
