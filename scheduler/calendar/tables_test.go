package calendar

import (
	"strings"
	"testing"
	"time"

	"nightshift/models"
)

func moment(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func parsed(t testing.TB, expression, zone string) *Rule {
	t.Helper()
	rule, err := Parse(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func TestNext(t *testing.T) {
	for _, c := range []struct{ expression, zone, from, want string }{
		{"0 8 * * *", "Africa/Lusaka", "2026-11-29T00:00:00Z", "2026-11-29T08:00:00+02:00 2026-11-30T08:00:00+02:00"},
		{"*/15 9-10 * * mon-fri", "UTC", "2026-11-27T10:30:00Z", "2026-11-27T10:45:00Z 2026-11-30T09:00:00Z"},
		{"30 4 10 * * *", "UTC", "2026-11-29T10:04:30Z", "2026-11-30T10:04:30Z"},
		{"*/20 59 23 31 12 *", "UTC", "2026-12-31T23:59:20Z", "2026-12-31T23:59:40Z 2027-12-31T23:59:00Z"},
		{"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z"},
		{"0 0 29 2 */7", "UTC", "2072-01-01T00:00:00Z", "2088-02-29T00:00:00Z"},
		{"0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 0 L 2 *", "UTC", "2099-12-31T00:00:00Z", "2100-02-28T00:00:00Z"},
		{"0 0 L * *", "UTC", "2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z 2026-03-31T00:00:00Z"},
		{"0 0 L-2 * *", "UTC", "2026-02-01T00:00:00Z", "2026-02-26T00:00:00Z 2026-03-29T00:00:00Z"},
		{"0 0 L-30 * *", "UTC", "2026-01-02T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"0 0 LW * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-30T00:00:00Z 2026-02-27T00:00:00Z"},
		{"0 0 15W * *", "UTC", "2026-02-01T00:00:00Z", "2026-02-16T00:00:00Z 2026-03-16T00:00:00Z 2026-04-15T00:00:00Z"},
		{"0 0 1W * *", "UTC", "2026-07-30T00:00:00Z", "2026-08-03T00:00:00Z"},
		{"0 0 31W 5 *", "UTC", "2026-01-01T00:00:00Z", "2026-05-29T00:00:00Z"},
		{"0 0 * * fri#2", "UTC", "2026-11-01T00:00:00Z", "2026-11-13T00:00:00Z 2026-12-11T00:00:00Z"},
		{"0 0 * * 5L", "UTC", "2026-11-01T00:00:00Z", "2026-11-27T00:00:00Z 2026-12-25T00:00:00Z"},
		{"0 0 * * 1#5", "UTC", "2026-11-01T00:00:00Z", "2026-11-30T00:00:00Z 2027-03-29T00:00:00Z"},
		{"0 0 * * sat-mon", "UTC", "2026-11-27T00:00:00Z", "2026-11-28T00:00:00Z 2026-11-29T00:00:00Z 2026-11-30T00:00:00Z 2026-12-05T00:00:00Z"},
		{"0 22-2/2 * * *", "UTC", "2026-11-27T21:00:00Z", "2026-11-27T22:00:00Z 2026-11-28T00:00:00Z 2026-11-28T02:00:00Z 2026-11-28T22:00:00Z"},
		{"0 0 1 nov-jan *", "UTC", "2026-11-27T21:00:00Z", "2026-12-01T00:00:00Z 2027-01-01T00:00:00Z 2027-11-01T00:00:00Z"},
		{"0 0 13 * fri", "UTC", "2026-11-01T00:00:00Z", "2026-11-06T00:00:00Z 2026-11-13T00:00:00Z 2026-11-20T00:00:00Z"},
		{"0 0 */10 * fri", "UTC", "2026-11-01T00:00:00Z", "2026-12-11T00:00:00Z 2027-01-01T00:00:00Z"},
		{"@daily", "", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"},
		{"@HOURLY", "UTC", "2026-11-01T00:00:00Z", "2026-11-01T01:00:00Z"},
		{"0 0 ? * 7", "UTC", "2026-11-01T00:00:00Z", "2026-11-08T00:00:00Z"},
		{"0 0 1 1 *", "UTC", "1969-06-01T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"0 0 1 1 *", "UTC", "1900-06-01T00:00:00Z", "1901-01-01T00:00:00Z"},
		{"0 0 1 1 *", "UTC", "9999-06-01T00:00:00Z", ""},
	} {
		rule, at := parsed(t, c.expression, c.zone), moment(t, c.from)
		var got []string
		for range max(1, len(strings.Fields(c.want))) {
			next, _, ok := rule.Next(at, Policy{})
			if !ok {
				break
			}
			got = append(got, next.Format(time.RFC3339))
			at = next
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q in %q from %s:\n got %s\nwant %s", c.expression, c.zone, c.from, strings.Join(got, " "), c.want)
		}
	}
}

// Each policy pair at changes of every sort, with the note that the preview gives.
func TestClockChanges(t *testing.T) {
	for _, c := range []struct {
		name, expression, zone, from string
		policy                       Policy
		want                         string
	}{
		{"gap, shifted to the jump", "30 2 * * *", "Europe/Paris", "2027-03-27T12:00:00Z", Policy{}, "2027-03-28T03:00:00+02:00 dst_gap, 2027-03-29T02:30:00+02:00"},
		{"gap, skipped", "30 2 * * *", "Europe/Paris", "2027-03-27T12:00:00Z", Policy{Gap: Skip}, "2027-03-29T02:30:00+02:00"},
		{"many in a gap run once", "*/10 1-3 * * *", "America/New_York", "2027-03-14T06:45:00Z", Policy{}, "2027-03-14T01:50:00-05:00, 2027-03-14T03:00:00-04:00 dst_gap, 2027-03-14T03:10:00-04:00"},
		{"overlap, first", "30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", Policy{}, "2026-11-01T01:30:00-04:00 dst_overlap, 2026-11-02T01:30:00-05:00"},
		{"overlap, second", "30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", Policy{Overlap: Second}, "2026-11-01T01:30:00-05:00 dst_overlap, 2026-11-02T01:30:00-05:00"},
		{"overlap, both", "30 1 * * *", "America/New_York", "2026-11-01T00:00:00Z", Policy{Overlap: Both}, "2026-11-01T01:30:00-04:00 dst_overlap, 2026-11-01T01:30:00-05:00 dst_overlap, 2026-11-02T01:30:00-05:00"},
		{"real time in a gap", "*/30 * * * *", "Europe/Paris", "2027-03-28T00:30:00Z", Policy{}, "2027-03-28T03:00:00+02:00, 2027-03-28T03:30:00+02:00"},
		{"real time in an overlap", "*/30 * * * *", "Europe/Paris", "2026-10-25T00:15:00Z", Policy{}, "2026-10-25T02:30:00+02:00, 2026-10-25T02:00:00+01:00, 2026-10-25T02:30:00+01:00"},
		{"a midnight that does not come", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", Policy{}, "2018-11-04T01:00:00-02:00 dst_gap, 2018-11-05T00:00:00-02:00"},
		{"a midnight that does not come, skipped", "0 0 * * *", "Africa/Cairo", "2027-04-29T12:00:00Z", Policy{Gap: Skip}, "2027-05-01T00:00:00+03:00"},
		{"a midnight that comes twice", "0 0 * * *", "America/Havana", "2026-10-31T12:00:00Z", Policy{Overlap: Both}, "2026-11-01T00:00:00-04:00 dst_overlap, 2026-11-01T00:00:00-05:00 dst_overlap, 2026-11-02T00:00:00-05:00"},
		{"half an hour forward", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", Policy{}, "2026-10-04T02:30:00+11:00 dst_gap, 2026-10-05T02:15:00+11:00"},
		{"half an hour back", "45 1 * * *", "Australia/Lord_Howe", "2027-04-03T00:00:00Z", Policy{Overlap: Second}, "2027-04-04T01:45:00+10:30 dst_overlap, 2027-04-05T01:45:00+10:30"},
		{"a day that is left out", "0 8 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", Policy{}, "2011-12-29T08:00:00-10:00, 2011-12-31T00:00:00+14:00 dst_gap, 2011-12-31T08:00:00+14:00"},
		{"a day that is left out, skipped", "0 8 * * *", "Pacific/Kwajalein", "1993-08-20T20:30:00Z", Policy{Gap: Skip}, "1993-08-22T08:00:00+12:00"},
		{"its date alone is asked for", "0 8 30 12 *", "Pacific/Apia", "2011-01-01T00:00:00Z", Policy{}, "2011-12-31T00:00:00+14:00 dst_gap, 2012-12-30T08:00:00+14:00"},
		{"an offset with seconds", "0 0 * * *", "Africa/Monrovia", "1972-01-05T12:00:00Z", Policy{}, "1972-01-06T00:00:00-00:44, 1972-01-07T00:44:30Z dst_gap, 1972-01-08T00:00:00Z"},
		{"the last day of a leap year, years on", "0 12 * * *", "Europe/Paris", "2040-12-30T12:00:00Z", Policy{}, "2040-12-31T12:00:00+01:00, 2041-01-01T12:00:00+01:00"},
	} {
		var got []string
		for _, o := range Preview(parsed(t, c.expression, c.zone), c.policy, moment(t, c.from), strings.Count(c.want, ",")+1) {
			got = append(got, strings.TrimSpace(o.Local()+" "+string(o.Note)))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q in %s %v:\n got %s\nwant %s", c.name, c.expression, c.zone, c.policy, strings.Join(got, ", "), c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ expression, zone, want string }{
		{"", "", "has 0 fields"},
		{"* * * *", "", `nearest valid form is "* * * * *"`},
		{"0 0 0 1 1 ? 2027", "", "has 7 fields"},
		{"0 0 12 1 1 ? 2027", "", `nearest valid form is "0 12 1 1 ?"`},
		{"60 8 * * *", "", `minute "60" is not in 0–59; the nearest valid form is "0 8 * * *"`},
		{"0 24 * * *", "", `hour "24" is not in 0–23; the nearest valid form is "0 0 * * *"`},
		{"0 8 32 * *", "", `the nearest valid form is "0 8 31 * *"`},
		{"0 8 0 * *", "", `the nearest valid form is "0 8 1 * *"`},
		{"0 8 * 13 *", "", `the nearest valid form is "0 8 * 12 *"`},
		{"0 8 * * 8", "", `the nearest valid form is "0 8 * * 7"`},
		{"0 8 * * monday", "", `the nearest valid form is "0 8 * * mon"`},
		{"0 8 * january-march *", "", `the nearest valid form is "0 8 * jan-mar *"`},
		{"*/0 * * * *", "", `the nearest valid form is "* * * * *"`},
		{"*/60 * * * *", "", `the nearest valid form is "0 * * * *"`},
		{"0 */24 * * *", "", `the nearest valid form is "0 0 * * *"`},
		{"1--100000000 * * * *", "", `the nearest valid form is "1-59 * * * *"`},
		{"1-100000000 * * * *", "", `the nearest valid form is "1-59 * * * *"`},
		{"+5 * * * *", "", `"+5" is not in 0–59`},
		{"-5 * * * *", "", "is not in 0–59"},
		{"5, * * * *", "", `the nearest valid form is "5 * * * *"`},
		{"0 8 * * L", "", `the nearest valid form is "0 8 * * 6L"`},
		{"0 8 * * 5#6", "", `the nearest valid form is "0 8 * * 5#5"`},
		{"0 8 L-31 * *", "", `the nearest valid form is "0 8 L-30 * *"`},
		{"0 8 40W * *", "", `the nearest valid form is "0 8 31W * *"`},
		{"? 8 * * *", "", `the nearest valid form is "* 8 * * *"`},
		{"0 0 30 2 *", "", `never fires: no such day comes in any year; the nearest valid form is "0 0 L 2 *"`},
		{"0 0 31 4,6,9,11 *", "", `the nearest valid form is "0 0 L 4,6,9,11 *"`},
		{"0 0 L-29 2 *", "", "never fires"},
		{"08:30", "", `the nearest valid form is "30 8 * * *"`},
		{"@dayly", "", `the nearest valid form is "@daily"`},
		{"@reboot", "", "no such macro"},
		{"@every 5m", "", `use kind "interval" with every_seconds 300`},
		{"CRON_TZ=Europe/Paris 0 8 * * *", "", `set timezone to "Europe/Paris"; the nearest valid form is "0 8 * * *"`},
		{"0 8 * * *\x00", "", "has no meaning here"},
		{"０ 8 * * *", "", "has no meaning here"},
		{strings.Repeat("1,", 200) + "1 * * * *", "", "256 are the most"},
		{"0 8 * * *", "Local", "local time of a machine"},
		{"0 8 * * *", "local", "local time of a machine"},
		{"0 8 * * *", "Africa/Lusak", `the nearest is "Africa/Lusaka"`},
		{"0 8 * * *", "africa/lusaka", `the nearest is "Africa/Lusaka"`},
		{"0 8 * * *", "Lusaka", `the nearest is "Africa/Lusaka"`},
		{"0 8 * * *", "New York", `the nearest is "America/New_York"`},
		{"0 8 * * *", "CEST", `the nearest is "Europe/Berlin"`},
		{"0 8 * * *", "UTC+2", `the nearest is "Etc/GMT-2"`},
		{"0 8 * * *", "+02:00", `the nearest is "Etc/GMT-2"`},
		{"0 8 * * *", "../../etc/passwd", "is not in the tz database"},
		{"0 8 * * *", "right/Europe/Paris", "is not in the tz database"},
		{"0 8 * * *", strings.Repeat("A", 100000), "is not in the tz database"},
	} {
		_, err := Parse(c.expression, c.zone)
		if models.CodeOf(err) != models.InvalidSchedule || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 {
			t.Errorf("%.80q in %.80q: got %.400v, want %s", c.expression, c.zone, err, c.want)
		}
	}
}

func TestShortestAndPeriod(t *testing.T) {
	const days = 24 * time.Hour
	for _, c := range []struct {
		expression       string
		shortest, period time.Duration
	}{
		{"* * * * * *", time.Second, time.Second},
		{"* * * * *", time.Minute, time.Minute},
		{"*/5 * * * *", 5 * time.Minute, 5 * time.Minute},
		{"0,59 * * * *", time.Minute, 30 * time.Minute},
		{"0 8 * * *", days, days},
		{"0 8 * * 1", 7 * days, 7 * days},
		{"0 8,20 * * 1", 12 * time.Hour, 3*days + 12*time.Hour},
		{"0 0,23 * * *", time.Hour, 12 * time.Hour},
		{"0 0,23 * * 1", 23 * time.Hour, 3*days + 12*time.Hour},
		{"0 0 1 * *", 28 * days, 30*days + 10*time.Hour + 30*time.Minute},
		{"0 0 1,31 * *", days, 1461 * days / 76},
	} {
		rule := parsed(t, c.expression, "")
		if rule.Shortest() != c.shortest || rule.Period() != c.period {
			t.Errorf("%q: shortest %s, period %s, want %s and %s", c.expression, rule.Shortest(), rule.Period(), c.shortest, c.period)
		}
	}
}

func TestCheck(t *testing.T) {
	from := moment(t, "2026-11-29T00:00:00Z")
	for _, c := range []struct {
		expression string
		least      time.Duration
		want       string
	}{
		{"* * * * *", time.Minute, ""},
		{"* * * * * *", time.Second, ""},
		{"* * * * * *", 10 * time.Second, `nearest valid form is "*/10 * * * * *"`},
		{"* * * * *", 5 * time.Minute, `fires after 1 minute, and the least allowed is 5 minutes; the nearest valid form is "*/5 * * * *"`},
		{"0,1 9 * * mon", time.Hour, `nearest valid form is "0 9 * * mon"`},
		{"*/7 * * * *", 2 * time.Hour, `nearest valid form is "0 */2 * * *"`},
		{"0 * * * *", 24 * time.Hour, `nearest valid form is "0 0 * * *"`},
		{"0 8 * * *", 48 * time.Hour, "fires after 1 day, and the least allowed is 2 days"},
	} {
		err := parsed(t, c.expression, "").Check(from, Policy{}, c.least)
		if c.want == "" && err != nil || c.want != "" && (models.CodeOf(err) != models.InvalidSchedule || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q, at least %s: got %v, want %s", c.expression, c.least, err, c.want)
		}
	}
	if err := parsed(t, "* * * * *", "").Check(from, Policy{Gap: "jump"}, 0); models.CodeOf(err) != models.InvalidSchedule {
		t.Errorf("an unknown gap policy passed: %v", err)
	}
	past, err := Once(from, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := past.Check(from, Policy{}, 0); err == nil || !strings.Contains(err.Error(), "has passed") {
		t.Errorf("a moment that has passed: %v", err)
	}
	often, err := Every(from, 10*time.Second, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := often.Check(from, Policy{}, time.Minute); err == nil || !strings.Contains(err.Error(), "nearest valid form is 60") {
		t.Errorf("an interval that is too short: %v", err)
	}
}

func TestIntervalHasNoDrift(t *testing.T) {
	anchor := moment(t, "2026-03-27T10:00:00.25Z")
	rule, err := Every(anchor, 36*time.Hour, "Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 1000; n++ {
		want := anchor.Add(time.Duration(n) * 36 * time.Hour)
		for _, after := range []time.Time{want.Add(-36 * time.Hour), want.Add(-1), want.Add(-time.Hour)} {
			if got, _, ok := rule.Next(after, Policy{}); !ok || !got.Equal(want) {
				t.Fatalf("after %s comes %s, want %s", after, got, want)
			}
		}
		if got, _, ok := rule.Prev(want.Add(time.Minute), Policy{}); !ok || !got.Equal(want) {
			t.Fatalf("before %s came %s, want %s", want.Add(time.Minute), got, want)
		}
	}
	if got, _, ok := rule.Next(anchor.AddDate(-10, 0, 0), Policy{}); !ok || !got.Equal(anchor.Add(36*time.Hour)) {
		t.Errorf("long before its anchor comes %s", got)
	}
	if got, _, ok := rule.Prev(anchor.Add(36*time.Hour), Policy{}); ok {
		t.Errorf("before its first came %s", got)
	}
	for _, wrong := range []time.Duration{0, -time.Second, time.Millisecond, 1500 * time.Millisecond, 41 * 366 * 24 * time.Hour} {
		if _, err := Every(anchor, wrong, ""); models.CodeOf(err) != models.InvalidSchedule {
			t.Errorf("an interval of %s: %v", wrong, err)
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ expression, want string }{
		{"* * * * *", "Every minute"},
		{"* * * * * *", "Every second"},
		{"*/10 * * * * *", "Every 10 seconds"},
		{"*/5 * * * *", "Every 5 minutes"},
		{"*/7 * * * *", "Every 7 minutes from the start of each hour"},
		{"0 * * * *", "Every hour"},
		{"5 * * * *", "At minute 5 of every hour"},
		{"0 */2 * * *", "Every 2 hours"},
		{"0 8 * * *", "At 08:00 every day"},
		{"30 0 8 * * *", "At 08:00:30 every day"},
		{"0 9,17 * * 1-5", "At 09:00 and 17:00 on Monday to Friday"},
		{"*/15 9-17 * * mon-fri", "Every 15 minutes from 09:00 to 17:59 on Monday to Friday"},
		{"0 9-17 * * *", "Every hour from 09:00 to 17:00 every day"},
		{"0 22-2 * * *", "Every hour from 22:00 to 02:00 every day"},
		{"0 0 1 * *", "At 00:00 on the 1st of the month"},
		{"0 0 1,15 * *", "At 00:00 on the 1st and 15th of the month"},
		{"0 0 L * *", "At 00:00 on the last day of the month"},
		{"0 0 L-3 * *", "At 00:00 3 days before the last day of the month"},
		{"0 0 LW * *", "At 00:00 on the last Monday to Friday of the month"},
		{"0 0 15W * *", "At 00:00 on the Monday to Friday nearest to the 15th"},
		{"0 0 * * 5L", "At 00:00 on the last Friday of the month"},
		{"0 0 * * tue#2", "At 00:00 on the 2nd Tuesday of the month"},
		{"0 0 13 * fri", "At 00:00 on the 13th of the month or on Friday"},
		{"0 0 */2 * mon", "At 00:00 on every 2nd day of the month if it is Monday"},
		{"0 0 1-31 * mon", "At 00:00 every day"},
		{"0 0 1 1,7 *", "At 00:00 on the 1st of the month in January and July"},
		{"0 0 * 6-8 *", "At 00:00 from June to August"},
		{"0,1,2,3,4,5,7,11,13,17 3 * * *", "At minutes 0, 1, 2, 3, 4, 5, 7 and 3 more in the hour of 03 every day"},
		{"nonsense", ""},
	} {
		if got := Words(c.expression); got != c.want {
			t.Errorf("%q: %q, want %q", c.expression, got, c.want)
		}
	}
}
