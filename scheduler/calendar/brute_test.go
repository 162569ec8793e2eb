package calendar

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	_ "time/tzdata"
)

// wallTime is what a wall clock and a calendar on the wall show.
type wallTime struct {
	year, date, hour, minute int
	month                    time.Month
	weekday                  time.Weekday
	daysLeft                 int // in the month
}

// bruteRules pairs expressions with their meaning, written again by hand.
var bruteRules = []struct {
	expression string
	realTime   bool
	matches    func(w *wallTime) bool
}{
	{"0 0 * * *", false, func(w *wallTime) bool { return w.hour == 0 && w.minute == 0 }},
	{"30 2 * * *", false, func(w *wallTime) bool { return w.hour == 2 && w.minute == 30 }},
	{"15 1,2,3 * * *", false, func(w *wallTime) bool { return w.hour >= 1 && w.hour <= 3 && w.minute == 15 }},
	{"0 0,2,3 * * *", false, func(w *wallTime) bool { return (w.hour == 0 || w.hour == 2 || w.hour == 3) && w.minute == 0 }},
	{"*/20 22-2 * * *", false, func(w *wallTime) bool { return (w.hour >= 22 || w.hour <= 2) && w.minute%20 == 0 }},
	{"45 0-3 * * 1-5", false, func(w *wallTime) bool {
		return w.hour <= 3 && w.minute == 45 && w.weekday >= time.Monday && w.weekday <= time.Friday
	}},
	{"10 2 * * 0#L", false, func(w *wallTime) bool {
		return w.hour == 2 && w.minute == 10 && w.weekday == time.Sunday && w.daysLeft < 7
	}},
	{"59 23 L * *", false, func(w *wallTime) bool { return w.hour == 23 && w.minute == 59 && w.daysLeft == 0 }},
	{"0 8 30 12 *", false, func(w *wallTime) bool {
		return w.hour == 8 && w.minute == 0 && w.date == 30 && w.month == time.December
	}},
	{"30 12 1-7 * sat", false, func(w *wallTime) bool {
		return w.hour == 12 && w.minute == 30 && (w.date <= 7 || w.weekday == time.Saturday)
	}},
	{"*/30 * * * *", true, func(w *wallTime) bool { return w.minute%30 == 0 }},
	{"5 */2 * * *", true, func(w *wallTime) bool { return w.hour%2 == 0 && w.minute == 5 }},
}

var allPolicies = []Policy{{Shift, First}, {Shift, Second}, {Shift, Both}, {Skip, First}, {Skip, Second}, {Skip, Both}}

const (
	bruteWindow = 2 * day // compared on each side of a change
	bruteMargin = 2 * day // walked beyond it, so that what the clock shows elsewhere is known
)

// pass is how often, when first and when last the clock shows a minute, and the jump that swallowed it.
type pass struct {
	count             int
	first, last, jump int64
}

// walked is a minute-by-minute walk over all wall times around a change.
type walked struct {
	low    int64 // the first wall minute in seconds
	passes []pass
}

// walk looks at the zone's clock at each minute; it knows nothing of stretches, bounds or changes.
func walk(zone *time.Location, change int64) walked {
	from, to := change-bruteWindow-bruteMargin, change+bruteWindow+bruteMargin
	wall := func(at int64) int64 {
		_, offset := time.Unix(at, 0).In(zone).Zone()
		return at + int64(offset)
	}
	step := int64(60)
	if wall(from)%30 != 0 || wall(to)%30 != 0 || change%30 != 0 {
		step = 1
	} else if wall(from)%60 != 0 || wall(to)%60 != 0 || change%60 != 0 {
		step = 30
	}
	if change%60 != 0 { // keep the steps on full minutes
		from -= change % 60
	}
	low, high := wall(from)-day-3600, wall(to)+day+3600
	low -= low % 60
	w := walked{low: low, passes: make([]pass, (high-low)/60+1)}
	before := wall(from) - step
	for at := from; at <= to; at += step {
		now := wall(at)
		if now%60 == 0 {
			p := &w.passes[(now-low)/60]
			if p.count == 0 {
				p.first = at
			}
			p.count, p.last = p.count+1, at
		}
		for skipped := before - before%60 + 60; now > before+step && skipped < now; skipped += 60 {
			w.passes[(skipped-low)/60].jump = at
		}
		before = now
	}
	return w
}

type bruteHit struct {
	at   int64
	note Note
}

func (w walked) hits(matching []int32, realTime bool, p Policy, from, to int64) (hits []bruteHit) {
	add := func(at int64, note Note) {
		if at >= from && at <= to {
			hits = append(hits, bruteHit{at, note})
		}
	}
	for _, i := range matching {
		shown := w.passes[i]
		switch {
		case shown.count == 1:
			add(shown.first, "")
		case shown.count == 0:
			if shown.jump != 0 && !realTime && p.Gap == Shift {
				add(shown.jump, NoteGap)
			}
		case realTime:
			add(shown.first, "")
			add(shown.last, "")
		default:
			if p.Overlap != Second {
				add(shown.first, NoteOverlap)
			}
			if p.Overlap != First {
				add(shown.last, NoteOverlap)
			}
		}
	}
	slices.SortFunc(hits, func(a, b bruteHit) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return -strings.Compare(string(a.note), string(b.note)) // of two at once the one with a note stays
	})
	return slices.CompactFunc(hits, func(a, b bruteHit) bool { return a.at == b.at })
}

