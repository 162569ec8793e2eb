package elastic

import (
	"math"

	"nightshift/models"
)

const (
	// Every is how often a pool is looked at.
	Every = 5_000_000
	// Dwell is how long more room must have been possible before there is more.
	Dwell = 60_000_000
	// RuntimeShare is which share of the work that yields ends within the run time it is judged by, and Ahead how much
	// farther than that the forecast is looked at.
	RuntimeShare = 0.7
	Ahead        = 1.3

	headroom = 0.1   // of the capacity, kept free beside what is needed
	rising   = 15.0  // seconds in which the mean follows a demand that grows
	falling  = 150.0 // and one that shrinks
	nothing  = 0.01  // slots: less than that is no demand

	trimEvery = 15_000_000 // the least time between two cuts
	trimBy    = 0.9        // that a cut leaves
	trimLeast = 0.4
	trimBack  = 0.01 // that a look without a late task gives back
)

// Unheld is the room where nothing is held back.
const Unheld = math.MaxInt32

// patience is how long protected work of a kind may wait, in seconds.
var patience = [...]float64{models.Realtime: 2, models.IO: 10, models.Compute: 60, models.Batch: 600}

// Patience is how long protected work of a kind may wait for a slot, in seconds.
func Patience(kind models.KindName) float64 { return patience[kind] }

// Seen is what a look at a pool finds.
type Seen struct {
	At       models.Instant
	Capacity float64 // slots that both the work that yields and what it yields to could take
	Busy     float64 // of them, what protected work took in the mean since the last look
	Waiting  float64 // protected tasks that stand ready and could take one
	Peak     float64 // the most of them that is foreseen for protected work until what starts now has ended
	Runtime  float64 // seconds in which RuntimeShare of the work that yields ends
	Running  float64 // tasks of the work that yields
	Late     float64 // seconds that the first protected task in line has waited
	Patience float64 // seconds that it may
}

// Hold is what is remembered of a pool from look to look.
type Hold struct {
	Room   int32   // how many tasks of the work that yields may run at once
	Demand float64 // slots that protected work needs in the moving mean
	Need   float64 // that or what is foreseen, whichever is more
	Trim   float64 // what is left of the room after cuts, 1: all

	at, cut models.Instant
	higher  models.Instant // since when more room was possible, 0: it was not at the last look
	least   int32          // that was possible since
}

// New is a hold that holds nothing back.
func New() Hold { return Hold{Room: Unheld, Trim: 1} }

// Restored is a hold of which only the room is known: there is no more of it before a dwell has passed.
func Restored(room int32) Hold { return Hold{Room: max(1, room), Trim: 1} }

// Look takes in what a look at the pool found, and says whether the room has changed.
func (h *Hold) Look(s Seen) bool {
	before := h.Room
	h.follow(&s)
	h.Need = min(max(h.Demand, s.Peak), s.Capacity)
	h.guard(&s)
	h.settle(s.At, h.possible(&s))
	h.at = s.At
	return h.Room != before
}

// follow moves the mean of the demand towards what it is now, up faster than down.
func (h *Hold) follow(s *Seen) {
	now := min(max(0, s.Busy)+max(0, s.Waiting), s.Capacity)
	if h.at == 0 {
		h.Demand = now
		return
	}
	span := rising
	if now < h.Demand {
		span = falling
	}
	h.Demand += (now - h.Demand) * (1 - math.Exp(-max(0, s.At.Sub(h.at).Seconds())/span))
	if h.Demand < nothing {
		h.Demand = 0
	}
}

// guard cuts the room while protected work waits too long beside work that yields, and gives it back slowly.
func (h *Hold) guard(s *Seen) {
	switch {
	case !s.late():
		h.Trim = min(1, h.Trim+trimBack)
	case s.At-h.cut >= trimEvery:
		h.Trim, h.cut = max(trimLeast, h.Trim*trimBy), s.At
	}
}

func (s *Seen) late() bool { return s.Late > s.Patience && s.Running > 1 }

// possible is the room by what is known now. Where slots free themselves faster than protected work becomes impatient,
// going first is enough for it and nothing is held back.
func (h *Hold) possible(s *Seen) int32 {
	if h.Need < nothing || s.Capacity < 1 || !s.late() && h.Trim == 1 && h.Need*s.Runtime <= s.Patience*s.Capacity {
		return Unheld
	}
	return Room(s.Capacity, h.Need, h.Trim)
}

// Room is how many slots of a capacity are left for work that yields where other work needs so many, of which trim is given.
// A tenth of the capacity stays free beside what is needed, where that much is needed at all.
func Room(capacity, need, trim float64) int32 {
	left := math.Round(trim * (capacity - need - min(headroom*capacity, need)))
	if left >= math.Round(capacity) {
		return Unheld
	}
	return int32(max(1, left))
}

// settle lowers the room at once, and raises it to what was possible all through a dwell.
func (h *Hold) settle(at models.Instant, possible int32) {
	switch {
	case possible <= h.Room:
		h.Room, h.higher = possible, 0
	case h.higher == 0:
		h.higher, h.least = at, possible
	default:
		h.least = min(h.least, possible)
		if at-h.higher >= Dwell {
			h.Room, h.higher = h.least, 0
		}
	}
}

// Holds says whether anything is held back.
func (h *Hold) Holds() bool { return h.Room != Unheld }

// near is how long before its moment a held task is let go.
const near = Every

// dueBefore is how long before its latest start a held task is let go: it still has to find a slot.
const dueBefore = 300_000_000

// Until is the latest moment at which a task that is held since then is let go: most seconds later, 0: they are no bound,
// or shortly before its latest start, 0: it has none. 0: nothing but the room lets it go.
func Until(since models.Instant, most int32, latestStart models.Instant) models.Instant {
	until := models.Instant(0)
	if most > 0 {
		until = since + models.Instant(most)*1_000_000
	}
	if latestStart > 0 && (until == 0 || latestStart-dueBefore < until) {
		until = max(since, latestStart-dueBefore)
	}
	return until
}

// Leaves says whether a task with that bound is to be let go, so that it has left by its moment.
func Leaves(until, now models.Instant) bool { return until != 0 && now+near >= until }
