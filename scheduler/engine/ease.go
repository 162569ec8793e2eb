package engine

import (
	"math/bits"

	"nightshift/models"
)

// A batch that takes too long is not poison, only too much: the next one takes half as much of the engine's own work, down
// to a row of each sort. Sixteen batches in a row that were committed take one halving back.
const easedFor = 16

// A schedule of which a single occurrence fails that often, while batches without it are committed, rests for a minute.
const (
	strikesOut = 3
	restAside  = 60_000_000
)

// ease is how little of its own work the engine takes in a batch, and which schedule it suspects.
type ease struct {
	halvings int
	worked   int                          // batches committed in a row since the last halving or doubling
	took     models.ID                    // the only schedule of a batch that takes the least; zero: none
	struck   models.ID                    // the one that failed alone last
	strikes  int                          // how often
	probing  bool                         // the next batch goes without schedules: does it fail as well?
	alone    bool                         // one command is tried: none of the engine's own work is to be taken for its fault
	aside    map[models.ID]models.Instant // schedules that rest, until when
	told     []models.TaskRef             // of those, what SetAside has not told yet
}

// portion is how many rows of a sort of its own work a batch takes.
func (e *Engine) portion() int { return e.eased(e.cfg.Slice) }

func (e *Engine) eased(most int) int { return max(1, most>>e.ease.halvings) }

// Least says that a batch takes as little of the engine's own work as it can.
func (e *Engine) Least() bool { return e.ease.halvings >= bits.Len(uint(e.cfg.Slice)) }

// Alone lets the engine leave its own work where it is, for as long as commands are tried one by one.
func (e *Engine) Alone(on bool) { e.ease.alone = on }

// Failed says that a batch could not be committed: for lack of time, or (bad) because of what it writes. It is false when
// taking less would not help. After a failure for lack of time a batch takes half as much; what can't be written at all
// is looked for at once with the least.
func (e *Engine) Failed(bad bool) bool {
	x := &e.ease
	x.worked = 0
	switch {
	case !e.Least() && bad:
		x.halvings = bits.Len(uint(e.cfg.Slice))
	case !e.Least():
		x.halvings++
	case x.probing: // it fails without a schedule too
		x.probing, x.strikes = false, 0
		return false
	case x.took.IsZero():
		return false
	default:
		if x.struck != x.took {
			x.struck, x.strikes = x.took, 0
		}
		if x.strikes++; bad {
			x.strikes = strikesOut
		}
		x.probing = true
	}
	return true
}

// worked takes note of a batch that was committed.
func (e *Engine) worked() {
	x := &e.ease
	switch {
	case x.alone || e.b.plan.Empty():
		return // it proves nothing
	case x.probing:
		if x.probing = false; x.strikes >= strikesOut {
			e.setAside(x.struck)
		}
	case !x.took.IsZero() && x.took == x.struck:
		x.struck, x.strikes = models.ID{}, 0
	}
	if x.worked++; x.worked >= easedFor && x.halvings > 0 {
		x.halvings, x.worked = x.halvings-1, 0
	}
}

// setAside lets a schedule rest. What is due of it is judged by its misfire policy afterwards.
func (e *Engine) setAside(id models.ID) {
	x := &e.ease
	x.struck, x.strikes = models.ID{}, 0
	s := e.plans.all[id]
	if s == nil {
		return
	}
	if x.aside == nil {
		x.aside = map[models.ID]models.Instant{}
	}
	x.aside[id] = e.now + restAside
	x.told = append(x.told, s.ref())
	e.appoint(s)
}

// restsUntil is when a schedule that was set aside is looked at again, 0 when it is not.
func (e *Engine) restsUntil(id models.ID) models.Instant {
	until := e.ease.aside[id]
	if until != 0 && until <= e.now {
		delete(e.ease.aside, id)
		return 0
	}
	return until
}

// SetAside are the schedules set aside since it was last asked.
func (e *Engine) SetAside() []models.TaskRef {
	told := e.ease.told
	e.ease.told = nil
	return told
}
