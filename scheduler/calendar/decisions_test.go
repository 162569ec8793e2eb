package calendar

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"nightshift/models"
)

func zipNames(path string) (names []string, err error) {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	for _, file := range archive.File {
		if name := file.Name; !strings.HasSuffix(name, "/") && name != "Factory" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func TestTimetable(t *testing.T) {
	dates, err := ParseDates([]string{"2026-12-25", "2026-12-26"})
	if err != nil {
		t.Fatal(err)
	}
	table := Timetable{
		Rule: parsed(t, "0 8 * * *", "Africa/Lusaka"), Start: moment(t, "2026-12-24T06:00:00Z"), End: moment(t, "2026-12-30T06:00:00Z"), Exclude: dates,
		Freezes: []Freeze{{Begin: moment(t, "2026-12-28T00:00:00Z"), End: moment(t, "2026-12-29T06:00:00Z"), Reason: "moving house"}},
	}
	list, more := table.Between(moment(t, "2020-01-01T00:00:00Z"), moment(t, "2030-01-01T00:00:00Z"), 100)
	var got []string
	for _, o := range list {
		got = append(got, strings.TrimSpace(o.Local()+" "+o.Excluded))
	}
	want := []string{
		"2026-12-24T08:00:00+02:00", "2026-12-25T08:00:00+02:00 calendar_exclude names 2026-12-25", "2026-12-26T08:00:00+02:00 calendar_exclude names 2026-12-26",
		"2026-12-27T08:00:00+02:00", "2026-12-28T08:00:00+02:00 frozen until 2026-12-29T06:00:00Z: moving house", "2026-12-29T08:00:00+02:00", "2026-12-30T08:00:00+02:00",
	}
	if more || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n, more := table.Count(moment(t, "2020-01-01T00:00:00Z"), moment(t, "2030-01-01T00:00:00Z"), 100); n != 4 || more {
		t.Errorf("%d runs, more: %v", n, more)
	}
	if o, ok := table.NextRun(moment(t, "2026-12-24T06:00:00Z")); !ok || o.Local() != "2026-12-27T08:00:00+02:00" {
		t.Errorf("the next run is %v", o)
	}
	if o, ok := table.PrevRun(moment(t, "2026-12-27T06:00:00Z")); !ok || o.Local() != "2026-12-24T08:00:00+02:00" {
		t.Errorf("the run before is %v", o)
	}
	if _, ok := table.PrevRun(moment(t, "2026-12-24T06:00:00Z")); ok {
		t.Error("there is a run before the first")
	}
	if _, ok := table.NextRun(moment(t, "2026-12-30T06:00:00Z")); ok {
		t.Error("there is a run after the last")
	}
	if _, err := ParseDates([]string{"2026-02-30"}); models.CodeOf(err) != models.InvalidSchedule {
		t.Errorf("30 February is excluded: %v", err)
	}
}

// The day on which the clock goes back an hour at midnight is left out with both its last hours, and no second of the next.
func TestExcludedDateAtAClockChange(t *testing.T) {
	dates, err := ParseDates([]string{"2018-02-17"})
	if err != nil {
		t.Fatal(err)
	}
	table := Timetable{Rule: parsed(t, "* * * * * *", "America/Sao_Paulo"), Exclude: dates}
	o, ok := table.NextRun(moment(t, "2018-02-17T05:00:00Z"))
	if !ok || o.Local() != "2018-02-18T00:00:00-03:00" {
		t.Errorf("the next run is %s", o.Local())
	}
	o, ok = table.PrevRun(o.At)
	if !ok || o.Local() != "2018-02-16T23:59:59-02:00" {
		t.Errorf("the run before is %s", o.Local())
	}
}

func TestDue(t *testing.T) {
	table := Timetable{Rule: parsed(t, "*/10 * * * *", "UTC")}
	for _, c := range []struct {
		name, mark, now, paused string
		misfire                 Misfire
		want                    string
	}{
		{"on time", "07:55:00", "08:00:03", "", Misfire{Grace: time.Minute}, "08:00 dispatched"},
		{"as late as allowed", "07:55:00", "08:01:00", "", Misfire{Grace: time.Minute, Policy: SkipMissed}, "08:00 dispatched"},
		{"a second later", "07:55:00", "08:01:01", "", Misfire{Grace: time.Minute, Policy: SkipMissed}, "08:00 misfired"},
		{"nothing due", "08:00:00", "08:09:59", "", Misfire{Grace: time.Minute}, ""},
		{"an hour down, skip", "07:00:00", "08:00:30", "", Misfire{Grace: time.Minute, Policy: SkipMissed}, "07:10 misfired, 07:20 misfired, 07:30 misfired, 07:40 misfired, 07:50 misfired, 08:00 dispatched"},
		{"an hour down, run once", "07:00:00", "08:05:00", "", Misfire{Grace: time.Minute}, "07:10 misfired, 07:20 misfired, 07:30 misfired, 07:40 misfired, 07:50 misfired, 08:00 dispatched"},
		{"an hour down, catch up", "07:00:00", "08:05:00", "", Misfire{Grace: time.Minute, Policy: CatchUp, Limit: 3}, "07:10 misfired, 07:20 misfired, 07:30 misfired, 07:40 dispatched, 07:50 dispatched, 08:00 dispatched"},
		{"catch up, but not what has expired", "07:00:00", "08:05:00", "", Misfire{Grace: time.Minute, Policy: CatchUp, Limit: 3, Expires: 20 * time.Minute}, "07:10 misfired, 07:20 misfired, 07:30 misfired, 07:40 expired, 07:50 dispatched, 08:00 dispatched"},
		{"now or not at all", "07:00:00", "07:13:00", "", Misfire{Grace: 5 * time.Minute, Expires: 2 * time.Minute}, "07:10 expired"},
		{"paused", "07:35:00", "08:05:00", "paused by a person", Misfire{Grace: time.Minute}, "07:40 skipped_paused, 07:50 skipped_paused, 08:00 skipped_paused"},
	} {
		fires, mark, more := table.Due(Tick{Mark: moment(t, "2026-11-29T"+c.mark+"Z"), Now: moment(t, "2026-11-29T"+c.now+"Z"), Misfire: c.misfire, Paused: c.paused, Limit: 100})
		var got []string
		for _, f := range fires {
			got = append(got, f.At.Format("15:04")+" "+string(f.Outcome))
			if (f.Outcome == Dispatched) != (f.Cause == "") {
				t.Errorf("%s: %s is %s because of %q", c.name, f.At, f.Outcome, f.Cause)
			}
		}
		if strings.Join(got, ", ") != c.want || more || mark != moment(t, "2026-11-29T"+c.now+"Z") {
			t.Errorf("%s: got %s until %s, want %s", c.name, strings.Join(got, ", "), mark, c.want)
		}
	}
	for _, wrong := range []Misfire{{Policy: "later"}, {Grace: -1}, {Limit: -1}, {Limit: 5000}, {Expires: -1}} {
		if err := wrong.Check(); models.CodeOf(err) != models.InvalidSchedule {
			t.Errorf("%+v passed: %v", wrong, err)
		}
	}
}

// A year of ticks at odd moments, with crashes after which a tick is decided again from the mark that was saved: every
// occurrence is decided, none twice under the key of its row, none that the rule does not have.
func TestAYearOfTicks(t *testing.T) {
	begin := moment(t, "2026-11-29T00:00:00Z")
	end := begin.AddDate(1, 0, 0)
	expressions := []string{"30 2 * * *", "0 0 * * *", "*/30 * * * *", "15 1,2,3 * * *", "0 9-17 * * mon-fri", "0 0 L * *", "59 23 * * sun"}
	rng := rand.New(rand.NewPCG(1, 2))
	total, late := 0, 0
	for n := range 12 * len(expressions) {
		table := Timetable{Rule: parsed(t, expressions[n%len(expressions)], notable[n%12]), Policy: allPolicies[n%len(allPolicies)]}
		want, _ := table.Between(begin, end, 1<<20)
		rows := map[int64]Outcome{}
		for mark, now := begin, begin; now.Before(end); {
			now = now.Add(time.Duration(1+rng.IntN(90)) * time.Minute)
			if rng.IntN(50) == 0 {
				now = now.Add(time.Duration(rng.IntN(72)) * time.Hour) // nobody was there
			}
			if now.After(end) {
				now = end
			}
			for more := true; more; {
				var fires []Fire
				saved := mark
				fires, mark, more = table.Due(Tick{Mark: mark, Now: now, Misfire: Misfire{Grace: 2 * time.Hour, Policy: RunOnce}, Limit: 1 + rng.IntN(20)})
				if rng.IntN(10) == 0 { // the commit was lost
					mark, more = saved, true
					continue
				}
				for _, f := range fires {
					if before, twice := rows[f.At.Unix()]; twice {
						t.Fatalf("%q in %s: %s is %s after it was %s", table.Rule.expression, table.Rule.zone, f.At, f.Outcome, before)
					}
					rows[f.At.Unix()] = f.Outcome
					if f.Outcome == Misfired {
						late++
					}
				}
			}
		}
		for _, o := range want {
			if rows[o.At.Unix()] == "" {
				t.Fatalf("%q in %s: nothing became of %s", table.Rule.expression, table.Rule.zone, o.At)
			}
		}
		if len(rows) != len(want) {
			t.Fatalf("%q in %s: %d rows for %d occurrences", table.Rule.expression, table.Rule.zone, len(rows), len(want))
		}
		total += len(want)
	}
	if late == 0 || late*2 > total {
		t.Errorf("%d of %d misfired", late, total)
	}
	t.Logf("%d occurrences, %d misfired", total, late)
}

func TestTriggers(t *testing.T) {
	at := func(second int) time.Time {
		return moment(t, "2026-11-29T08:00:00Z").Add(time.Duration(second) * time.Second)
	}
	d := Debounce{Quiet: 10 * time.Second, MostWait: 30 * time.Second, MostEvents: 5}
	for _, c := range []struct{ first, last, count, want int }{
		{0, 0, 1, 10},  // one alone
		{0, 9, 2, 19},  // another puts it off
		{0, 25, 3, 30}, // not for ever
		{0, 7, 5, 7},   // enough of them
		{0, 7, 50, 7},
	} {
		if got := d.FireAt(at(c.first), at(c.last), c.count); !got.Equal(at(c.want)) {
			t.Errorf("%d events from %d to %d: fires at %s", c.count, c.first, c.last, got)
		}
	}
	if got := (Debounce{Quiet: time.Minute}).FireAt(at(0), at(500), 1000); !got.Equal(at(560)) {
		t.Errorf("without bounds it fires at %s", got)
	}
	if d.Take(3) != 3 || d.Take(7) != 5 || (Debounce{}).Take(7) != 7 {
		t.Error("takes another number than its bound")
	}
	drain := Drain{MostItems: 250, BatchSize: 100}
	if got := drain.FireAt(at(0), at(5)); !got.Equal(at(5)) {
		t.Errorf("an idle drain fires at %s", got)
	}
	if got := drain.FireAt(at(5), at(5)); !got.Equal(at(6)) {
		t.Errorf("a busy drain fires at %s", got)
	}
	for waiting, want := range map[int][]int{0: nil, 1: {1}, 100: {100}, 101: {100, 1}, 1000: {100, 100, 50}} { // any order
		if got := drain.Split(make([]int32, waiting), 1000); !slices.Equal(got, want) {
			t.Errorf("%d items: %v, want %v", waiting, got, want)
		}
	}
	if got := drain.Split([]int32{400, 400, 400, 2000, 100, 100}, 1000); !slices.Equal(got, []int{2, 1, 1, 2}) {
		t.Errorf("by size: %v", got)
	}
	for _, c := range []struct {
		parts, waiting int
		want           []int
	}{
		{4, 2, []int{1, 1}}, {4, 10, []int{3, 3, 2, 2}}, {3, 100, []int{10, 10, 10}}, {1, 25, []int{10}}, {25, 25, slices.Repeat([]int{1}, 25)}, {4, 0, nil},
	} {
		shared := Drain{MostItems: 100, BatchSize: 10, Parts: c.parts}
		if got := shared.Split(make([]int32, c.waiting), 1000); !slices.Equal(got, c.want) {
			t.Errorf("%d over %d parts are %v, want %v", c.waiting, c.parts, got, c.want)
		}
	}
	if got := (Drain{MostItems: 100, BatchSize: 10, Parts: 2}).Split([]int32{600, 600, 600, 600, 100, 100}, 1000); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("what is too large for its parts: %v", got) // the rest waits for the next run
	}
}

func TestOverlapping(t *testing.T) {
	for _, c := range []struct {
		policy  Overlapping
		meeting Meeting
		want    string
	}{
		{"", Meeting{}, "start dispatched"},
		{SkipNew, Meeting{}, "start dispatched"},
		{SkipNew, Meeting{Running: true}, "skipped_overlap"},
		{QueueOne, Meeting{}, "start dispatched"},
		{QueueOne, Meeting{Running: true}, "wait"},
		{QueueOne, Meeting{Running: true, Waiting: true}, "wait supersede"},
		{Allow, Meeting{Running: true, Waiting: true}, "start dispatched"},
		{CancelPrevious, Meeting{}, "start dispatched"},
		{CancelPrevious, Meeting{Running: true}, "start dispatched cancel"},
		{CancelPrevious, Meeting{Running: true, Waiting: true}, "start dispatched cancel supersede"},
	} {
		v := c.policy.Meet(c.meeting)
		var got []string
		for _, said := range []struct {
			is   bool
			word string
		}{{v.Start, "start"}, {v.Wait, "wait"}, {v.Outcome != "", string(v.Outcome)}, {v.CancelRunning, "cancel"}, {v.SupersedeWaiting, "supersede"}} {
			if said.is {
				got = append(got, said.word)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q meets %+v: %v, want %s", c.policy, c.meeting, got, c.want)
		}
	}
	if err := Overlapping("both").Check(); models.CodeOf(err) != models.InvalidSchedule {
		t.Errorf("an unknown policy passed: %v", err)
	}
}

func TestJitterIsEvenAndTheSameEachTime(t *testing.T) {
	at := moment(t, "2026-11-29T08:00:00Z")
	const schedules, most = 20000, 60
	var minutes [most]int
	for n := range schedules {
		id := fmt.Sprintf("sch_%05d", n)
		delay := Jitter(id, at, most)
		if delay < 0 || delay > most*time.Second || delay != Jitter(id, at.In(time.FixedZone("", 3600)), most) {
			t.Fatalf("%s is delayed by %s", id, delay)
		}
		minutes[min(int(delay/time.Second), most-1)]++
	}
	for second, n := range minutes {
		if n < schedules/most*7/10 || n > schedules/most*13/10 {
			t.Errorf("second %d has %d of %d schedules", second, n, schedules)
		}
	}
	if Jitter("sch_1", at, 0) != 0 || Jitter("sch_1", at, 60) == Jitter("sch_1", at.Add(time.Hour), 60) {
		t.Error("jitter without seconds, or the same for two occurrences")
	}
}

func TestExpand(t *testing.T) {
	values := Values{
		ScheduledFor: moment(t, "2026-11-29T10:00:00+02:00"), RunID: "run_1", PartitionIndex: 2, PartitionCount: 8,
		Watermarks: map[string]string{"docs": `a"b\`}, Vars: map[string]string{"region": "eu", "nested": "{{run_id}}", "line": "one\ntwo"},
	}
	for _, c := range []struct{ payload, want string }{
		{`{"at":"{{scheduled_for}}","run":"{{ run_id }}"}`, `{"at":"2026-11-29T08:00:00Z","run":"run_1"}`},
		{`{"shard":"{{partition.index}}/{{partition.count}}"}`, `{"shard":"2/8"}`},
		{`{"since":"{{watermark.docs}}","never":"{{watermark.other}}"}`, `{"since":"a\"b\\","never":""}`},
		{`{"region":"{{vars.region}}","text":"{{vars.line}}"}`, `{"region":"eu","text":"one\ntwo"}`},
		{`{"once":"{{vars.nested}}"}`, `{"once":"{{run_id}}"}`},
		{`{"mine":"{{name}} {{#each}} {{vars.}} {{","x":{"y":{"z":1}}}`, `{"mine":"{{name}} {{#each}} {{vars.}} {{","x":{"y":{"z":1}}}`},
		{`{"braces":"{{{run_id}}}"}`, `{"braces":"{run_1}"}`},
		{``, ``},
	} {
		got, err := Expand(c.payload, values, 1000)
		if err != nil || got != c.want {
			t.Errorf("%s: got %s (%v), want %s", c.payload, got, err, c.want)
		}
		if got != "" && !json.Valid([]byte(got)) {
			t.Errorf("%s is no JSON", got)
		}
	}
	if _, err := Expand(`"{{vars.gone}}"`, values, 1000); models.CodeOf(err) != models.ValidationFailed || !strings.Contains(err.Error(), `"gone"`) {
		t.Errorf("a variable that is not set: %v", err)
	}
	if _, err := Expand(strings.Repeat("{{vars.region}}", 1000), values, 100); models.CodeOf(err) != models.ValidationFailed {
		t.Errorf("a payload that grows too large: %v", err)
	}
	marks, vars := Placeholders(`{{watermark.b}} {{vars.x}} {{watermark.a}} {{watermark.b}} {{run_id}}`)
	if !slices.Equal(marks, []string{"a", "b"}) || !slices.Equal(vars, []string{"x"}) {
		t.Errorf("asks for %v and %v", marks, vars)
	}
}

func TestChangesInWords(t *testing.T) {
	rule := parsed(t, "30 2 * * *", "Europe/Paris")
	got := rule.Changes(moment(t, "2027-01-01T00:00:00Z"), moment(t, "2028-01-01T00:00:00Z"), Policy{Overlap: Both})
	want := []string{
		"2027-03-28 02:30 does not come in Europe/Paris: the clock goes from 02:00 to 03:00. It runs at the jump, 2027-03-28T03:00:00+02:00",
		"2027-10-31 02:30 comes twice in Europe/Paris: the clock goes from 03:00 back to 02:00. It runs both times, 2027-10-31T02:30:00+02:00 and 2027-10-31T02:30:00+01:00",
	}
	for i, c := range got {
		if i >= len(want) || c.Words != want[i] {
			t.Errorf("got %s", c.Words)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d changes", len(got))
	}
	for _, expression := range []string{"30 4 * * *", "*/5 * * * *"} {
		if got := parsed(t, expression, "Europe/Paris").Changes(moment(t, "2027-01-01T00:00:00Z"), moment(t, "2090-01-01T00:00:00Z"), Policy{}); len(got) != 0 {
			t.Errorf("%q meets %v", expression, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"0 8 * * *", "*/5 9-17 * * mon-fri", "0 0 L-3,15W,LW * *", "0 0 * * 5L,fri#2", "1--100000000 * * * *", "@daily", "@every 5m", "CRON_TZ=UTC 0 0 * * *", "0 0 29 2 */7", "08:30", "* * * * * * *"} {
		f.Add(seed, "Europe/Paris")
	}
	f.Add("0 8 * * *", "africa/lusaka")
	from := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, expression, zone string) {
		if words := Words(expression); len(words) > 2000 {
			t.Fatalf("%d bytes of words", len(words))
		}
		rule, err := Parse(expression, zone)
		if err != nil {
			if models.CodeOf(err) != models.InvalidSchedule || len(err.Error()) > 2000 {
				t.Fatalf("%q: %v", expression, err)
			}
			if form := proposed.FindStringSubmatch(err.Error()); form != nil {
				if _, again := Parse(form[1], ""); again != nil {
					t.Fatalf("%q: proposes %q, which is refused: %v", expression, form[1], again)
				}
			}
			return
		}
		if again, err := Parse(rule.Expression(), zone); err != nil || again.cron != rule.cron {
			t.Fatalf("%q is not what %q is: %v", rule.Expression(), expression, err)
		}
		at, _, ok := rule.Next(from, Policy{})
		if ok {
			if prev, _, ok := rule.Prev(at.Add(1), Policy{}); !ok || !prev.Equal(at) {
				t.Fatalf("%q: %s is followed back by %s", expression, at, prev)
			}
		}
		Preview(rule, Policy{}, from, 3)
	})
}

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct{ expression, zone string }{
		{"* * * * *", "UTC"}, {"30 2 * * *", "Europe/Paris"}, {"*/15 9-17 * * mon-fri", "America/New_York"}, {"0 0 LW * *", "Asia/Tokyo"}, {"0 0 29 2 */7", "Europe/Paris"},
	} {
		b.Run(c.expression+" "+c.zone, func(b *testing.B) {
			rule := parsed(b, c.expression, c.zone)
			begin := moment(b, "2026-11-29T00:00:00Z")
			for at, i := begin, 0; b.Loop(); i++ {
				if i%100 == 0 {
					at = begin
				}
				at, _, _ = rule.Next(at, Policy{})
			}
		})
	}
}

func BenchmarkPrev(b *testing.B) {
	rule, at := parsed(b, "30 2 * * *", "Europe/Paris"), moment(b, "2026-11-29T00:00:00Z")
	for b.Loop() {
		rule.Prev(at, Policy{})
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := Parse("*/15 9-17 * * mon-fri", "Europe/Paris"); err != nil {
			b.Fatal(err)
		}
	}
}
