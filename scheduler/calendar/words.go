package calendar

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// mostListed is how many values a description lists before it counts the rest.
const mostListed = 8

var (
	monthWords   = strings.Fields("January February March April May June July August September October November December")
	weekdayWords = strings.Fields("Sunday Monday Tuesday Wednesday Thursday Friday Saturday")
)

// Words describes an expression in plain words, empty for one that is refused. Time and length are bounded by those of an
// expression: it describes sets of at most 60 values, however they were written.
func Words(expression string) string {
	rule, err := Parse(expression, "")
	if err != nil {
		return ""
	}
	return rule.Words()
}

// Words describes the rule in plain words.
func (r *Rule) Words() string {
	var text string
	switch {
	case r.expression != "":
		text = r.timeWords() + r.dayWords() + r.monthWords()
	case r.every > 0:
		text = "every " + strings.TrimPrefix(spoken(r.every), "1 ")
	default:
		text = "once at " + r.anchor.Format(time.RFC3339)
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// spoken is a time span in its largest unit that fits it exactly.
func spoken(d time.Duration) string {
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"week", 7 * day * time.Second}, {"day", day * time.Second}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if d >= unit.size && d%unit.size == 0 {
			return counted(int64(d/unit.size), unit.name)
		}
	}
	return counted(int64(d/time.Second), "second")
}

func counted(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.FormatInt(n, 10) + " " + unit + "s"
}

// shape is what a set of values looks like: all of them, one, every step-th, a run from first to last, or a list.
type shape struct {
	values      []int
	all         bool
	step        int // 0: none
	first, last int // of a run, equal when there is none
}

func shapeOf(set uint64, p part) (s shape) {
	for v := p.low; v < p.low+p.cycle; v++ {
		if set>>v&1 != 0 {
			s.values = append(s.values, v)
		}
	}
	n := len(s.values)
	if s.all = n == p.cycle; s.all || n < 2 {
		return s
	}
	if step := s.values[1] - s.values[0]; step > 1 && (n > 2 || p.cycle == 60) && s.values[0] == p.low && s.values[n-1]+step >= p.low+p.cycle {
		s.step = step
		for i := 1; i < n; i++ {
			if s.values[i]-s.values[i-1] != step {
				s.step = 0
			}
		}
	}
	breaks := 0
	for i, v := range s.values {
		next := s.values[(i+1)%n]
		if (v-p.low+1)%p.cycle != next-p.low {
			breaks, s.first, s.last = breaks+1, next, v
		}
	}
	if breaks != 1 || n < 3 {
		s.first, s.last = 0, 0
	}
	return s
}

func (s shape) isRun() bool { return s.first != s.last }

func (s shape) only(v int) bool { return len(s.values) == 1 && s.values[0] == v }

func list(values []int, word func(int) string) string {
	words := make([]string, 0, mostListed)
	for i, v := range values {
		if i == mostListed-1 && len(values) > mostListed {
			words = append(words, fmt.Sprintf("%d more", len(values)-i))
			break
		}
		words = append(words, word(v))
	}
	return joined(words, "and")
}

func joined(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}

