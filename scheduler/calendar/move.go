package calendar

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"nightshift/models"
)

// Move is a stored rule that fires so many minutes later (or earlier) on its own clock, and else says what it said before.
// It refuses what can't be said so.
func Move(r models.ScheduleRule, created models.Instant, minutes int) (models.ScheduleRule, error) {
	by := models.Seconds(minutes * 60)
	switch {
	case r.Gathers():
		return r, models.Errorf(models.InvalidSchedule, "a schedule of kind %s fires when something comes: it has no moments to move", r.Kind)
	case r.FromEnd:
		return r, models.Errorf(models.InvalidSchedule, "an interval that counts from the end of the run before has no moments to move")
	case minutes == 0:
		return r, nil
	case r.Kind == "once":
		r.RunAt = r.RunAt.Add(by)
		return r, nil
	case r.Kind == "interval":
		if r.StartAt == 0 {
			r.StartAt = created
		}
		r.StartAt = r.StartAt.Add(by)
		return r, nil
	}
	expression, err := shifted(r.Expression, minutes)
	r.Expression = expression
	return r, err
}

// shifted moves an expression.
func shifted(expression string, minutes int) (string, error) {
	rule, err := Parse(expression, "")
	if err != nil {
		return "", err
	}
	fields, err := split(expression)
	if err != nil {
		return "", err
	}
	no := func(why string) (string, error) {
		return "", models.Errorf(models.InvalidSchedule, "expression %q can't be moved by %d minutes: %s", shortened(expression), minutes, why)
	}
	if minutes > 1439 || minutes < -1439 {
		return no("that is more than a day")
	}
	everyHour := rule.hour == 1<<24-1
	everyDay := rule.anyMonthDay && rule.anyWeekday && rule.month == 1<<13-2
	set, carry, even := rotate(rule.minute, 60, minutes)
	if !even && !everyHour {
		return no("some of its minutes would come to another hour")
	}
	if everyHour && (!even || carry != 0) && !everyDay {
		return no("some of its hours would come to another day")
	}
	hours, days := rule.hour, 0
	if !everyHour && carry != 0 {
		var whole bool
		if hours, days, whole = rotate(rule.hour, 24, carry); !whole && !everyDay {
			return no("some of its hours would come to another day")
		}
	}
	if days != 0 && !everyDay {
		switch {
		case !rule.anyMonthDay:
			return no("it would come to another day of the month")
		case rule.month != 1<<13-2:
			return no("it would come to another month")
		case rule.nth != [7]uint8{}:
			return no("it would come to another weekday, and its weekdays are counted within the month")
		case !rule.anyWeekday:
			week, _, _ := rotate(rule.weekday&127|rule.weekday>>7&1, 7, days)
			fields[weekdayPart] = spelledSet(week, 0, 6, 7)
		}
	}
	if set != rule.minute {
		fields[1] = spelledSet(set, 0, 59, 60)
	}
	if hours != rule.hour {
		fields[2] = spelledSet(hours, 0, 23, 24)
	}
	out := written(fields)
	if len(out) > mostExpression {
		return no("what says it is too long")
	}
	if _, err := Parse(out, ""); err != nil {
		return no("nothing says it")
	}
	return out, nil
}

// rotate moves the members of a set on a circle. Carry is how often they pass its end, and even says whether all do alike.
func rotate(set uint64, cycle, by int) (out uint64, carry int, even bool) {
	even = true
	for v, first := 0, true; v < cycle; v++ {
		if set>>v&1 == 0 {
			continue
		}
		to := int(floor(int64(v+by), int64(cycle)))
		out |= 1 << (v + by - to*cycle)
		if first {
			carry, first = to, false
		}
		even = even && to == carry
	}
	return out, carry, even
}

// spelledSet writes a set as a star, as steps, as ranges or as a list, whichever is first.
func spelledSet(set uint64, low, high, cycle int) string {
	n := bits.OnesCount64(set)
	if n == cycle {
		return "*"
	}
	var list []int
	for v := low; v <= high; v++ {
		if set>>v&1 != 0 {
			list = append(list, v)
		}
	}
	if step := 0; n > 2 {
		step = list[1] - list[0]
		steps := step > 1
		for i := 2; i < n; i++ {
			steps = steps && list[i]-list[i-1] == step
		}
		switch {
		case steps && cycle%step == 0 && n == cycle/step && list[0] == 0:
			return fmt.Sprintf("*/%d", step)
		case steps:
			return fmt.Sprintf("%d-%d/%d", list[0], list[n-1], step)
		}
	}
	var items []string
	for i := 0; i < n; {
		j := i
		for j+1 < n && list[j+1] == list[j]+1 {
			j++
		}
		if j > i+1 {
			items = append(items, fmt.Sprintf("%d-%d", list[i], list[j]))
		} else {
			for k := i; k <= j; k++ {
				items = append(items, strconv.Itoa(list[k]))
			}
		}
		i = j + 1
	}
	return strings.Join(items, ",")
}

// Nearest is the run of a timetable that lies nearest to a moment, the earlier of two alike.
func (t *Timetable) Nearest(at time.Time) (time.Time, bool) {
	next, after := t.NextRun(at.Add(-1))
	prev, before := t.PrevRun(at)
	switch {
	case after && (!before || next.At.Sub(at) < at.Sub(prev.At)):
		return next.At, true
	case before:
		return prev.At, true
	}
	return time.Time{}, false
}