func compareAround(zone *time.Location, change int64, rules []*Rule) (compared int, err error) {
	w := walk(zone, change)
	matching := make([][]int32, len(bruteRules))
	var shown wallTime
	for i := range w.passes {
		at := time.Unix(w.low+int64(i)*60, 0).UTC()
		if i == 0 || at.Hour() == 0 && at.Minute() == 0 {
			shown.year, shown.month, shown.date = at.Date()
			shown.weekday = at.Weekday()
			shown.daysLeft = time.Date(shown.year, shown.month+1, 0, 0, 0, 0, 0, time.UTC).Day() - shown.date
		}
		shown.hour, shown.minute = at.Hour(), at.Minute()
		for j := range bruteRules {
			if bruteRules[j].matches(&shown) {
				matching[j] = append(matching[j], int32(i))
			}
		}
	}
	from, to := change-bruteWindow, change+bruteWindow
	for j, rule := range rules {
		for _, policy := range allPolicies {
			wanted := w.hits(matching[j], bruteRules[j].realTime, policy, from, to)
			at := time.Unix(from-1, 0)
			for n := 0; ; n++ {
				next, note, ok := rule.Next(at, policy)
				if !ok || next.Unix() > to {
					if n != len(wanted) {
						return compared, fmt.Errorf("%s %q %v around %s: nothing after %s, the walk has %s", zone, rule.expression, policy, time.Unix(change, 0).UTC(), at.In(zone), time.Unix(wanted[n].at, 0).In(zone))
					}
					break
				}
				if n >= len(wanted) || wanted[n].at != next.Unix() || wanted[n].note != note {
					var walk any = "nothing more"
					if n < len(wanted) {
						walk = fmt.Sprint(time.Unix(wanted[n].at, 0).In(zone), " ", wanted[n].note)
					}
					return compared, fmt.Errorf("%s %q %v around %s: after %s comes %s %s, the walk has %v", zone, rule.expression, policy, time.Unix(change, 0).UTC(), at.In(zone), next, note, walk)
				}
				at = next
			}
			compared += len(wanted)
		}
	}
	return compared, nil
}

// changes are the moments from 1970 to 2040 at which a zone's offset changes, found by looking every six hours.
func changes(zone *time.Location) (list []int64) {
	offset := func(at int64) int {
		_, offset := time.Unix(at, 0).In(zone).Zone()
		return offset
	}
	end := time.Date(2041, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for at, before := int64(0), offset(0); at < end; at += 6 * 3600 {
		after := offset(at)
		if before == after {
			continue
		}
		from := at - 6*3600
		list = append(list, from+int64(sort.Search(6*3600, func(n int) bool { return offset(from+int64(n)) != before })))
		before = after
	}
	return list
}

// always walked, whatever the sample: midnight gaps, half hours, skipped days, seconds in offsets, winter as the exception.
var notable = []string{
	"Africa/Cairo", "Africa/Casablanca", "Africa/Monrovia", "America/Asuncion", "America/Havana", "America/New_York", "America/Santiago", "America/Sao_Paulo",
	"America/St_Johns", "Antarctica/Casey", "Antarctica/Troll", "Asia/Beirut", "Asia/Kathmandu", "Asia/Pyongyang", "Asia/Tehran", "Australia/Lord_Howe", "Europe/Dublin",
	"Europe/Paris", "Pacific/Apia", "Pacific/Chatham", "Pacific/Kwajalein",
}

func askedForWhole() bool {
	return strings.Contains(flag.Lookup("test.run").Value.String(), "Brute") && !testing.Short()
}

// The whole comparison runs when it is asked for by name: go test -run Brute -count=1. Otherwise a sample does.
func TestBruteForceAtEveryChangeOfEveryZone(t *testing.T) {
	whole := askedForWhole()
	type place struct {
		zone    string
		changes []int64
	}
	var places []place
	seen := map[string]bool{} // many names are links to one zone
	for i, name := range zoneNames {
		if !whole && i%40 != 0 && !slices.Contains(notable, name) {
			continue
		}
		zone, err := Zone(name)
		if err != nil {
			t.Fatal(err)
		}
		all := changes(zone)
		print := fmt.Sprint(all)
		for _, at := range all {
			_, offset := time.Unix(at, 0).In(zone).Zone()
			print += fmt.Sprint(" ", offset)
		}
		if !seen[print] {
			seen[print] = true
			places = append(places, place{name, all})
		}
	}
	var next, walked, compared atomic.Int64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(places); i = next.Add(1) - 1 {
				rules := make([]*Rule, len(bruteRules))
				for j := range rules {
					var err error
					if rules[j], err = Parse(bruteRules[j].expression, places[i].zone); err != nil {
						t.Error(err)
						return
					}
				}
				for j, change := range places[i].changes {
					if !whole && j%3 != 0 && !slices.Contains(notable, places[i].zone) {
						continue
					}
					n, err := compareAround(rules[0].zone, change, rules)
					if err != nil {
						t.Error(err)
						break
					}
					walked.Add(1)
					compared.Add(int64(n))
				}
			}
		})
	}
	group.Wait()
	t.Logf("%d names, %d different zones, %d changes, %d occurrences compared", len(zoneNames), len(places), walked.Load(), compared.Load())
}

// Beyond the last recorded change, where zones follow a rule, each day still has its noon and its midnight, over new years
// and leap days too.
func TestBruteForceOverDaysToCome(t *testing.T) {
	from, end := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2046, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, name := range zoneNames {
		if !askedForWhole() && i%10 != 0 {
			continue
		}
		for _, expression := range []string{"0 12 * * *", "0 0 * * *"} {
			rule := parsed(t, expression, name)
			at, _, _ := rule.Next(from, Policy{})
			for at.Before(end) {
				next, _, ok := rule.Next(at, Policy{})
				year, month, date := at.Date()
				if y, m, d := next.Date(); !ok || dayNumber(y, m, d) != dayNumber(year, month, date)+1 {
					t.Fatalf("%s %q: after %s comes %s", name, expression, at, next)
				}
				at = next
			}
		}
	}
}
