package calendar

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nightshift/models"
)

// Whatever the windows are, At says the same as looking at each of their occurrences, and nothing changes before its until.
func TestWindowsOpenAndCloseAsTheirOccurrencesSay(t *testing.T) {
	crons := []string{"* * * * *", "*/7 * * * *", "30 1 * * *", "0 22 * * MON-FRI", "0 2 25 10 *", "15 2 * * *", "0 0 1 * *"}
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Africa/Lusaka", "Australia/Lord_Howe"}
	from := time.Date(2026, 10, 24, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		var given []models.Window
		for range rapid.IntRange(1, 3).Draw(t, "windows") {
			given = append(given, models.Window{
				Cron: rapid.SampledFrom(crons).Draw(t, "cron"), Timezone: rapid.SampledFrom(zones).Draw(t, "zone"),
				DurationSeconds: rapid.SampledFrom([]int32{1, 30, 59, 60, 61, 3600, 90_000}).Draw(t, "lasts"),
			})
		}
		w, err := ParseWindows("at", given)
		if err != nil {
			t.Fatal(err)
		}
		brute := func(at time.Time) bool {
			for i, g := range given {
				rule := w.list[i].rule
				began, _, ok := rule.Next(at.Add(-time.Duration(g.DurationSeconds)*time.Second), Policy{})
				if ok && !began.After(at) {
					return true
				}
			}
			return false
		}
		now := from.Add(time.Duration(rapid.Int64Range(0, 5*86_400_000).Draw(t, "at")) * time.Millisecond)
		open, until := w.At(now)
		if open != brute(now) {
			t.Fatalf("at %s it is open: %v", now, open)
		}
		if !until.IsZero() && !until.After(now) {
			t.Fatalf("at %s it changes at %s", now, until)
		}
		if until.IsZero() {
			until = now.Add(48 * time.Hour)
		}
		for step := range time.Duration(50) {
			if at := now.Add(until.Sub(now) * step / 50); brute(at) != open {
				t.Fatalf("at %s it is open: %v until %s, but not at %s", now, open, until, at)
			}
		}
		if !open && !brute(until) {
			t.Fatalf("it should open at %s", until)
		}
	})
}

func TestWindowsAreRefusedByTheirPlace(t *testing.T) {
	if open, until := (Windows{}).At(time.Now()); !open || !until.IsZero() {
		t.Error("without a window it is always open")
	}
	for _, c := range []struct {
		given models.Window
		place string
	}{
		{models.Window{Cron: "61 * * * *", DurationSeconds: 60}, "at[0]"},
		{models.Window{Cron: "0 0 30 2 *", DurationSeconds: 60}, "at[0]"},
		{models.Window{Cron: "@daily", DurationSeconds: 0}, "at[0].duration_seconds"},
		{models.Window{Cron: "@daily", DurationSeconds: 2_678_401}, "at[0].duration_seconds"},
		{models.Window{Cron: "@daily", DurationSeconds: 60, Timezone: "Mars/Olympus"}, "at[0]"},
	} {
		_, err := ParseWindows("at", []models.Window{c.given})
		known, ok := err.(*models.Error)
		if !ok || known.Code != models.ValidationFailed || len(known.Fields) != 1 || known.Fields[0].Location != c.place || !strings.HasPrefix(known.Detail, "at[0]") {
			t.Errorf("%+v: %v", c.given, err)
		}
	}
	if _, err := ParseWindows("at", make([]models.Window, MostWindows+1)); err == nil {
		t.Error("too many windows are taken")
	}
}
