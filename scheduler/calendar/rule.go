package calendar

import (
	"time"

	"nightshift/models"
)

// Gap says what becomes of a time of day that the clock jumps over.
type Gap string

// Overlap says which pass counts when the clock shows a time of day twice.
type Overlap string

// The policies for clock changes; the empty ones are Shift and First.
const (
	Shift Gap = "shift"
	Skip  Gap = "skip"

	First  Overlap = "first"
	Second Overlap = "second"
	Both   Overlap = "both"
)

// Policy is what to do at clock changes.
type Policy struct {
	Gap     Gap
	Overlap Overlap
}

// Check refuses unknown words.
func (p Policy) Check() error {
	switch p.Gap {
	case "", Shift, Skip:
	default:
		return models.Errorf(models.InvalidSchedule, "dst_gap %.40q is neither shift nor skip", string(p.Gap))
	}
	switch p.Overlap {
	case "", First, Second, Both:
	default:
		return models.Errorf(models.InvalidSchedule, "dst_overlap %.40q is none of first, second, both", string(p.Overlap))
	}
	return nil
}

// Note says that a clock change had a part in an occurrence.
type Note string

// The notes: the time of day was jumped over and this is the jump, or it comes twice and this is one of the passes.
const (
	NoteGap     Note = "dst_gap"
	NoteOverlap Note = "dst_overlap"
)

const (
	day     = 24 * 60 * 60
	horizon = 40 * 365.25 * day                    // seconds without an occurrence after which a rule counts as ended
	lastDay = 253402300799                         // 9999-12-31T23:59:59Z, the last moment that RFC 3339 can write
	longest = time.Duration(horizon) * time.Second // the longest interval
)

// Rule is one way of saying when. It does not change once made, so many may use it at once.
type Rule struct {
	expression string // empty: an interval or a single moment
	zone       *time.Location

	cron

	anchor time.Time     // interval: counted from here; once: the moment
	every  time.Duration // 0 for once
}

// Every is a fixed cadence: anchor + n × every for n ≥ 1, however late its runs are. The zone serves local dates alone.
func Every(anchor time.Time, every time.Duration, zone string) (*Rule, error) {
	location, err := Zone(zone)
	if err != nil {
		return nil, err
	}
	switch {
	case every < time.Second:
		return nil, models.Errorf(models.InvalidSchedule, "every_seconds is less than 1: the nearest valid form is 1")
	case every%time.Second != 0:
		return nil, models.Errorf(models.InvalidSchedule, "every_seconds is no whole number: the nearest valid form is %d", every/time.Second)
	case every > longest:
		return nil, models.Errorf(models.InvalidSchedule, "every_seconds is more than 40 years, so it never fires: the nearest valid form is %d", longest/time.Second)
	}
	return &Rule{zone: location, anchor: anchor.In(location), every: every}, nil
}

// Once is a single moment.
func Once(at time.Time, zone string) (*Rule, error) {
	location, err := Zone(zone)
	if err != nil {
		return nil, err
	}
	if at.IsZero() || at.Unix() > lastDay {
		return nil, models.Errorf(models.InvalidSchedule, "run_at is no moment before the year 10000")
	}
	return &Rule{zone: location, anchor: at.In(location)}, nil
}

// Zone is where the rule's wall clock hangs.
func (r *Rule) Zone() *time.Location { return r.zone }

// Expression is what the rule was parsed from, empty for an interval or a single moment.
func (r *Rule) Expression() string { return r.expression }

// Next is the first occurrence strictly after a moment; false when none comes within 40 years.
func (r *Rule) Next(after time.Time, p Policy) (time.Time, Note, bool) {
	if r.expression != "" {
		at, note, ok := r.nextWall(after.Unix(), p)
		if !ok {
			return time.Time{}, "", false
		}
		return time.Unix(at, 0).In(r.zone), note, true
	}
	at := r.anchor
	if r.every > 0 {
		at = r.beat(max(1, (after.Unix()-r.anchor.Unix())/r.seconds()))
		for !at.After(after) {
			at = at.Add(r.every)
		}
	}
	if !at.After(after) || at.Unix() > lastDay || at.Unix()-after.Unix() > horizon {
		return time.Time{}, "", false
	}
	return at, "", true
}

// Prev is the last occurrence strictly before a moment; false when none came within the 40 years before.
func (r *Rule) Prev(before time.Time, p Policy) (time.Time, Note, bool) {
	if r.expression != "" {
		at, note, ok := r.prevWall(before, p)
		if !ok {
			return time.Time{}, "", false
		}
		return time.Unix(at, 0).In(r.zone), note, true
	}
	at := r.anchor
	if r.every > 0 {
		n := (before.Unix()-r.anchor.Unix())/r.seconds() + 1
		for at = r.beat(n); !at.Before(before); at = r.beat(n) {
			n--
		}
		if n < 1 {
			return time.Time{}, "", false
		}
	}
	if !at.Before(before) || before.Unix()-at.Unix() > horizon {
		return time.Time{}, "", false
	}
	return at, "", true
}

func (r *Rule) seconds() int64 { return int64(r.every / time.Second) }

func (r *Rule) beat(n int64) time.Time {
	return time.Unix(r.anchor.Unix()+n*r.seconds(), int64(r.anchor.Nanosecond())).In(r.zone)
}
