package models

import "time"

// Instant is a moment in microseconds since 1970 UTC, on the database's clock; 0 means none.
type Instant int64

// Forever stands for a moment that does not come.
const Forever Instant = 1<<62 - 1

// InstantOf is t to the microsecond; the zero time gives 0.
func InstantOf(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMicro())
}

// NamedInstant is t as somebody names it. It is never "none": the beginning of 1970 stands one microsecond later.
func NamedInstant(t time.Time) Instant {
	if i := InstantOf(t); i != 0 {
		return i
	}
	return 1
}

// Time is the moment as a UTC time; the zero time for 0.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}

// Add is the moment d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d/time.Microsecond) }

// Sub is the time from other to i.
func (i Instant) Sub(other Instant) time.Duration { return time.Duration(i-other) * time.Microsecond }

// Seconds makes a duration of whole seconds.
func Seconds(n int) time.Duration { return time.Duration(n) * time.Second }
