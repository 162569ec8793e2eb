package api

import (
	"cmp"
	"context"
	"math"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/engine"
)

// Lane is a named queue as the API shows it.
type Lane struct {
	Name             string        `json:"name"`
	Environment      string        `json:"environment"`
	Kind             string        `json:"kind" enum:"realtime,io,compute,batch"`
	Weight           float64       `json:"weight"`
	MaxConcurrent    *int32        `json:"max_concurrent"`
	Elastic          bool          `json:"elastic" doc:"it leaves room for the lanes it yields to, beside what its kind does"`
	YieldsTo         []string      `json:"yields_to" doc:"lanes of its environment; empty: those that are not elastic, nor of an elastic kind"`
	MaxHoldSeconds   *int32        `json:"max_hold_seconds" doc:"how long one of its tasks is held for that at most; null: without a bound"`
	OpenWindows      []Window      `json:"open_windows" doc:"when it is open; empty: always"`
	TaskTypes        []string      `json:"task_types" doc:"patterns that route here: exact or ending in *"`
	HighWater        int32         `json:"high_water" doc:"submits beyond this depth answer 202"`
	AlertDepth       *int32        `json:"alert_depth"`
	AlertWaitSeconds *int32        `json:"alert_wait_seconds"`
	Defaults         *LaneDefaults `json:"defaults" doc:"what its tasks get that say nothing themselves; those that are there keep what they got"`
	Description      *string       `json:"description"`
	Owner            *string       `json:"owner"`
	RunbookURL       *string       `json:"runbook_url"`
	Paused           bool          `json:"paused"`
	Draining         bool          `json:"draining"`
	Reason           *string       `json:"reason"`
	CreatedAt        handlers.Time `json:"created_at"`
	UpdatedAt        handlers.Time `json:"updated_at"`
	Version          int64         `json:"version"`
}

func showLane(environment string) func(models.Lane) Lane {
	return func(l models.Lane) Lane {
		return Lane{
			Name: l.Name, Environment: environment, Kind: l.Kind.String(), Weight: l.Weight, MaxConcurrent: handlers.Null(l.MaxConcurrent),
			Elastic: l.Elastic, YieldsTo: handlers.List(l.YieldsTo), MaxHoldSeconds: handlers.Null(l.MaxHold), OpenWindows: showWindows(l.OpenWindows), TaskTypes: handlers.List(l.TaskTypes), HighWater: l.HighWater,
			Description: handlers.Null(l.Description), Owner: handlers.Null(l.Owner), RunbookURL: handlers.Null(l.RunbookURL),
			Defaults: showDefaults(l.Defaults), Paused: l.Paused, Draining: l.Draining, Reason: handlers.Null(l.Reason), CreatedAt: handlers.Time(l.CreatedAt),
			UpdatedAt: handlers.Time(l.UpdatedAt), Version: l.Version,
		}
	}
}

// Window opens by a cron expression and stays open for a while.
type Window struct {
	Cron            string `json:"cron" required:"true"`
	DurationSeconds int32  `json:"duration_seconds" required:"true" minimum:"1" maximum:"2678400"`
	Timezone        string `json:"timezone" doc:"empty: UTC"`
}

func showWindows(list []models.Window) []Window {
	out := make([]Window, len(list))
	for i, w := range list {
		out[i] = Window{Cron: w.Cron, DurationSeconds: w.DurationSeconds, Timezone: cmp.Or(w.Timezone, "UTC")}
	}
	return out
}

// openWindows takes over the windows given and checks them.
func (f *laneFields) openWindows(l *models.Lane) error {
	if !f.OpenWindows.Given {
		return nil
	}
	l.OpenWindows = nil
	for _, w := range f.OpenWindows.Value {
		l.OpenWindows = append(l.OpenWindows, models.Window{Cron: w.Cron, DurationSeconds: w.DurationSeconds, Timezone: w.Timezone})
	}
	_, err := calendar.ParseWindows("body.open_windows", l.OpenWindows)
	return err
}

