package engine

import (
	"encoding/json"

	"nightshift/models"
)

// tally is what is counted of tasks, by kind and type.
type tally uint8

const (
	tallySubmitted tally = iota
	tallyStarted
	tallySucceeded
	tallyFailed
	tallyRetried
	tallyDeadLettered
	tallyExpired
	tallyCancelled
	tallySkipped
	tallies
)

// tallyOf is the tally of an end.
func tallyOf(to models.State) tally {
	switch to {
	case models.Succeeded:
		return tallySucceeded
	case models.Failed:
		return tallyFailed
	case models.DeadLetter:
		return tallyDeadLettered
	case models.Expired:
		return tallyExpired
	case models.Cancelled:
		return tallyCancelled
	}
	return tallySkipped
}

// cause is why a lease ended without its worker's word.
type cause uint8

const (
	lostSilent       cause = iota // no beat came until the lease ended
	lostTimedOut                  // it ran into its hard timeout
	lostNeverArrived              // its worker never listed it
	lostUndelivered               // the replica could not hand it over
	lostReplaced                  // its worker registered again without it
	lostWorkerGone                // its worker was removed
	causes
)

var causeNames = [causes]string{"silent", "timed_out", "never_arrived", "undelivered", "replaced", "worker_gone"}

// notes are what a batch would count. They enter the counters when it is committed: one that never was counts nothing.
type notes struct {
	steps []step
	runs  []run
	lost  [causes]int64

	outcomes map[string]int64 // of occurrences
	late     int64
	messages [2]messageCounts // by source
}

type step struct {
	what  tally
	kind  models.KindName
	class int32
	wait  float64 // from ready to its first start, in seconds; below zero: not that
}

// run is one attempt that ended, or usage that came late.
type run struct {
	kind    models.KindName
	seconds float64 // below zero: it was counted before
	model   string
	usage   json.RawMessage
	told    int64 // that it was said to cost, in millionths of a dollar
}

// note counts one for a task as it stands.
func (e *Engine) note(what tally, row *models.Task) {
	s := step{what: what, kind: models.Batch, class: row.Class, wait: -1}
	if lane := e.laneOf(row); lane != nil {
		s.kind = lane.Kind
	}
	if what == tallyStarted && row.Attempt == 1 {
		s.wait = e.now.Sub(row.ReadyAt).Seconds()
	}
	e.b.notes.steps = append(e.b.notes.steps, s)
}

// noteRun counts an attempt that ended, and what it was said to cost.
func (e *Engine) noteRun(a *models.Attempt, kind models.KindName, told int64) {
	r := run{kind: kind, seconds: a.FinishedAt.Sub(a.StartedAt).Seconds(), model: a.Model, usage: a.Usage, told: max(0, told)}
	e.b.notes.runs = append(e.b.notes.runs, r)
	if a.Outcome == models.AttemptTimedOut {
		e.b.notes.lost[lostTimedOut]++
	}
}

// noteLate counts usage that came after its lease was lost.
func (e *Engine) noteLate(usage json.RawMessage) {
	e.b.notes.runs = append(e.b.notes.runs, run{seconds: -1, usage: usage})
}

// counters are what this brain has counted since it began: a rebuild keeps them, another brain starts at zero. They are
// figures for people, never read by a decision.
type counters struct {
	types   busiest[typeCounts]
	byClass map[int32]*named[typeCounts]
	models  busiest[modelUse]
	totals  [tallies]int64
	lost    [causes]int64
	waits   [4]Histogram
	runs    [4]Histogram

	schedules scheduleCounts
}

type typeCounts [4][tallies]int64

type modelUse struct {
	in, out, cached int64
	usd             float64
	told            int64
}

// mostNames is how many types, and how many models, are shown under their own names.
const mostNames = 200

