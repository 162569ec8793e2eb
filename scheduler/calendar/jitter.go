package calendar

import (
	"hash/fnv"
	"strconv"
	"time"
)

// Jitter delays the work of an occurrence by a part of the given seconds that depends on schedule and occurrence alone:
// the same after every restart and on every replica, and spread evenly over schedules.
func Jitter(scheduleID string, occurrence time.Time, most int) time.Duration {
	return spread(scheduleID, strconv.AppendInt([]byte{0}, occurrence.UnixMilli(), 10), most)
}

// Place is where in the given seconds a schedule stands that may be moved: the same for each of its occurrences, so that it
// keeps its rhythm, and spread evenly over schedules.
func Place(scheduleID string, most int) time.Duration {
	return spread(scheduleID, []byte{1}, most).Truncate(time.Second)
}

func spread(scheduleID string, of []byte, most int) time.Duration {
	if most <= 0 {
		return 0
	}
	hash := fnv.New64a()
	hash.Write([]byte(scheduleID))
	hash.Write(of)
	mixed := hash.Sum64() // the last bytes hardly reach the upper bits by themselves
	mixed = (mixed ^ mixed>>33) * 0xff51afd7ed558ccd
	mixed = (mixed ^ mixed>>33) * 0xc4ceb9fe1a85ec53
	mixed ^= mixed >> 33
	return time.Duration(mixed%(uint64(most)*1000+1)) * time.Millisecond
}
