package calendar

import (
	"math/bits"
	"time"

	"nightshift/models"
)

// After 28 years without a leap day left out every date has met every weekday.
const (
	cycleBegin = 2001
	cycleYears = 28
	cycleDays  = cycleYears*365 + cycleYears/4
)

// fires tells whether any day of any year matches.
func (c *cron) fires() bool {
	for month := range cycleYears * 12 {
		if c.days(cycleBegin+month/12, time.Month(month%12+1)) != 0 {
			return true
		}
	}
	return false
}

// Period is the mean time between occurrences on a clock without changes, 0 for a rule that fires once.
func (r *Rule) Period() time.Duration {
	if r.expression == "" {
		return r.every
	}
	count := 0
	for month := range cycleYears * 12 {
		count += bits.OnesCount64(r.days(cycleBegin+month/12, time.Month(month%12+1)))
	}
	count *= bits.OnesCount64(r.hour) * bits.OnesCount64(r.minute) * bits.OnesCount64(r.second)
	return cycleDays * day * time.Second / time.Duration(count)
}

// Shortest is the least time between two occurrences on a clock without changes, 0 for a rule that fires once. What clock
// changes push together is not counted: it is no sign of a rule that fires too often.
func (r *Rule) Shortest() time.Duration {
	if r.expression == "" {
		return r.every
	}
	first, last, least := r.clock(0), 0, day
	for at := first; at >= 0 && least > 1; {
		next := -1
		if at+1 < day {
			next = r.clock(at + 1)
		}
		if next >= 0 {
			least = min(least, next-at)
		} else {
			last = at
		}
		at = next
	}
	if least > 1 {
		if days := r.closestDays(); days > 1 {
			if last == first {
				return time.Duration(days*day) * time.Second
			}
		} else {
			least = min(least, first+day-last)
		}
	}
	return time.Duration(least) * time.Second
}

// closestDays is the least number of days between two that match.
func (r *Rule) closestDays() int {
	least, before := cycleDays, int64(-cycleDays)
	for month := range cycleYears * 12 {
		year, month := cycleBegin+month/12, time.Month(month%12+1)
		first := dayNumber(year, month, 1)
		for set := r.days(year, month); set != 0 && least > 1; set &= set - 1 {
			number := first + int64(bits.TrailingZeros64(set)) - 1
			least, before = min(least, int(number-before)), number
		}
	}
	return least
}

// Check refuses a rule that has no occurrence after a moment, or two closer than a tenant may have them.
func (r *Rule) Check(from time.Time, p Policy, least time.Duration) error {
	if err := p.Check(); err != nil {
		return err
	}
	if _, _, ok := r.Next(from, p); !ok {
		switch {
		case r.expression != "":
			return models.Errorf(models.InvalidSchedule, "expression %q never fires: there is no occurrence within 40 years", r.expression)
		case r.every > 0:
			return models.Errorf(models.InvalidSchedule, "the interval never fires: there is no occurrence within 40 years")
		case r.anchor.After(from):
			return models.Errorf(models.InvalidSchedule, "run_at %s is more than 40 years away", r.anchor.UTC().Format(time.RFC3339))
		}
		return models.Errorf(models.InvalidSchedule, "run_at %s has passed", r.anchor.UTC().Format(time.RFC3339))
	}
	return r.TooOften(least)
}

// TooOften refuses a rule of which two occurrences lie closer than they may, with the nearest valid form where there is one.
func (r *Rule) TooOften(least time.Duration) error {
	shortest := r.Shortest()
	if shortest == 0 || shortest >= least {
		return nil
	}
	if r.expression == "" {
		return models.Errorf(models.InvalidSchedule, "every_seconds %d is more often than the %d s allowed; the nearest valid form is %d", r.seconds(), seconds(least), seconds(least))
	}
	return refuse(r.expression, "fires after "+spoken(shortest)+", and the least allowed is "+spoken(least), r.nearestEvery(least))
}

// seconds are whole ones, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