type laneFields struct {
	Kind             handlers.Opt[string]   `json:"kind" enum:"realtime,io,compute,batch"`
	Weight           handlers.Opt[float64]  `json:"weight"`
	MaxConcurrent    handlers.Opt[int32]    `json:"max_concurrent" doc:"null: no limit"`
	TaskTypes        handlers.Opt[[]string] `json:"task_types"`
	HighWater        handlers.Opt[int32]    `json:"high_water" doc:"null: 1000"`
	Description      handlers.Opt[string]   `json:"description"`
	Owner            handlers.Opt[string]   `json:"owner"`
	RunbookURL       handlers.Opt[string]   `json:"runbook_url"`
	Elastic          handlers.Opt[bool]     `json:"elastic"`
	YieldsTo         handlers.Opt[[]string] `json:"yields_to" doc:"lanes of the environment"`
	MaxHoldSeconds   handlers.Opt[int32]    `json:"max_hold_seconds" doc:"1 to 2678400; null: without a bound"`
	OpenWindows      handlers.Opt[[]Window] `json:"open_windows"`
	AlertDepth       handlers.Later         `json:"alert_depth"`
	AlertWaitSeconds handlers.Later         `json:"alert_wait_seconds"`

	Defaults handlers.Opt[defaultsFields] `json:"defaults" doc:"for tasks submitted from now on that say nothing themselves"`
}

type newLane struct {
	Name string `json:"name" required:"true"`
	laneFields
}

const defaultHighWater = 1000

// merge writes the given fields over what stands, and checks the whole.
func (f *laneFields) merge(l *models.Lane) error {
	var k handlers.Check
	if f.Kind.Given && !f.Kind.Null {
		kind, ok := models.ParseKind(f.Kind.Value)
		k.That(ok, "body.kind", "%q is none of realtime, io, compute, batch", handlers.Shorten(f.Kind.Value, 60))
		l.Kind = kind
	}
	f.Weight.Into(&l.Weight, 1)
	f.MaxConcurrent.Into(&l.MaxConcurrent, 0)
	f.TaskTypes.Into(&l.TaskTypes, nil)
	f.HighWater.Into(&l.HighWater, defaultHighWater)
	f.Description.Into(&l.Description, "")
	f.Owner.Into(&l.Owner, "")
	f.RunbookURL.Into(&l.RunbookURL, "")
	handlers.Range(&k, "body.weight", l.Weight, 0.001, 10_000)
	if f.MaxConcurrent.Given && !f.MaxConcurrent.Null {
		handlers.Range(&k, "body.max_concurrent", l.MaxConcurrent, 1, 1_000_000)
	}
	handlers.Range(&k, "body.high_water", l.HighWater, 1, 100_000_000)
	k.Text("body.description", l.Description, 0, 2000)
	k.Text("body.owner", l.Owner, 0, 200)
	k.Text("body.runbook_url", l.RunbookURL, 0, 2000)
	k.That(l.RunbookURL == "" || isWebURL(l.RunbookURL), "body.runbook_url", "it is no URL of the form https://…")
	k.That(len(l.TaskTypes) <= 200, "body.task_types", "at most 200 patterns")
	for i, pattern := range l.TaskTypes {
		name := strings.TrimSuffix(pattern, "*")
		k.That(name == "" && pattern == "*" || handlers.IsName(name), "body.task_types["+itoa(i)+"]",
			"%q is no pattern: a type, or its beginning and *", handlers.Shorten(pattern, 60))
	}
	f.Elastic.Into(&l.Elastic, false)
	mergeDefaults(&k, f.Defaults, &l.Defaults)
	softInTime(&k, f, l)
	mergeYields(&k, f.YieldsTo, f.MaxHoldSeconds, &l.YieldsTo, &l.MaxHold)
	if err := k.Err(); err != nil {
		return err
	}
	return f.openWindows(l)
}

// mergeYields writes what a lane or kind yields to, and for how long. Whether there is what is named the brain says.
func mergeYields(k *handlers.Check, to handlers.Opt[[]string], most handlers.Opt[int32], yieldsTo *[]string, maxHold *int32) {
	to.Into(yieldsTo, nil)
	most.Into(maxHold, 0)
	k.That(len(*yieldsTo) <= mostYields, "body.yields_to", "at most %d names", mostYields)
	for i, name := range *yieldsTo {
		k.Name("body.yields_to["+itoa(i)+"]", name)
	}
	if most.Given && !most.Null {
		handlers.Range(k, "body.max_hold_seconds", *maxHold, 1, mostHold)
	}
}

const (
	mostYields = 100
	mostHold   = 31 * 86400
)

func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

