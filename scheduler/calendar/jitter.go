package calendar

import (
	"hash/fnv"
	"strconv"
	"time"
)

// Jitter delays the work of an occurrence by a part of the given seconds that depends on schedule and occurrence alone:
// the same after every restart and on every replica, and spread evenly over schedules.
func Jitter(scheduleID string, occurrence time.Time, most int) time.Duration {
	if most <= 0 {
		return 0
	}
	hash := fnv.New64a()
	hash.Write([]byte(scheduleID))
	hash.Write(strconv.AppendInt([]byte{0}, occurrence.UnixMilli(), 10))
	mixed := hash.Sum64() // the last bytes hardly reach the upper bits by themselves
	mixed = (mixed ^ mixed>>33) * 0xff51afd7ed558ccd
	mixed = (mixed ^ mixed>>33) * 0xc4ceb9fe1a85ec53
	mixed ^= mixed >> 33
	return time.Duration(mixed%(uint64(most)*1000+1)) * time.Millisecond
}
