package calendar

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyExpression draws one that may be refused only for never firing.
func anyExpression(t *rapid.T) string {
	field := func(p part, more ...string) string {
		item := rapid.Custom(func(t *rapid.T) string {
			if len(more) > 0 && rapid.IntRange(0, 3).Draw(t, "movable") == 0 {
				return rapid.SampledFrom(more).Draw(t, "which")
			}
			value := func() string {
				n := rapid.IntRange(p.low, p.high).Draw(t, "value")
				if i := n - p.base; i >= 0 && i < len(p.names) && rapid.Bool().Draw(t, "named") {
					return p.names[i]
				}
				return fmt.Sprint(n)
			}
			text := "*"
			switch rapid.IntRange(0, 3).Draw(t, "form") {
			case 0:
				text = value() + "-" + value()
			case 1, 2:
				text = value()
			}
			if rapid.Bool().Draw(t, "stepped") {
				text += fmt.Sprintf("/%d", rapid.IntRange(1, p.high).Draw(t, "step"))
			}
			return text
		})
		if rapid.IntRange(0, 2).Draw(t, "any") == 0 {
			return "*"
		}
		return strings.Join(rapid.SliceOfN(item, 1, 3).Draw(t, p.name), ",")
	}
	fields := []string{
		field(parts[1]), field(parts[2]), field(parts[3], "L", "LW", "L-3", "15W", "31W", "1W"),
		field(parts[4]), field(parts[5], "5L", "fri#2", "1#5", "sun#L"),
	}
	if rapid.IntRange(0, 3).Draw(t, "seconds") == 0 {
		fields = append([]string{field(parts[0])}, fields...)
	}
	return strings.Join(fields, " ")
}

func anyRule(t *rapid.T) *Rule {
	for range 20 {
		rule, err := Parse(anyExpression(t), rapid.SampledFrom(notable).Draw(t, "zone"))
		if err == nil {
			return rule
		}
		if !strings.Contains(err.Error(), "never fires") {
			t.Fatal(err)
		}
	}
	t.Skip("none of them fires")
	return nil
}

func anyMoment(t *rapid.T) time.Time {
	return time.Unix(rapid.Int64Range(0, 2208988800).Draw(t, "moment"), rapid.SampledFrom([]int64{0, 1, 999999999}).Draw(t, "nanosecond"))
}

func anyPolicy(t *rapid.T) Policy { return rapid.SampledFrom(allPolicies).Draw(t, "policy") }

func TestNextRisesAndFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule, policy, at := anyRule(t), anyPolicy(t), anyMoment(t)
		for range 20 {
			next, note, ok := rule.Next(at, policy)
			if !ok {
				t.Fatalf("%q has no more after %s", rule.expression, at)
			}
			if !next.After(at) {
				t.Fatalf("%q: after %s comes %s", rule.expression, at, next)
			}
			y, month, d := next.Date()
			fits := rule.second>>next.Second()&1 != 0 && rule.minute>>next.Minute()&1 != 0 && rule.hour>>next.Hour()&1 != 0 && rule.days(y, month)>>d&1 != 0
			if !fits && note != NoteGap {
				t.Fatalf("%q does not ask for %s", rule.expression, next)
			}
			between := at.Add(next.Sub(at) / 2) // from anywhere before it, it stays the next
			if again, _, _ := rule.Next(between, policy); !again.Equal(next) {
				t.Fatalf("%q: after %s comes %s, after %s comes %s", rule.expression, at, next, between, again)
			}
			at = next
		}
	})
}

func TestPrevAgreesWithNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule, policy, at := anyRule(t), anyPolicy(t), anyMoment(t)
		next, note, ok := rule.Next(at, policy)
		if !ok {
			t.Skip("none")
		}
		if same, n, ok := rule.Prev(next.Add(1), policy); !ok || !same.Equal(next) || n != note {
			t.Fatalf("%q: the last before just after %s is %s", rule.expression, next, same)
		}
		prev, _, ok := rule.Prev(next, policy)
		if !ok {
			t.Skip("it is the first in 40 years")
		}
		if prev.After(at) {
			t.Fatalf("%q: %s lies between %s and %s", rule.expression, prev, at, next)
		}
		if again, _, _ := rule.Next(prev, policy); !again.Equal(next) {
			t.Fatalf("%q: after %s comes %s, not %s", rule.expression, prev, again, next)
		}
	})
}

func TestBetweenIsRepeatedNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := Timetable{Rule: anyRule(t), Policy: anyPolicy(t)}
		from := anyMoment(t)
		to := from.Add(time.Duration(rapid.IntRange(0, 400*24).Draw(t, "hours")) * time.Hour)
		limit := rapid.IntRange(1, 50).Draw(t, "limit")
		list, more := table.Between(from, to, limit)
		at := from
		for _, o := range list {
			next, note, _ := table.Rule.Next(at, table.Policy)
			if !next.Equal(o.At) || note != o.Note {
				t.Fatalf("%q: %s stands for %s", table.Rule.expression, o.At, next)
			}
			at = next
		}
		next, _, ok := table.Rule.Next(at, table.Policy)
		if more != (ok && !next.After(to)) || more && len(list) != limit {
			t.Fatalf("%q: %d of %d, more: %v, though %s follows until %s", table.Rule.expression, len(list), limit, more, next, to)
		}
	})
}

// A long outage worked through in small ticks ends as one worked through at once, whatever is left out of it.
func TestDueInSlicesIsDueAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := anyRule(t)
		mark := anyMoment(t)
		first, _, ok := rule.Next(mark, Policy{})
		if !ok {
			t.Skip("none")
		}
		dates, err := ParseDates([]string{first.Format(time.DateOnly), first.AddDate(0, 0, 2).Format(time.DateOnly)})
		if err != nil {
			t.Fatal(err)
		}
		table := Timetable{Rule: rule, Policy: anyPolicy(t), Exclude: dates, Freezes: []Freeze{{Begin: first.Add(30 * time.Hour), End: first.Add(40 * time.Hour)}}}
		tick := Tick{Mark: mark, Now: first.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "hours")) * time.Hour), Limit: 1 << 20, Misfire: Misfire{
			Policy:  rapid.SampledFrom([]Missed{SkipMissed, RunOnce, CatchUp}).Draw(t, "missed"),
			Grace:   time.Duration(rapid.IntRange(0, 7200).Draw(t, "grace")) * time.Second,
			Limit:   rapid.IntRange(0, 20).Draw(t, "catch up"),
			Expires: time.Duration(rapid.IntRange(0, 20).Draw(t, "expires")) * time.Hour,
		}}
		if list, _ := table.Between(tick.Mark, tick.Now, 2000); len(list) >= 2000 {
			t.Skip("more than the test wants to compare")
		}
		whole, end, more := table.Due(tick)
		if more || !end.Equal(tick.Now) {
			t.Fatalf("the whole ends at %s, more: %v", end, more)
		}
		var sliced []Fire
		tick.Limit = rapid.IntRange(1, 40).Draw(t, "slice")
		start := tick.Mark
		for more = true; more; {
			var fires []Fire
			fires, tick.Mark, more = table.Due(tick)
			sliced = append(sliced, fires...)
		}
		missed, ran := 0, 0
		for i, f := range whole {
			if i >= len(sliced) || f != sliced[i] {
				t.Fatalf("%q from %s: the whole has %v, the slices %v", rule.expression, start, f, sliced[min(i, len(sliced)-1)])
			}
			if f.Late > tick.Misfire.Grace && f.Excluded == "" {
				missed++
				if f.Outcome != Misfired {
					ran++
				}
			}
		}
		want := map[Missed]int{SkipMissed: 0, RunOnce: min(missed, 1), CatchUp: min(missed, tick.Misfire.Limit)}[tick.Misfire.Policy]
		if len(sliced) != len(whole) || ran != want {
			t.Fatalf("%q: %d of %d missed ones run under %v", rule.expression, ran, missed, tick.Misfire)
		}
	})
}

