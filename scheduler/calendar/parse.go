package calendar

import (
	"fmt"
	"strconv"
	"strings"

	"nightshift/models"
)

// mostExpression is the longest expression in bytes; it bounds the work of reading and describing one.
const mostExpression = 256

var (
	monthNames   = strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")
	weekdayNames = strings.Fields("sun mon tue wed thu fri sat")
)

var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// part is one field of an expression: its bounds and names.
type part struct {
	name  string
	low   int
	high  int
	cycle int // members before it begins again: 7 for weekdays, though 7 is a second name of Sunday
	names []string
	base  int // the number of the first name
}

var parts = [6]part{
	{name: "second", high: 59, cycle: 60},
	{name: "minute", high: 59, cycle: 60},
	{name: "hour", high: 23, cycle: 24},
	{name: "day of the month", low: 1, high: 31, cycle: 31},
	{name: "month", low: 1, high: 12, cycle: 12, names: monthNames, base: 1},
	{name: "weekday", high: 7, cycle: 7, names: weekdayNames},
}

const (
	monthDayPart = 3
	weekdayPart  = 5
)

// Parse reads a cron expression of five fields, six with seconds first, or a macro. What it refuses it refuses with the
// reason and, where there is one, the nearest valid form; so it does with one that can never fire.
func Parse(expression, zone string) (*Rule, error) {
	location, err := Zone(zone)
	if err != nil {
		return nil, err
	}
	fields, err := split(expression)
	if err != nil {
		return nil, err
	}
	rule := &Rule{expression: strings.Join(strings.Fields(expression), " "), zone: location}
	for i, text := range fields {
		if err := rule.read(i, text); err != nil {
			return nil, refuse(expression, err.Error(), nearestForm(fields))
		}
	}
	if !rule.fires() {
		return nil, refuse(expression, "never fires: no such day comes in any year", nearestDay(fields))
	}
	return rule, nil
}

func refuse(expression, reason, nearest string) error {
	if nearest != "" {
		reason += fmt.Sprintf("; the nearest valid form is %q", nearest)
	}
	return models.Errorf(models.InvalidSchedule, "expression %q: %s", shortened(expression), reason)
}

// split turns an expression into six fields in small letters.
func split(expression string) ([]string, error) {
	if len(expression) > mostExpression {
		return nil, refuse(expression, fmt.Sprintf("has %d characters, %d are the most", len(expression), mostExpression), "")
	}
	for _, letter := range expression {
		if letter != '\t' && (letter < ' ' || letter > '~') {
			return nil, refuse(expression, fmt.Sprintf("%q has no meaning here", letter), "")
		}
	}
	fields := strings.Fields(strings.ToLower(expression))
	if len(fields) > 0 && fields[0][0] == '@' {
		if macro, ok := macros[fields[0]]; ok && len(fields) == 1 {
			return append([]string{"0"}, strings.Fields(macro)...), nil
		}
		return nil, refuseMacro(expression, fields)
	}
	if len(fields) > 0 && (strings.HasPrefix(fields[0], "tz=") || strings.HasPrefix(fields[0], "cron_tz=")) {
		own := strings.Fields(expression)
		_, zone, _ := strings.Cut(own[0], "=")
		rest := strings.Join(own[1:], " ")
		if _, err := Parse(rest, ""); err != nil {
			rest = ""
		}
		return nil, refuse(expression, fmt.Sprintf("a zone stands in its own field: set timezone to %q", zone), rest)
	}
	switch len(fields) {
	case 5:
		return append([]string{"0"}, fields...), nil
	case 6:
		return fields, nil
	}
	return nil, refuse(expression, fmt.Sprintf("has %d fields, not 5 (minute hour day month weekday) or 6 (second first)", len(fields)), nearestCount(fields))
}

