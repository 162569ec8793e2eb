package budget

import (
	"time"

	"nightshift/models"
)

// Span is the period that a moment lies in: it begins at since, and ends where the next begins. What counts in total has
// neither beginning nor end. A period never comes twice: where clocks go back over midnight, the hour that is repeated
// belongs to the day after.
func Span(period models.BudgetPeriod, at models.Instant, zone *time.Location) (since, until models.Instant) {
	year, month, day := at.Time().In(zone).Date()
	days, months := 1, 0
	switch period {
	case models.InTotal:
		return 0, models.Forever
	case models.ByMonth:
		day, days, months = 1, 0, 1
	}
	begin := func(n int) models.Instant { return midnight(year, month+time.Month(n*months), day+n*days, zone) }
	if next := begin(1); at >= next {
		return next, begin(2)
	}
	return begin(0), begin(1)
}

// midnight is the first moment of a day: where clocks go back over midnight the earlier of the two, and where they leave it
// out the moment at which they do.
func midnight(year int, month time.Month, day int, zone *time.Location) models.Instant {
	wall := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	offset := func(at time.Time) time.Duration {
		_, seconds := at.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	before, after := offset(wall.Add(-26*time.Hour)), offset(wall.Add(26*time.Hour))
	for _, o := range [...]time.Duration{max(before, after), min(before, after)} {
		if at := wall.Add(-o); offset(at) == o {
			return models.InstantOf(at)
		}
	}
	left, _ := wall.Add(-before).In(zone).ZoneBounds()
	return models.InstantOf(left)
}