var proposed = regexp.MustCompile(`the nearest valid form is "([^"]*)"`)

// What a refusal proposes is never refused.
func TestProposalsAreValid(t *testing.T) {
	letters := []rune("0123456789*,-/#?LWlw @:monfrijan  ")
	rapid.Check(t, func(t *rapid.T) {
		expression := []rune(anyExpression(t))
		for range rapid.IntRange(1, 3).Draw(t, "mistakes") {
			i := rapid.IntRange(0, len(expression)).Draw(t, "place")
			expression = slices.Insert(expression, i, rapid.SampledFrom(letters).Draw(t, "letter"))
		}
		_, err := Parse(string(expression), "")
		if err == nil {
			return
		}
		if form := proposed.FindStringSubmatch(err.Error()); form != nil {
			if _, again := Parse(form[1], ""); again != nil {
				t.Fatalf("%q: proposes %q, which is refused: %v", string(expression), form[1], again)
			}
		}
	})
}

var writeZones = flag.Bool("write-zones", false, "write zones.txt from the zone database of this Go")

// The list of names is that of the database that comes with Go.
func TestZoneNamesAreGos(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("no Go here: ", err)
	}
	names, err := zipNames(strings.TrimSpace(string(root)) + "/lib/time/zoneinfo.zip")
	if err != nil {
		t.Skip("Go came without its zone database: ", err)
	}
	if *writeZones {
		if err := os.WriteFile("zones.txt", []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range names {
		if _, err := Zone(name); err != nil {
			t.Errorf("%v (go generate writes the list anew)", err)
		}
	}
	for _, name := range zoneNames {
		if !slices.Contains(names, name) {
			t.Errorf("%s has left the database (go generate writes the list anew)", name)
		}
	}
}

// A field's members are those that its items name one by one, however they are written.
func TestFieldsHaveTheMembersTheyName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]part{parts[0], parts[1], parts[2], parts[4]}).Draw(t, "field") // these have no members but numbers
		var items []string
		want := uint64(0)
		for range rapid.IntRange(1, 4).Draw(t, "items") {
			low, high := rapid.IntRange(p.low, p.high).Draw(t, "low"), rapid.IntRange(p.low, p.high).Draw(t, "high")
			step := rapid.IntRange(1, p.high).Draw(t, "step")
			text := fmt.Sprintf("%d-%d", low, high)
			switch rapid.IntRange(0, 3).Draw(t, "form") {
			case 0:
				text, high, step = fmt.Sprint(low), low, 1
			case 1:
				text, low, high = "*", p.low, p.high
			case 2: // from there to the end
				text, high = fmt.Sprint(low), p.high
				if step == 1 {
					step = 2
				}
			}
			if step > 1 {
				text += fmt.Sprintf("/%d", step)
			}
			for n := low; ; n += step { // a range that ends before it begins goes on over the end
				if low <= high && n > high || low > high && n > high+p.cycle {
					break
				}
				want |= 1 << (p.low + (n-p.low)%p.cycle)
			}
			items = append(items, text)
		}
		fields := []string{"0", "0", "0", "*", "*", "*"}
		for i := range parts {
			if parts[i].name == p.name {
				fields[i] = strings.Join(items, ",")
			}
		}
		rule, err := Parse(strings.Join(fields, " "), "")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]uint64{"second": rule.second, "minute": rule.minute, "hour": rule.hour, "month": uint64(rule.month)}[p.name]
		if got != want {
			t.Fatalf("%q as %s has %b, not %b", strings.Join(items, ","), p.name, got, want)
		}
		if again, err := Parse(rule.Expression(), ""); err != nil || again.cron != rule.cron {
			t.Fatalf("%q is not what it was: %v", rule.Expression(), err)
		}
	})
}