func createLane(d *handlers.Deps, c *fiber.Ctx) error {
	var ask newLane
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	if err := handlers.Bind(c, &ask); err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	row := models.Lane{Env: caller.Env, Name: ask.Name, Kind: models.Batch, Weight: 1, HighWater: defaultHighWater}
	var k handlers.Check
	k.Name("body.name", ask.Name)
	k.That(ask.Kind.Given && !ask.Kind.Null, "body.kind", "it is needed")
	if err := k.Err(); err != nil {
		return err
	}
	if err := ask.merge(&row); err != nil {
		return err
	}
	if dry {
		refusals, err := wouldConfigure(d, c, &engine.Configure{Lane: &row})
		if err != nil {
			return err
		}
		row.Version = 1
		return handlers.Answer(c, fiber.StatusOK, laneDry{showLane(caller.Environment)(row), refusals})
	}
	made := func(l models.Lane) *handlers.Made {
		return &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/lanes/" + url.PathEscape(l.Name), Body: showLane(caller.Environment)(l)}
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		answer, err := configure(d, c, &engine.Configure{Lane: &row, New: true, Once: once, Action: "lane.create"})
		if err != nil {
			return nil, err
		}
		if answer.Replay {
			return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) {
				known, err := d.World.Lane(c.UserContext(), caller.Scope(), caller.Env, ask.Name)
				return made(known), err
			}}, nil
		}
		return made(*answer.Lane), nil
	})
}

