package api

import (
	"context"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/engine"
	"nightshift/scheduler/forecast"
)

// Bounds of a forecast and of its answer.
const (
	presetHours     = 24
	mostHours       = 168
	mostForeseen    = 20_000    // schedules
	mostLooked      = 3_000_000 // moments, and minutes that runs touch
	momentsADay     = 1_500     // of one schedule
	mostSlots       = 10_000
	mostNamedInSlot = 20
	reachMinutes    = 30 // by which a suggestion moves a schedule at most
)

const hour = models.Instant(time.Hour / time.Microsecond)

// ForecastView is what the schedules of an environment are going to ask for.
type ForecastView struct {
	Slots      []SlotView      `json:"slots" doc:"five minutes each; those in which nothing is foreseen are left out"`
	Collisions []CollisionView `json:"collisions"`
	Incomplete bool            `json:"incomplete" doc:"the environment has more schedules, moments or slots than one answer looks at"`
}

// SlotView is what a lane is going to ask for in five minutes.
type SlotView struct {
	At        handlers.Time `json:"at"`
	Kind      string        `json:"kind" enum:"realtime,io,compute,batch"`
	Lane      string        `json:"lane"`
	P50       float64       `json:"running_p50" doc:"tasks at work at the same time, in the busiest of its minutes"`
	P90       float64       `json:"running_p90" doc:"the same, nine times in ten no more"`
	Capacity  int64         `json:"capacity" doc:"the slots that work of this kind could have now, in the pools where it goes"`
	Schedules []string      `json:"schedules" doc:"at work in it, 20 at most"`
}

// CollisionView is a stretch in which schedules meet.
type CollisionView struct {
	Kinds      []string        `json:"kinds"`
	From       handlers.Time   `json:"from"`
	To         handlers.Time   `json:"to"`
	Schedules  []string        `json:"schedules" doc:"at work at its peak, 50 at most, those that ask for most first"`
	Peak       float64         `json:"peak" doc:"tasks at the same time, nine times in ten no more"`
	PeakAt     handlers.Time   `json:"peak_at"`
	Over       bool            `json:"over_capacity"`
	Suggestion *SuggestionView `json:"suggestion" doc:"the move of one schedule that lowers the peak most; null where none does"`
}

// SuggestionView is a move.
type SuggestionView struct {
	ScheduleID string        `json:"schedule_id"`
	MoveFrom   handlers.Time `json:"move_from" doc:"the occurrence at the peak"`
	MoveTo     handlers.Time `json:"move_to" doc:"where it goes; all others move by as much"`
	PeakAfter  float64       `json:"peak_after" doc:"in the same stretch, and wherever the schedule comes to"`
}

// forecastSchedules says what the caller's schedules are going to ask for.
func forecastSchedules(d *handlers.Deps, c *fiber.Ctx) error {
	hours, err := hoursAsked(c)
	if err != nil {
		return err
	}
	o, err := foreseen(d, c, models.Instant(hours)*hour)
	if err != nil {
		return err
	}
	out := ForecastView{Slots: o.slots(), Collisions: []CollisionView{}}
	for _, col := range o.scene().Collisions(forecast.MostCollisions) {
		out.Collisions = append(out.Collisions, viewCollision(&col))
	}
	out.Incomplete = o.incomplete
	return handlers.Answer(c, fiber.StatusOK, out)
}

func hoursAsked(c *fiber.Ctx) (int, error) {
	values, err := handlers.ReadQuery(c, "hours")
	if err != nil || len(values["hours"]) == 0 {
		return presetHours, err
	}
	n, err := strconv.Atoi(values["hours"][0])
	if err != nil || len(values["hours"]) > 1 || n < 1 || n > mostHours {
		return 0, handlers.QueryError("hours", "it is not in 1–%d", mostHours)
	}
	return n, nil
}

func viewCollision(c *forecast.Collision) CollisionView {
	v := CollisionView{
		Kinds: []string{}, From: handlers.Time(c.From), To: handlers.Time(c.Until), Schedules: schedulesNamed(c.Schedules), Peak: rounded(c.Peak),
		PeakAt: handlers.Time(c.PeakAt), Over: c.Over,
	}
	for _, k := range c.Kinds {
		v.Kinds = append(v.Kinds, k.String())
	}
	if m := c.Move; m != nil {
		v.Suggestion = &SuggestionView{m.Schedule.Text(models.SchedulePrefix), handlers.Time(m.From), handlers.Time(m.To), rounded(m.PeakAfter)}
	}
	return v
}