func newCounters() *counters {
	c := &counters{
		types: newBusiest[typeCounts](mostNames), byClass: map[int32]*named[typeCounts]{}, models: newBusiest[modelUse](mostNames), schedules: scheduleCounts{outcomes: map[string]int64{}},
	}
	for k := range c.waits {
		c.waits[k] = histogram(.005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)
		c.runs[k] = histogram(.01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400)
	}
	return c
}

// take enters the notes of a committed batch.
func (c *counters) take(n *notes, classes map[int32]*models.Class) {
	for i := range n.steps {
		s := &n.steps[i]
		c.totals[s.what]++
		c.types.at(c.typeOf(s.class, classes))[s.kind][s.what]++
		if s.wait >= 0 {
			c.waits[s.kind].observe(s.wait)
		}
	}
	for i := range n.runs {
		r := &n.runs[i]
		if r.seconds >= 0 {
			c.runs[r.kind].observe(r.seconds)
		}
		if len(r.usage) > 0 || r.told > 0 {
			c.use(r)
		}
	}
	for i, lost := range n.lost {
		c.lost[i] += lost
	}
	c.schedules.take(n)
}

func (c *counters) typeOf(class int32, classes map[int32]*models.Class) *named[typeCounts] {
	if t := c.byClass[class]; t != nil {
		return t
	}
	name := otherName
	if row := classes[class]; row != nil {
		name = row.Type
	}
	t := c.types.of(name)
	c.byClass[class] = t
	return t
}

// use books reported usage under the model that it names, else the one that was asked for.
func (c *counters) use(r *run) {
	var u struct {
		Model   string  `json:"model"`
		In      int64   `json:"tokens_in"`
		Out     int64   `json:"tokens_out"`
		Cached  int64   `json:"tokens_cached"`
		CostUSD float64 `json:"cost_usd"`
	}
	if len(r.usage) > 0 && json.Unmarshal(r.usage, &u) != nil || r.told == 0 && u.In == 0 && u.Out == 0 && u.Cached == 0 && u.CostUSD == 0 {
		return // the edge has checked it: what is not readable here is not ours to refuse
	}
	name := u.Model
	if name == "" {
		name = r.model
	}
	if name == "" {
		name = "none"
	}
	m := c.models.at(c.models.of(name))
	m.in, m.out, m.cached, m.usd, m.told = m.in+u.In, m.out+u.Out, m.cached+u.Cached, m.usd+u.CostUSD, m.told+r.told
}

// show writes the counters into the figures, all of it copies.
func (c *counters) show(s *Stats, now models.Instant) {
	if c.types.rank(now) {
		clear(c.byClass) // it may hold what was forgotten
	}
	c.models.rank(now)
	for t, name := range [tallies]string{"submitted", "started", "succeeded", "failed", "retried", "dead_lettered", "expired", "cancelled", "skipped"} {
		s.Counters[name] = c.totals[t]
	}
	s.Decisions = c.totals[tallyStarted]
	s.LeasesLost = map[string]int64{}
	for i, name := range causeNames {
		s.LeasesLost[name] = c.lost[i]
	}
	c.schedules.show(s)
	c.types.each(func(name string, own *typeCounts) {
		for k := range own {
			if n := own[k]; n != [tallies]int64{} {
				s.Types = append(s.Types, TypeCounts{
					Kind: models.KindName(k).String(), Type: name, Submitted: n[tallySubmitted], Started: n[tallyStarted], Succeeded: n[tallySucceeded],
					Failed: n[tallyFailed], Retried: n[tallyRetried], DeadLettered: n[tallyDeadLettered], Expired: n[tallyExpired],
					Cancelled: n[tallyCancelled], Skipped: n[tallySkipped],
				})
			}
		}
	})
	c.models.each(func(name string, own *modelUse) {
		if *own != (modelUse{}) {
			s.Models = append(s.Models, ModelUse{Model: name, TokensIn: own.in, TokensOut: own.out, TokensCached: own.cached, CostUSD: own.usd, EstimatedUSD: float64(own.told) / 1e6})
		}
	})
}