func listLanes(d *handlers.Deps, c *fiber.Ctx) error {
	q, rows, err := rowList(d, c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	lanes, total, err := d.World.Lanes(c.UserContext(), caller.Scope(), caller.Env, rows)
	if err != nil {
		return err
	}
	return answerRows(c, q, lanes, total, showLane(caller.Environment), func(l models.Lane) int64 { return int64(l.Number) })
}

func readLane(d *handlers.Deps, c *fiber.Ctx) (models.Lane, error) {
	name, err := handlers.PathParam(c, "name")
	if err != nil {
		return models.Lane{}, err
	}
	caller := handlers.CallerOf(c)
	return d.World.Lane(c.UserContext(), caller.Scope(), caller.Env, name)
}

func getLane(d *handlers.Deps, c *fiber.Ctx) error {
	lane, err := readLane(d, c)
	if err != nil {
		return err
	}
	handlers.SetETag(c, lane.Version)
	return handlers.Answer(c, fiber.StatusOK, showLane(handlers.CallerOf(c).Environment)(lane))
}

func patchLane(d *handlers.Deps, c *fiber.Ctx) error {
	var ask laneFields
	if err := handlers.Bind(c, &ask); err != nil {
		return err
	}
	return editLane(d, c, "lane.edit", "", ask.merge)
}

// laneAction is the handler of pause, resume and drain: a drained lane takes nothing new and works off what it has.
func laneAction(action string, change func(l *models.Lane, reason string)) func(*handlers.Deps, *fiber.Ctx) error {
	return func(d *handlers.Deps, c *fiber.Ctx) error {
		reason, err := givenReason(c)
		if err != nil {
			return err
		}
		return editLane(d, c, action, reason, func(l *models.Lane) error {
			change(l, reason)
			return nil
		})
	}
}

func pauseLane(l *models.Lane, reason string) { l.Paused, l.Reason = true, reason }

func resumeLane(l *models.Lane, _ string) { l.Paused, l.Draining, l.Reason = false, false, "" }

func drainLane(l *models.Lane, reason string) { l.Draining, l.Reason = true, reason }

func editLane(d *handlers.Deps, c *fiber.Ctx, action, reason string, change func(*models.Lane) error) error {
	read := func() (models.Lane, int64, error) {
		l, err := readLane(d, c)
		return l, l.Version, err
	}
	answer, err := edit(d, c, read, func(l *models.Lane) (*engine.Configure, error) {
		err := change(l)
		return &engine.Configure{Lane: l, Action: action, Reason: reason}, err
	})
	if err != nil {
		return err
	}
	handlers.SetETag(c, answer.Lane.Version)
	return handlers.Answer(c, fiber.StatusOK, showLane(handlers.CallerOf(c).Environment)(*answer.Lane))
}

func deleteLane(d *handlers.Deps, c *fiber.Ctx) error {
	read := func() (models.Lane, int64, error) {
		l, err := readLane(d, c)
		return l, l.Version, err
	}
	_, err := edit(d, c, read, func(l *models.Lane) (*engine.Configure, error) {
		return &engine.Configure{DeleteLane: l, Action: "lane.delete"}, nil
	})
	if err != nil {
		return err
	}
	return handlers.NoContent(c)
}

type laneStats struct {
	Lane               string   `json:"lane"`
	Depth              int64    `json:"depth"`
	OldestAgeSeconds   *float64 `json:"oldest_age_seconds"`
	Running            int64    `json:"running"`
	Parked             int64    `json:"parked"`
	InPerSecond        *float64 `json:"in_per_second" doc:"null: no brain answers now, and what stands is counted from the rows"`
	OutPerSecond       *float64 `json:"out_per_second" doc:"null like in_per_second"`
	TimeToEmptySeconds *float64 `json:"time_to_empty_seconds" doc:"null while nothing leaves"`

	Held []laneHold `json:"held" doc:"pools in which it is held back because other work needs the slots"`
}

// laneHold says how a lane is held back in a pool.
type laneHold struct {
	Pool          string        `json:"pool"`
	Since         handlers.Time `json:"since"`
	Until         handlers.Time `json:"until" doc:"when the first in line is let go at the latest; null: as soon as there is room"`
	Running       int32         `json:"running" doc:"tasks that yield by the same rule"`
	Room          int32         `json:"room" doc:"how many of them may run at once"`
	CapacitySlots float64       `json:"capacity_slots"`
	NeededSlots   float64       `json:"needed_slots" doc:"by what it yields to: lately or foreseen, whichever is more"`
	LatelySlots   float64       `json:"lately_slots"`
	ForeseenSlots float64       `json:"foreseen_slots"`
	Detail        string        `json:"detail"`
}

func showHolds(list []engine.LaneHold) []laneHold {
	out := make([]laneHold, len(list))
	for i, h := range list {
		out[i] = laneHold{
			Pool: h.Pool, Since: handlers.Time(h.Since), Until: handlers.Time(h.Until), Running: h.Running, Room: h.Room, CapacitySlots: tenths(h.Capacity),
			NeededSlots: tenths(h.Needed), LatelySlots: tenths(h.Lately), ForeseenSlots: tenths(h.Foreseen), Detail: h.Says,
		}
	}
	return out
}

func tenths(v float64) float64 { return math.Round(v*10) / 10 }

func getLaneStats(d *handlers.Deps, c *fiber.Ctx) error {
	lane, err := readLane(d, c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	cmd := d.Command(caller)
	cmd.Look = &engine.Look{Lanes: caller.Env}
	ctx, cancel := context.WithTimeout(c.UserContext(), lookPatience)
	defer cancel()
	out := laneStats{Lane: lane.Name, Held: []laneHold{}}
	answer, err := d.Door.Do(ctx, cmd)
	if err != nil {
		if err := savedLaneStats(d, c, lane, &out); err != nil {
			return err
		}
		return handlers.Answer(c, fiber.StatusOK, out)
	}
	for _, s := range answer.Looked.Lanes {
		if s.Lane != lane.Number {
			continue
		}
		out.Depth, out.Running, out.Parked, out.InPerSecond, out.OutPerSecond = s.Depth, s.Running, s.Parked, &s.InPerSecond, &s.OutPerSecond
		out.Held = showHolds(s.Held)
		if s.OldestReady > 0 {
			age := max(0, answer.Looked.Now.Sub(models.Instant(s.OldestReady)).Seconds())
			out.OldestAgeSeconds = &age
		}
		if s.OutPerSecond > 0 || s.Depth == 0 {
			left := float64(s.Depth) / max(s.OutPerSecond, 1e-9)
			out.TimeToEmptySeconds = &left
		}
	}
	return handlers.Answer(c, fiber.StatusOK, out)
}

// savedLaneStats counts what stands in a lane from the rows, for want of a brain that knows.
func savedLaneStats(d *handlers.Deps, c *fiber.Ctx, lane models.Lane, out *laneStats) error {
	caller := handlers.CallerOf(c)
	f, err := postgres.NewReads(d.DB).LaneFigure(c.UserContext(), caller.Scope(), lane.Env, lane.Number)
	if err != nil {
		return err
	}
	out.Depth, out.Running, out.Parked = f.Depth, f.Running, f.Parked
	if f.Oldest > 0 {
		age := max(0, d.Now().Sub(f.Oldest).Seconds())
		out.OldestAgeSeconds = &age
	}
	return nil
}
