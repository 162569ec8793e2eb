package calendar

import (
	"math/bits"
	"time"
)

// cron is what an expression asks of a wall clock: sets of seconds, minutes, hours, days of the month, months and weekdays
// as bits, and the days that depend on the month.
type cron struct {
	second, minute, hour, monthDay, month, weekday uint64

	anyMonthDay, anyWeekday bool // the field begins with *
	realTime                bool // the hour field does

	fromLast    uint64   // L-n: bit n, n days before the last of the month
	lastWorkday bool     // LW
	nearest     uint64   // nW: bit n, the workday nearest to day n
	nth         [7]uint8 // per weekday: bit 1–5 for d#n, bit 0 for the last
}

// dayNumber counts days from 1970-01-01. Months beyond 1–12 run on into other years.
func dayNumber(year int, month time.Month, d int) int64 {
	return time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Unix() / day
}

func monthLength(year int, month time.Month) int {
	switch month {
	case time.April, time.June, time.September, time.November:
		return 30
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// floor divides towards the past.
func floor(a, b int64) int64 {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}

// days are the matching days of a month as bits 1–31.
func (c *cron) days(year int, month time.Month) uint64 {
	if c.month>>month&1 == 0 {
		return 0
	}
	last := monthLength(year, month)
	first := int(((dayNumber(year, month, 1)+4)%7 + 7) % 7) // 1970-01-01 was a Thursday
	byDate, byWeekday := c.monthDay, uint64(0)
	if c.fromLast != 0 || c.nearest != 0 || c.lastWorkday {
		byDate |= c.movableDays(first, last)
	}
	for weekday := range 7 {
		begin := 1 + (weekday-first+7)%7
		if c.weekday>>weekday&1 != 0 {
			byWeekday |= 0x10204081 << begin // every seventh day
		}
		if nth := c.nth[weekday]; nth != 0 {
			for d, n := begin, 1; d <= last; d, n = d+7, n+1 {
				if nth>>n&1 != 0 || nth&1 != 0 && d+7 > last {
					byWeekday |= 1 << d
				}
			}
		}
	}
	within := uint64(1)<<(last+1) - 2
	if c.anyMonthDay || c.anyWeekday {
		return byDate & byWeekday & within
	}
	return (byDate | byWeekday) & within
}

// movableDays are those counted from the end of the month or moved off a weekend.
func (c *cron) movableDays(first, last int) (set uint64) {
	for n := range last {
		if c.fromLast>>n&1 != 0 {
			set |= 1 << (last - n)
		}
	}
	for n := 1; n <= 31; n++ {
		if c.nearest>>n&1 != 0 {
			set |= 1 << workday(min(n, last), first, last)
		}
	}
	if c.lastWorkday {
		set |= 1 << workday(last, first, last)
	}
	return set
}

// workday is the Monday to Friday nearest to a day without leaving its month.
func workday(d, first, last int) int {
	switch (first + d - 1) % 7 {
	case 6:
		if d == 1 {
			return 3
		}
		return d - 1
	case 0:
		if d == last {
			return d - 2
		}
		return d + 1
	}
	return d
}

// atLeast is the smallest member of a set that is at least from, or -1.
func atLeast(set uint64, from int) int {
	if set >>= from; set == 0 {
		return -1
	}
	return from + bits.TrailingZeros64(set)
}

// clock is the first matching second of a day at or after one, or -1.
func (c *cron) clock(from int) int {
	h, m, s := from/3600, from/60%60, from%60
	hour := atLeast(c.hour, h)
	if hour < 0 {
		return -1
	}
	if hour > h {
		m, s = 0, 0
	}
	minute := atLeast(c.minute, m)
	if minute > m {
		s = 0
	}
	second := atLeast(c.second, s)
	if minute >= 0 && second < 0 { // the next matching minute, from its first second
		minute, second = atLeast(c.minute, minute+1), atLeast(c.second, 0)
	}
	if minute < 0 {
		if hour = atLeast(c.hour, hour+1); hour < 0 {
			return -1
		}
		minute, second = atLeast(c.minute, 0), atLeast(c.second, 0)
	}
	return hour*3600 + minute*60 + second
}

// wall is the first match in [from, end) on a clock without jumps; both count seconds of wall time from 1970.
func (c *cron) wall(from, end int64) (int64, bool) {
	if from >= end {
		return 0, false
	}
	number := floor(from, day)
	second := int(from - number*day)
	year, month, d := time.Unix(number*day, 0).UTC().Date()
	for {
		found := -1
		if d <= 31 {
			found = atLeast(c.days(year, month), d)
		}
		if found < 0 {
			if month++; month > time.December {
				year, month = year+1, time.January
			}
			if d, second = 1, 0; dayNumber(year, month, 1)*day >= end {
				return 0, false
			}
			continue
		}
		if found > d {
			d, second = found, 0
		}
		if clock := c.clock(second); clock >= 0 {
			w := dayNumber(year, month, d)*day + int64(clock)
			return w, w < end
		}
		d, second = d+1, 0
	}
}