func ordinal(n int) string {
	suffix := "th"
	if n/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

// timeWords says when within a day.
func (r *Rule) timeWords() string {
	second, minute, hour := shapeOf(r.second, parts[0]), shapeOf(r.minute, parts[1]), shapeOf(r.hour, parts[2])
	if n := len(second.values) * len(minute.values) * len(hour.values); n <= 6 && len(hour.values) <= 4 {
		return "at " + r.timesOfDay(n)
	}
	var said []string
	plain := second.only(0)
	if !plain {
		said = append(said, second.unit("second", "minute"))
	}
	switch {
	case minute.all && !plain:
	case minute.only(0) && plain && len(hour.values) > 1:
		return joinWords(hour.hours(true))
	default:
		said = append(said, minute.unit("minute", "hour"))
	}
	if hour.all && len(minute.values) == 1 {
		said = append(said, "of every hour")
	} else if !hour.all {
		said = append(said, hour.hours(false))
	}
	return joinWords(said...)
}

func joinWords(words ...string) string { return strings.Join(words, " ") }

func (r *Rule) timesOfDay(n int) string {
	times := make([]string, 0, n)
	for at := r.clock(0); at >= 0 && at < day; at = r.clock(at + 1) {
		text := fmt.Sprintf("%02d:%02d", at/3600, at/60%60)
		if r.second != 1 {
			text += fmt.Sprintf(":%02d", at%60)
		}
		if times = append(times, text); at == day-1 {
			break
		}
	}
	return joined(times, "and")
}

// unit describes seconds of a minute or minutes of an hour.
func (s shape) unit(name, of string) string {
	switch {
	case s.all:
		return "every " + name
	case s.step > 0 && 60%s.step == 0:
		return fmt.Sprintf("every %d %ss", s.step, name)
	case s.step > 0:
		return fmt.Sprintf("every %d %ss from the start of each %s", s.step, name, of)
	case s.isRun():
		return fmt.Sprintf("at each %s from %d to %d", name, s.first, s.last)
	case len(s.values) == 1:
		return fmt.Sprintf("at %s %d", name, s.values[0])
	}
	return fmt.Sprintf("at %ss %s", name, list(s.values, strconv.Itoa))
}

// hours describes the hours, either as times of their own (on the hour) or as bounds of what goes on in them.
func (s shape) hours(onTheHour bool) string {
	clock := func(h int) string { return fmt.Sprintf("%02d:00", h) }
	switch {
	case s.all:
		return "every hour"
	case s.step > 0 && onTheHour && 24%s.step == 0:
		return fmt.Sprintf("every %d hours", s.step)
	case s.isRun() && onTheHour:
		return fmt.Sprintf("every hour from %s to %s", clock(s.first), clock(s.last))
	case s.isRun():
		return fmt.Sprintf("from %s to %02d:59", clock(s.first), s.last)
	case onTheHour:
		return "at " + list(s.values, clock)
	case s.step > 0:
		return fmt.Sprintf("in every %s hour", ordinal(s.step))
	}
	return "in the " + plural("hour", len(s.values)) + " of " + list(s.values, func(h int) string { return fmt.Sprintf("%02d", h) })
}

func plural(word string, n int) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// dayWords says on which days.
func (r *Rule) dayWords() string {
	dates, weekdays := r.dateWords(), r.weekdayWords()
	if !r.anyMonthDay && !r.anyWeekday && (dates == "" || weekdays == "") {
		dates, weekdays = "", "" // every day of one kind or a day of the other is every day
	}
	switch {
	case dates == "" && weekdays == "":
		if hour := shapeOf(r.hour, parts[2]); r.month&0x1ffe == 0x1ffe && !hour.all && hour.step == 0 {
			return " every day"
		}
		return ""
	case dates == "":
		return " on " + weekdays
	case weekdays == "":
		return " " + dates
	case r.anyMonthDay || r.anyWeekday:
		return " " + dates + " if it is " + weekdays
	}
	return " " + dates + " or on " + weekdays
}

func (r *Rule) dateWords() string {
	s := shapeOf(r.monthDay, parts[monthDayPart])
	var said []string
	switch {
	case s.all:
		return ""
	case s.step > 0:
		said = append(said, fmt.Sprintf("on every %s day of the month", ordinal(s.step)))
	case s.isRun():
		said = append(said, fmt.Sprintf("on the %s to the %s of the month", ordinal(s.first), ordinal(s.last)))
	case len(s.values) > 0:
		said = append(said, "on the "+list(s.values, ordinal)+" of the month")
	}
	back := shapeOf(r.fromLast<<1, parts[monthDayPart]).values // bit n is n days before the last
	if len(back) > 0 && back[0] == 1 {
		said, back = append(said, "on the last day of the month"), back[1:]
	}
	if len(back) > 0 {
		said = append(said, list(back, func(n int) string { return strconv.Itoa(n - 1) })+plural(" day", back[len(back)-1]-1)+" before the last day of the month")
	}
	if near := shapeOf(r.nearest, parts[monthDayPart]).values; len(near) > 0 {
		said = append(said, "on the Monday to Friday nearest to the "+list(near, ordinal))
	}
	if r.lastWorkday {
		said = append(said, "on the last Monday to Friday of the month")
	}
	return joined(said, "and")
}

func (r *Rule) weekdayWords() string {
	s := shapeOf(r.weekday, parts[weekdayPart])
	word := func(d int) string { return weekdayWords[d] }
	var said []string
	switch {
	case s.all:
		return ""
	case s.isRun():
		said = append(said, word(s.first)+" to "+word(s.last))
	case len(s.values) > 0:
		said = append(said, list(s.values, word))
	}
	var counted []string
	for d, set := range r.nth {
		for n := 1; n <= 5; n++ {
			if set>>n&1 != 0 {
				counted = append(counted, "the "+ordinal(n)+" "+word(d))
			}
		}
		if set&1 != 0 {
			counted = append(counted, "the last "+word(d))
		}
	}
	if len(counted) > 0 {
		said = append(said, joined(counted, "and")+" of the month")
	}
	return joined(said, "and")
}

func (r *Rule) monthWords() string {
	s := shapeOf(r.month, parts[4])
	word := func(m int) string { return monthWords[m-1] }
	switch {
	case s.all:
		return ""
	case s.isRun():
		return " from " + word(s.first) + " to " + word(s.last)
	case s.step > 0:
		return " in every " + ordinal(s.step) + " month from January"
	}
	return " in " + list(s.values, word)
}
