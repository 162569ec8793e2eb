package calendar

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nightshift/models"
)

func TestShiftedExpressions(t *testing.T) {
	for _, c := range []struct {
		expression string
		minutes    int
		want       string // or why not
	}{
		{"0 8 * * *", 7, "7 8 * * *"},
		{"0 8 * * *", -5, "55 7 * * *"},
		{"30 23 * * *", 45, "15 0 * * *"},
		{"30 23 * * 1-5", 45, "15 0 * * 2-6"},
		{"30 23 * * sun", 45, "15 0 * * 1"},
		{"0 0 * * 0", -10, "50 23 * * 6"},
		{"@daily", 5, "5 0 * * *"},
		{"@hourly", 12, "12 * * * *"},
		{"@hourly", -12, "48 * * * *"},
		{"*/15 * * * *", 4, "4-49/15 * * * *"},
		{"*/15 * * * *", -15, "*/15 * * * *"},
		{"*/5 * * * *", 2, "2-57/5 * * * *"},
		{"0,30 8-18 * * 1-5", 10, "10,40 8-18 * * 1-5"},
		{"5 8-18/2 * * *", -10, "55 7-17/2 * * *"},
		{"30 0 8 * * *", 3, "30 3 8 * * *"},
		{"0 6 1 * *", 30, "30 6 1 * *"},
		{"0 6 * * mon#2", 30, "30 6 * * mon#2"},
		{"0 6 L * *", -30, "30 5 L * *"},
		{"* * * * *", 1, "* * * * *"},
		{"0,30 8-18 * * *", -10, "another hour"},
		{"*/15 8-18 * * *", 20, "another hour"},
		{"50 22,23 * * *", 20, "10 0,23 * * *"},
		{"0 5/6 * * *", 120, "0 1-19/6 * * *"},
		{"50 22,23 * * 1-5", 20, "another day"},
		{"50 23 1 * *", 20, "day of the month"},
		{"50 23 * 6 *", 20, "another month"},
		{"50 23 * * mon#2", 20, "within the month"},
		{"0 8 * * *", 1500, "more than a day"},
	} {
		r, err := Move(models.ScheduleRule{Kind: "cron", Expression: c.expression}, 0, c.minutes)
		if err != nil {
			if models.CodeOf(err) != models.InvalidSchedule || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q by %d: %v, not %q", c.expression, c.minutes, err, c.want)
			}
		} else if r.Expression != c.want {
			t.Errorf("%q by %d is %q, not %q", c.expression, c.minutes, r.Expression, c.want)
		}
	}
}

func TestShiftedIntervalsAndMoments(t *testing.T) {
	at := models.InstantOf(time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC))
	if r, err := Move(models.ScheduleRule{Kind: "once", RunAt: at}, 0, -20); err != nil || r.RunAt != at.Add(-20*time.Minute) {
		t.Errorf("once: %+v, %v", r, err)
	}
	if r, err := Move(models.ScheduleRule{Kind: "interval", EverySeconds: 3600}, at, 10); err != nil || r.StartAt != at.Add(10*time.Minute) {
		t.Errorf("an interval from its making: %+v, %v", r, err)
	}
	if r, err := Move(models.ScheduleRule{Kind: "interval", EverySeconds: 3600, StartAt: at}, 1, 10); err != nil || r.StartAt != at.Add(10*time.Minute) {
		t.Errorf("an interval from a moment: %+v, %v", r, err)
	}
	for _, r := range []models.ScheduleRule{{Kind: "interval", FromEnd: true}, {Kind: "event", Event: &models.EventRule{}}, {Kind: "drain", Drain: &models.DrainRule{}}} {
		if _, err := Move(r, at, 1); models.CodeOf(err) != models.InvalidSchedule {
			t.Errorf("%s: %v", r.Kind, err)
		}
	}
}

// What was moved fires when the rule fired, so many minutes later, over years without a change of the clock.
func TestAShiftedExpressionKeepsItsMeaning(t *testing.T) {
	part := func(t *rapid.T, name string, forms ...string) string { return rapid.SampledFrom(forms).Draw(t, name) }
	rapid.Check(t, func(t *rapid.T) {
		expression := strings.Join([]string{
			part(t, "minute", "0", "*", "5,20,59", "*/7", "*/15", "30-40", "3-50/9"), part(t, "hour", "*", "0", "23", "8-18", "*/6", "22-2", "5,17", "0-23"),
			part(t, "day", "*", "1", "L", "15,31", "3W"), part(t, "month", "*", "1-6", "2"), part(t, "weekday", "*", "1-5", "sun", "6,7", "fri-mon", "tue#2"),
		}, " ")
		minutes := rapid.IntRange(-180, 180).Draw(t, "minutes")
		moved, err := Move(models.ScheduleRule{Kind: "cron", Expression: expression}, 0, minutes)
		if err != nil {
			return
		}
		was, _ := Parse(expression, "")
		is, err := Parse(moved.Expression, "")
		if err != nil {
			t.Fatalf("%q by %d is %q: %v", expression, minutes, moved.Expression, err)
		}
		from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		want := times(Preview(was, Policy{}, from, 200))
		for i := range want {
			want[i] = want[i].Add(time.Duration(minutes) * time.Minute)
		}
		if got := times(Preview(is, Policy{}, from.Add(time.Duration(minutes)*time.Minute), 200)); !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("%q by %d is %q: it fires at %v, not at %v", expression, minutes, moved.Expression, got[:3], want[:3])
		}
	})
}

func times(list []Occurrence) (out []time.Time) {
	for _, o := range list {
		out = append(out, o.At)
	}
	return out
}

func TestMomentsCountWhatIsDense(t *testing.T) {
	at := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	table := func(expression string) *Timetable {
		out, err := Of(&models.ScheduleRule{Kind: "cron", Expression: expression}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, c := range []struct {
		expression string
		moments    int
		runs       int
	}{{"*/10 * * * *", 6, 6}, {"* * * * *", 60, 60}, {"* * * * * *", 60, 3600}, {"*/15 * * * * *", 60, 240}, {"*/7 0 * * * *", 1, 9}, {"0 7 * * *", 0, 0}} {
		list, looked := table(c.expression).Moments(at.Add(-time.Second), at.Add(time.Hour-time.Second), 1000)
		runs := 0
		for _, m := range list {
			runs += m.Runs
		}
		if len(list) != c.moments || runs != c.runs || looked > 6*len(list)+6 {
			t.Errorf("%s: %d moments with %d runs, looked up %d times", c.expression, len(list), runs, looked)
		}
	}
	if list, _ := table("* * * * *").Moments(at, at.Add(time.Hour), 5); len(list) != 5 {
		t.Errorf("%d moments, five were asked for", len(list))
	}
}