func schedulesNamed(ids []models.ID) []string {
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		out = append(out, id.Text(models.SchedulePrefix))
	}
	return out
}

// rounded is a number of tasks to the hundredth.
func rounded(n float64) float64 { return float64(int64(n*100+0.5)) / 100 }

// outlook is what the schedules of one environment are foreseen to ask for.
type outlook struct {
	now, span  models.Instant
	loads      []*forecast.Load
	capacity   map[string]forecast.Capacity
	seen       *forecast.Seen
	lanes      map[int32]models.Lane
	incomplete bool
}

func (o *outlook) scene() *forecast.Scene {
	return forecast.NewScene(o.now, o.span, o.loads, o.capacity, o.seen)
}

// foreseen puts it together: from the rows of the environment's schedules, and from what the brain alone knows.
func foreseen(d *handlers.Deps, c *fiber.Ctx, span models.Instant) (*outlook, error) {
	caller := handlers.CallerOf(c)
	rows, more, err := d.World.ForeseenSchedules(c.UserContext(), caller.Scope(), caller.Env, mostForeseen)
	if err != nil {
		return nil, err
	}
	o := &outlook{now: d.Now(), span: span, incomplete: more, capacity: map[string]forecast.Capacity{}, seen: forecast.NewSeen(), lanes: map[int32]models.Lane{}}
	if err := o.readLanes(c.UserContext(), d, caller); err != nil {
		return nil, err
	}
	ahead, pools, err := lookWithBrain(d, c, rows)
	if err != nil {
		return nil, err
	}
	for _, p := range ahead.Has {
		o.capacity[p.Pool] = p.Capacity
	}
	o.seen.Restore(ahead.Corrections)
	if ahead.Still != "" {
		return o, nil
	}
	places := map[models.ID]map[models.Instant]models.Instant{}
	for _, p := range ahead.Places {
		if places[p.Schedule] == nil {
			places[p.Schedule] = map[models.Instant]models.Instant{}
		}
		places[p.Schedule][p.At] = p.After
	}
	left := mostLooked
	for i := range rows {
		if left <= 0 {
			o.incomplete = true
			break
		}
		left -= o.add(&rows[i], pools[workOf(&rows[i])], places[rows[i].ID])
	}
	return o, nil
}

func (o *outlook) readLanes(ctx context.Context, d *handlers.Deps, caller *handlers.Caller) error {
	lanes, _, err := d.World.Lanes(ctx, caller.Scope(), caller.Env, postgres.RowList{Limit: 10_000})
	for _, l := range lanes {
		o.lanes[l.Number] = l
	}
	return err
}

func workOf(row *postgres.ScheduleRow) [2]int32 {
	return [2]int32{row.State.Profile.Lane, row.State.Profile.Class}
}

// lookWithBrain asks the brain for what the rows don't tell, and answers the pools by lane and class.
func lookWithBrain(d *handlers.Deps, c *fiber.Ctx, rows []postgres.ScheduleRow) (*engine.Ahead, map[[2]int32]string, error) {
	look := &engine.LookAhead{Env: handlers.CallerOf(c).Env}
	known := map[[2]int32]bool{}
	for i := range rows {
		if w := workOf(&rows[i]); !known[w] && len(look.Works) < engine.MostLookWorks {
			known[w] = true
			look.Works = append(look.Works, w)
		}
		if rows[i].Rule.FlexibleSeconds > 0 && len(look.Flexible) < engine.MostLookFlexible {
			look.Flexible = append(look.Flexible, rows[i].ID)
		}
	}
	answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Look = &engine.Look{Ahead: look} })
	if err != nil {
		return nil, nil, err
	}
	pools := map[[2]int32]string{}
	for i, w := range look.Works {
		pools[w] = answer.Looked.Ahead.Pools[i]
	}
	return answer.Looked.Ahead, pools, nil
}

