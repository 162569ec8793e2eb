package templates

import (
	"testing"
	"time"
)

// The hours below the picture of a day are written whole: none stands where an edge would cut it.
func TestHoursOfADayStandClearOfTheEdges(t *testing.T) {
	day := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	for minutes := range 24 * 60 {
		v := ForecastView{From: day.Add(time.Duration(minutes) * time.Minute)}
		begin := v.From.Truncate(slotLength)
		hours := v.picture().Hours
		if len(hours) < 7 {
			t.Fatalf("from %s there are %d hours", v.From, len(hours))
		}
		for _, h := range hours {
			at := day.Add(clockOf(t, h.Text))
			for at.Before(begin) {
				at = at.Add(24 * time.Hour)
			}
			if at.Sub(begin) < 30*time.Minute || begin.Add(24*time.Hour).Sub(at) < 30*time.Minute {
				t.Fatalf("from %s the hour %s is cut", v.From, h.Text)
			}
		}
	}
}

func clockOf(t *testing.T, text string) time.Duration {
	t.Helper()
	at, err := time.Parse("15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Hour()) * time.Hour
}