// read puts one field into the rule.
func (c *cron) read(i int, text string) error {
	p := parts[i]
	star := text[0] == '*' || text == "?"
	var set uint64
	for _, item := range strings.Split(text, ",") {
		if done, err := c.readMovable(i, item); err != nil {
			return err
		} else if done {
			continue
		}
		if item == "?" && text == "?" && (i == monthDayPart || i == weekdayPart) {
			item = "*"
		}
		more, err := p.set(item)
		if err != nil {
			return err
		}
		set |= more
	}
	switch i {
	case 0:
		c.second = set
	case 1:
		c.minute = set
	case 2:
		c.hour, c.realTime = set, star
	case monthDayPart:
		c.monthDay, c.anyMonthDay = set, star
	case 4:
		c.month = set
	case weekdayPart:
		c.weekday, c.anyWeekday = set, star
	}
	return nil
}

// readMovable reads the days that depend on the month: L, L-n, LW, nW, nL, d#n and d#L.
func (c *cron) readMovable(i int, item string) (done bool, err error) {
	date, weekday := parts[monthDayPart], parts[weekdayPart]
	switch i {
	case monthDayPart:
		if item == "l" {
			c.fromLast |= 1
			return true, nil
		}
		if item == "lw" || item == "wl" {
			c.lastWorkday = true
			return true, nil
		}
		if back, ok := strings.CutPrefix(item, "l-"); ok {
			n, err := number(back, 0, 30)
			c.fromLast |= 1 << n
			return true, named(date, err)
		}
		if near, ok := strings.CutSuffix(item, "w"); ok {
			n, err := number(near, date.low, date.high)
			c.nearest |= 1 << n
			return true, named(date, err)
		}
	case weekdayPart:
		if which, count, ok := strings.Cut(item, "#"); ok {
			d, err := weekday.value(which)
			if err != nil {
				return true, err
			}
			n := 0
			if count != "l" {
				if n, err = number(count, 1, 5); err != nil {
					return true, fmt.Errorf("weekday %q: there is a first to fifth of each, or #L for the last", item)
				}
			}
			c.nth[d%7] |= 1 << n
			return true, nil
		}
		if item == "l" {
			return true, fmt.Errorf("weekday %q says no weekday: 6L is the last Saturday, L as day of the month the last day", item)
		}
		if which, ok := strings.CutSuffix(item, "l"); ok {
			d, err := weekday.value(which)
			if err != nil {
				return true, err
			}
			c.nth[d%7] |= 1
			return true, nil
		}
	}
	return false, nil
}

func named(p part, err error) error {
	if err != nil {
		return fmt.Errorf("%s %w", p.name, err)
	}
	return nil
}

// number reads a few digits: no sign, nothing long.
func number(text string, low, high int) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || len(text) > 4 || int(n) < low || int(n) > high {
		return 0, fmt.Errorf("%q is not in %d–%d", shortened(text), low, high)
	}
	return int(n), nil
}

// value reads a number or a name.
func (p part) value(text string) (int, error) {
	for i, name := range p.names {
		if text == name {
			return p.base + i, nil
		}
	}
	n, err := number(text, p.low, p.high)
	return n, named(p, err)
}

// set reads *, a value, a range, or one of them with a step, as bits. A range may go over the end, as in sat-mon or 22-2.
func (p part) set(item string) (set uint64, err error) {
	body, stepText, stepped := strings.Cut(item, "/")
	step := 1
	if stepped {
		if step, err = number(stepText, 1, p.high); err != nil {
			return 0, fmt.Errorf("%s %q: the step %w", p.name, shortened(item), err)
		}
	}
	from, to := p.low, p.low+p.cycle-1
	if body != "*" {
		first, last, isRange := strings.Cut(body, "-")
		if from, err = p.value(first); err != nil {
			return 0, err
		}
		if isRange {
			if to, err = p.value(last); err != nil {
				return 0, err
			}
		} else if !stepped {
			to = from
		}
	}
	if to < from {
		to += p.cycle
	}
	for v := from; v <= to; v += step {
		set |= 1 << (p.low + (v-p.low)%p.cycle)
	}
	return set, nil
}
