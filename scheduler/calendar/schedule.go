package calendar

import (
	"time"

	"nightshift/models"
)

// Of makes the timetable of a stored rule. An interval counts from start_at or, without one, from when the schedule was
// made; one that counts from the end of the run before has its rule set anew each time.
func Of(r *models.ScheduleRule, created models.Instant) (*Timetable, error) {
	rule, err := ruleOf(r, created)
	if err != nil {
		return nil, err
	}
	t := &Timetable{Rule: rule, Policy: Policy{Gap(r.Gap), Overlap(r.Fold)}, Start: r.StartAt.Time(), End: r.EndAt.Time()}
	if err := t.Policy.Check(); err != nil {
		return nil, err
	}
	if t.Exclude, err = ParseDates(r.Exclude); err != nil {
		return nil, err
	}
	return t, nil
}

func ruleOf(r *models.ScheduleRule, created models.Instant) (*Rule, error) {
	switch r.Kind {
	case "event", "drain": // what comes from outside has no moments of its own, only a clock on which days are left out
		return Once(created.Time(), r.Timezone)
	case "interval":
		anchor := created
		if r.StartAt > 0 {
			anchor = r.StartAt
		}
		most := int64(longest/time.Second) + 1
		return Every(anchor.Time(), time.Duration(min(max(r.EverySeconds, 0), most))*time.Second, r.Timezone)
	case "once":
		return Once(r.RunAt.Time(), r.Timezone)
	}
	return Parse(r.Expression, r.Timezone)
}

// MisfireOf is what a stored rule says of late occurrences.
func MisfireOf(r *models.ScheduleRule) Misfire {
	span := func(seconds int64) time.Duration { return time.Duration(seconds) * time.Second }
	return Misfire{Policy: Missed(r.Misfire), Grace: span(r.GraceSeconds), Limit: int(r.CatchUp), Expires: span(r.ExpireSeconds)}
}

// CheckRule refuses a stored rule that says what has no meaning, never fires after a moment, or fires too often.
func CheckRule(r *models.ScheduleRule, created, now models.Instant, least time.Duration) error {
	t, err := Of(r, created)
	if err != nil {
		return err
	}
	if err := MisfireOf(r).Check(); err != nil {
		return err
	}
	if err := Overlapping(r.Overlap).Check(); err != nil {
		return err
	}
	if r.Gathers() {
		return t.checkSpan(now.Time())
	}
	if err := t.Rule.Check(now.Time(), t.Policy, least); err != nil {
		return err
	}
	if _, ok := t.NextRun(now.Time()); !ok {
		field := "start_at"
		switch {
		case r.EndAt > 0:
			field = "end_at"
		case len(r.Exclude) > 0:
			field = "calendar_exclude"
		}
		return models.Errorf(models.InvalidSchedule, "%s: the schedule never fires: no occurrence that is not excluded lies between start_at and end_at within 40 years", field)
	}
	return nil
}

// FreezesOf are the stored freezes of an environment.
func FreezesOf(list []models.Freeze) []Freeze {
	if len(list) == 0 {
		return nil
	}
	out := make([]Freeze, len(list))
	for i, f := range list {
		out[i] = Freeze{Begin: f.Begin.Time(), End: f.End.Time(), Reason: f.Reason}
	}
	return out
}
