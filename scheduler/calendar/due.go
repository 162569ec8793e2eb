package calendar

import (
	"fmt"
	"slices"
	"time"

	"nightshift/models"
)

// Outcome is what became of an occurrence.
type Outcome string

// The outcomes that a run can have.
const (
	Dispatched     Outcome = "dispatched"
	SkippedOverlap Outcome = "skipped_overlap"
	SkippedPaused  Outcome = "skipped_paused"
	Superseded     Outcome = "superseded"
	Misfired       Outcome = "misfired"
	Expired        Outcome = "expired"
	Excluded       Outcome = "excluded"
	Failed         Outcome = "failed"
)

// Missed says what to do with occurrences later than the grace.
type Missed string

// The policies for missed occurrences; the empty one is RunOnce.
const (
	SkipMissed Missed = "skip"
	RunOnce    Missed = "run_once"
	CatchUp    Missed = "catch_up"
)

// Misfire is how late an occurrence may be, and what follows when it is later.
type Misfire struct {
	Policy  Missed
	Grace   time.Duration
	Limit   int           // catch_up: the newest so many of the missed ones run
	Expires time.Duration // later than this nothing runs at all; 0 is never
}

// Check refuses what has no meaning.
func (m Misfire) Check() error {
	switch m.Policy {
	case "", SkipMissed, RunOnce, CatchUp:
	default:
		return models.Errorf(models.InvalidSchedule, "misfire_policy %.40q is none of skip, run_once, catch_up", string(m.Policy))
	}
	switch {
	case m.Grace < 0:
		return models.Errorf(models.InvalidSchedule, "misfire_grace_seconds is less than 0")
	case m.Limit < 0 || m.Limit > mostCaughtUp:
		return models.Errorf(models.InvalidSchedule, "catch_up_limit is not in 0–%d", mostCaughtUp)
	case m.Expires < 0:
		return models.Errorf(models.InvalidSchedule, "expires_in_seconds is less than 0")
	}
	return nil
}

// mostCaughtUp is the highest catch_up_limit: each of them costs a search.
const mostCaughtUp = 1000

// Tick asks what is due: everything after Mark up to and including Now. One that works through a long outage in several
// ticks keeps the Now it began with until nothing is left, so that "the newest" stays the same one throughout.
type Tick struct {
	Mark, Now time.Time
	Misfire   Misfire
	Paused    string // why the schedule stands still, empty when it does not
	Limit     int    // how many decisions at most
}

// Fire is one occurrence and what is to become of it. Those to be dispatched meet the overlap policy next.
type Fire struct {
	Occurrence
	Outcome Outcome
	Cause   string
	Late    time.Duration
}

// Due decides on what is due, oldest first. Mark is where the next tick goes on; more tells that it has work already.
func (t *Timetable) Due(k Tick) (fires []Fire, mark time.Time, more bool) {
	list, more := t.Between(k.Mark, k.Now, max(1, k.Limit))
	if len(list) == 0 {
		return nil, later(k.Mark, k.Now), false
	}
	missedBefore := k.Now.Add(-k.Misfire.Grace) // what is older is missed
	var runsFrom time.Time
	if k.Paused == "" && list[0].At.Before(missedBefore) {
		runsFrom = t.runsFrom(k, missedBefore, list, more)
	}
	fires = make([]Fire, len(list))
	for i, o := range list {
		f := Fire{Occurrence: o, Outcome: Dispatched, Late: k.Now.Sub(o.At)}
		switch missed := o.At.Before(missedBefore); {
		case o.Excluded != "":
			f.Outcome, f.Cause = Excluded, o.Excluded
		case k.Paused != "":
			f.Outcome, f.Cause = SkippedPaused, k.Paused
		case missed && (runsFrom.IsZero() || o.At.Before(runsFrom)):
			f.Outcome, f.Cause = Misfired, k.Misfire.cause(f.Late)
		case k.Misfire.Expires > 0 && f.Late > k.Misfire.Expires:
			f.Outcome, f.Cause = Expired, fmt.Sprintf("%s late, and it expires after %s", rounded(f.Late), spoken(k.Misfire.Expires))
		}
		fires[i] = f
	}
	if more {
		return fires, list[len(list)-1].At, true
	}
	return fires, later(k.Mark, k.Now), false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// runsFrom is the oldest missed occurrence that still runs, or the zero time when none does. It counts back in the list,
// or, where that is not all, in the rule.
func (t *Timetable) runsFrom(k Tick, missedBefore time.Time, list []Occurrence, more bool) (from time.Time) {
	count := 1
	switch k.Misfire.Policy {
	case SkipMissed:
		return time.Time{}
	case CatchUp:
		count = min(k.Misfire.Limit, mostCaughtUp)
	}
	if !more {
		for _, o := range slices.Backward(list) {
			if count > 0 && o.Excluded == "" && o.At.Before(missedBefore) {
				from, count = o.At, count-1
			}
		}
		return from
	}
	for at := missedBefore; count > 0; count-- {
		o, ok := t.PrevRun(at)
		if !ok || !o.At.After(k.Mark) {
			break
		}
		from, at = o.At, o.At
	}
	return from
}

func (m Misfire) cause(late time.Duration) string {
	missed := fmt.Sprintf("%s late, %s is allowed", rounded(late), spoken(m.Grace))
	switch m.Policy {
	case SkipMissed:
		return missed
	case CatchUp:
		return fmt.Sprintf("%s; the newest %d missed ones are caught up", missed, m.Limit)
	}
	return missed + "; the newest missed one runs for all of them"
}

// rounded is a span in words, exact to the second.
func rounded(d time.Duration) string { return spoken(d.Round(time.Second)) }