// add takes in what a schedule is going to ask for, and says what that cost.
func (o *outlook) add(row *postgres.ScheduleRow, pool string, places map[models.Instant]models.Instant) (looked int) {
	table, err := calendar.Of(&row.Rule, row.CreatedAt)
	if err != nil || row.Rule.Gathers() || !row.State.Enabled || row.Rule.Disabled && !row.State.Forced {
		return 1
	}
	table.Freezes = calendar.FreezesOf(row.Freezes)
	lane := o.lanes[row.State.Profile.Lane]
	kind := models.Batch
	if lane.Name != "" {
		kind = lane.Kind
	}
	if pool == "" {
		pool = "cpu"
	}
	l := engine.LoadOf(&row.Schedule, &row.State.Profile, forecast.Of{Pool: pool, Kind: kind, Lane: lane.Number})
	until := o.now + o.span + hour
	if row.Rule.FromEnd {
		l.Fires = chained(row, l, o.now, until)
		looked = len(l.Fires)
	} else {
		from := max(row.CreatedAt, o.now-hour-min(engine.LongestRun, models.Instant(l.Longest()*1e6))) - 1
		l.Fires, looked = engine.MomentsOf(row.Rule.JitterSeconds, table, from, until, momentsADay*int(o.span/(24*hour)+2))
		l.Offset = models.Instant(row.Rule.JitterSeconds) * 500_000
		l.Reach = reachOf(table)
	}
	if row.Rule.FlexibleSeconds > 0 { // it places itself
		own := models.Instant(engine.OwnPlace(&row.Schedule) / time.Microsecond)
		for i, f := range l.Fires {
			after, known := places[f.At]
			if !known {
				after = own
			}
			l.Fires[i].At += after
		}
		l.Reach = 0
	}
	l.May = func(minutes int) bool {
		_, err := calendar.Move(row.Rule, row.CreatedAt, minutes)
		return err == nil
	}
	if len(l.Fires) > 0 {
		o.loads = append(o.loads, l)
	}
	return looked + l.Cells(o.span) + 1
}

// chained are the runs of an interval that counts from the end of the one before, as far as they can be foreseen.
func chained(row *postgres.ScheduleRow, l *forecast.Load, now, until models.Instant) (out []forecast.Fire) {
	step := models.Instant(row.Rule.EverySeconds*1_000_000) + models.Instant(max(l.Lasts, l.Seconds.P50)*1e6)
	step = max(step, (until-now)/momentsADay+1)
	for at := max(now, max(row.State.LastEnd, row.Rule.StartAt, row.CreatedAt).Add(secondsOf(row.Rule.EverySeconds))); at < until && (row.Rule.EndAt == 0 || at <= row.Rule.EndAt); at += step {
		out = append(out, forecast.Fire{At: at, Runs: 1})
	}
	return out
}

// reachOf is by how many minutes a schedule may be moved: never so far that it meets its next run.
func reachOf(table *calendar.Timetable) int {
	period := table.Rule.Shortest()
	if period == 0 { // it fires once
		return reachMinutes
	}
	return min(reachMinutes, int((period/2-1)/time.Minute))
}

// slots are what each lane asks for, five minutes by five.
func (o *outlook) slots() []SlotView {
	grid := forecast.NewGrid(o.now, o.span, o.seen)
	at := map[bucketOf][]string{}
	for _, l := range o.loads {
		grid.Add(l)
		o.name(at, l)
	}
	out := []SlotView{}
	for _, s := range grid.Buckets() {
		if len(out) == mostSlots {
			o.incomplete = true
			break
		}
		v := SlotView{
			At: handlers.Time(s.At), Kind: s.Kind.String(), Lane: o.lanes[s.Lane].Name, P50: rounded(s.P50), P90: rounded(s.P90),
			Capacity: o.capacity[s.Pool].For[s.Kind], Schedules: handlers.List(at[bucketOf{s.Of, s.At}]),
		}
		if v.Lane == "" {
			v.Lane = s.Kind.String()
		}
		out = append(out, v)
	}
	return out
}

// bucketOf is five minutes of a lane.
type bucketOf struct {
	of forecast.Of
	at models.Instant
}

// name writes a schedule's name into the slots in which it is at work, where there is room.
func (o *outlook) name(at map[bucketOf][]string, l *forecast.Load) {
	const step = models.Instant(forecast.Bucket / time.Microsecond)
	id, last := l.Schedule.Text(models.SchedulePrefix), models.Instant(0)
	for _, f := range l.Fires {
		end := min(f.At+models.Instant(l.Longest()*1e6), o.now+o.span)
		for b := max(f.At-f.At%step, o.now-o.now%step, last+step); b < end || b == f.At-f.At%step && b > last && b < o.now+o.span; b += step {
			last = b
			if k := (bucketOf{l.Of, b}); len(at[k]) < mostNamedInSlot {
				at[k] = append(at[k], id)
			}
		}
	}
}
