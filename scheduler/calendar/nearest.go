package calendar

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nightshift/models"
)

// written puts six fields back together, with L and W large and the seconds left out where they are zero.
func written(fields []string) string {
	fields = slices.Clone(fields)
	fields[monthDayPart] = strings.ToUpper(fields[monthDayPart])
	items := strings.Split(fields[weekdayPart], ",")
	for i, item := range items {
		if rest, ok := strings.CutSuffix(item, "l"); ok {
			items[i] = rest + "L"
		}
	}
	fields[weekdayPart] = strings.Join(items, ",")
	if fields[0] == "0" {
		fields = fields[1:]
	}
	return strings.Join(fields, " ")
}

// valid tells whether six fields make a rule that fires.
func valid(fields []string) bool {
	var rule cron
	for i, text := range fields {
		if text == "" || rule.read(i, text) != nil {
			return false
		}
	}
	return rule.fires()
}

// nearestForm mends each field that can't be read; empty when that does not make a rule that fires.
func nearestForm(fields []string) string {
	mended := make([]string, len(fields))
	for i, text := range fields {
		mended[i] = mend(i, text)
	}
	if !valid(mended) {
		return ""
	}
	return written(mended)
}

func mend(i int, text string) string {
	var items []string
	for _, item := range strings.Split(text, ",") {
		if item != "" && new(cron).read(i, item) != nil {
			item = mendItem(i, item)
		}
		if item != "" {
			items = append(items, item)
		}
	}
	if len(items) == 0 {
		return "*"
	}
	return strings.Join(items, ",")
}

// mendItem brings one item of a field into its bounds, or gives none.
func mendItem(i int, item string) string {
	p := parts[i]
	switch {
	case i == monthDayPart && strings.HasPrefix(item, "l-"):
		return "l-" + clamped(item[2:], 0, 30)
	case i == monthDayPart && strings.HasSuffix(item, "w"):
		return p.mendValue(strings.TrimSuffix(item, "w")) + "w"
	case i == weekdayPart && item == "l":
		return "6l"
	case i == weekdayPart && strings.Contains(item, "#"):
		which, count, _ := strings.Cut(item, "#")
		return p.mendValue(which) + "#" + clamped(count, 1, 5)
	case item == "?":
		return "*"
	}
	body, step, stepped := strings.Cut(item, "/")
	from, to, isRange := strings.Cut(strings.TrimLeft(body, "-"), "-")
	if from != "*" {
		if from = p.mendValue(from); from == "" {
			return ""
		}
	}
	if isRange {
		if to = p.mendValue(strings.Trim(to, "-")); to == "" {
			return from
		}
		body = from + "-" + to
	} else {
		body = from
	}
	if !stepped {
		return body
	}
	n, err := strconv.Atoi(step)
	switch {
	case err != nil || n < 1:
		return body
	case n > p.high && from == "*":
		return strconv.Itoa(p.low)
	case n > p.high:
		return from
	}
	return body + "/" + step
}

// mendValue is the name or number in bounds that is nearest to what was written.
func (p part) mendValue(text string) string {
	if _, err := p.value(text); err == nil {
		return text
	}
	if len(text) > 3 && slices.Contains(p.names, text[:3]) {
		return text[:3]
	}
	if text == strconv.Itoa(p.high+1) && p.cycle == p.high+1 { // 24:00 is 0:00
		return strconv.Itoa(p.low)
	}
	return clamped(text, p.low, p.high)
}

func clamped(text string, low, high int) string {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return ""
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		n = high
	}
	return strconv.Itoa(min(max(n, low), high))
}

// nearestCount mends an expression with too many fields or too few.
func nearestCount(fields []string) string {
	var six []string
	switch n := len(fields); {
	case n == 7: // the last is a year
		six = fields[:6]
	case n == 1:
		hour, minute, ok := strings.Cut(fields[0], ":")
		if !ok {
			return ""
		}
		six = []string{"0", withoutZero(minute), withoutZero(hour), "*", "*", "*"}
	case n >= 2 && n <= 4:
		six = append([]string{"0"}, fields...)
		for len(six) < 6 {
			six = append(six, "*")
		}
	default:
		return ""
	}
	if !valid(six) {
		return ""
	}
	return written(six)
}

func withoutZero(text string) string {
	if len(text) == 2 {
		return strings.TrimPrefix(text, "0")
	}
	return text
}

// nearestDay gives an expression that never fires the last day of its months.
func nearestDay(fields []string) string {
	fields = slices.Clone(fields)
	fields[monthDayPart] = "l"
	if !valid(fields) {
		return ""
	}
	return written(fields)
}

func refuseMacro(expression string, fields []string) error {
	if fields[0] == "@every" && len(fields) == 2 {
		if every, err := time.ParseDuration(fields[1]); err == nil && every >= time.Second && every <= longest {
			return models.Errorf(models.InvalidSchedule, "expression %q is an interval: use kind \"interval\" with every_seconds %d", shortened(expression), every/time.Second)
		}
		return models.Errorf(models.InvalidSchedule, "expression %q is an interval: use kind \"interval\" with every_seconds", shortened(expression))
	}
	best, least := "", 4
	for _, macro := range []string{"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"} {
		if d := distance(fields[0], macro, least); d < least {
			best, least = macro, d
		}
	}
	return refuse(expression, "no such macro: there are @hourly @daily @midnight @weekly @monthly @yearly @annually", best)
}

// nearestEvery is a form of the expression that fires no more often than once in least, or none.
func (r *Rule) nearestEvery(least time.Duration) string {
	fields, err := split(r.expression)
	if err != nil {
		return ""
	}
	try := func(second, minute, hour string) string {
		slower := append([]string{second, minute, hour}, fields[3:]...)
		if rule, err := Parse(written(slower), ""); err == nil && rule.Shortest() >= least {
			return rule.expression
		}
		return ""
	}
	steps := func(cycle int, unit time.Duration, form func(step string) string) string {
		for n := 2; n < cycle; n++ {
			if cycle%n == 0 && time.Duration(n)*unit >= least {
				if found := form(fmt.Sprintf("*/%d", n)); found != "" {
					return found
				}
			}
		}
		return ""
	}
	for _, form := range []func() string{
		func() string {
			return steps(60, time.Second, func(s string) string { return try(s, fields[1], fields[2]) })
		},
		func() string { return try("0", fields[1], fields[2]) },
		func() string { return steps(60, time.Minute, func(s string) string { return try("0", s, fields[2]) }) },
		func() string { return try("0", "0", fields[2]) },
		func() string { return steps(24, time.Hour, func(s string) string { return try("0", "0", s) }) },
		func() string { return try("0", "0", "0") },
	} {
		if found := form(); found != "" {
			return found
		}
	}
	return ""
}
