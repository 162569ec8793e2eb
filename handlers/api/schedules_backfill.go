package api

import (
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/calendar"
	"nightshift/scheduler/engine"
)

type backfillRequest struct {
	From    string               `json:"from" required:"true"`
	To      string               `json:"to" required:"true" doc:"both are part of the range; not in the future"`
	Overlap handlers.Opt[string] `json:"overlap" enum:"skip,queue_one,allow,cancel_previous" doc:"of these runs; the schedule's own when left out"`
	DryRun  bool                 `json:"dry_run" doc:"answer how many there are, and make none"`
	Reason  handlers.Opt[string] `json:"reason" maxLength:"500" doc:"kept in the audit"`
}

// BackfillView says how many occurrences a range has.
type BackfillView struct {
	ID      string `json:"id,omitempty" doc:"its runs have the origin backfill:<id>; GET /v1/bulk-actions/<id> tells what became of it"`
	Matched int64  `json:"matched"`
}

// read checks the range.
func (ask *backfillRequest) read() (from, to models.Instant, err error) {
	if from, err = handlers.ParseTime("body.from", ask.From); err != nil {
		return 0, 0, err
	}
	if to, err = handlers.ParseTime("body.to", ask.To); err != nil {
		return 0, 0, err
	}
	var k handlers.Check
	k.That(from <= to, "body.to", "it must not be before from")
	if ask.Overlap.Given && !ask.Overlap.Null {
		k.OneOf("body.overlap", ask.Overlap.Value, "skip", "queue_one", "allow", "cancel_previous")
	}
	k.Text("body.reason", ask.Reason.Or(""), 0, 500)
	return from, to, k.Err()
}

// backfillSchedule makes up the occurrences of a range, or counts them.
func backfillSchedule(d *handlers.Deps, c *fiber.Ctx) error {
	var in backfillRequest
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	if err := handlers.Bind(c, &in); err != nil {
		return err
	}
	in.DryRun = in.DryRun || dry
	from, to, err := in.read()
	if err != nil {
		return err
	}
	row, err := readSchedule(d, c)
	if err != nil {
		return err
	}
	table, err := calendar.Of(&row.Rule, row.CreatedAt)
	if err != nil {
		return err
	}
	table.Freezes = calendar.FreezesOf(row.Freezes)
	list, more := table.Between(from.Time().Add(-1), to.Time(), engine.MostBackfill(&row.Rule))
	switch {
	case row.Rule.FromEnd:
		return models.Errorf(models.StateConflict, "an interval that counts from the end of the run before has no occurrences to make up")
	case to > d.Now():
		return models.Invalid("body.to", "lies in the future: what comes then is made by itself")
	case more:
		return models.Invalid("body.to", "the range holds more than %d occurrences: ask for a shorter one", engine.MostBackfill(&row.Rule))
	case in.DryRun:
		return handlers.Answer(c, fiber.StatusOK, BackfillView{Matched: int64(len(list))})
	}
	id, matched := d.Mint(), int64(len(list))
	show := func(id models.ID) *handlers.Made {
		return &handlers.Made{Status: fiber.StatusAccepted, Location: "/v1/bulk-actions/" + id.Text(models.BulkPrefix), Body: BackfillView{id.Text(models.BulkPrefix), matched}}
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		answer, err := ask(d, c, func(cmd *engine.Command) {
			cmd.Backfill = &engine.Backfill{Env: row.Env, Schedule: row.ID, ID: id, From: from, To: to, Overlap: in.Overlap.Or(row.Rule.Overlap), Rows: len(list) * engine.RunRows(&row.Rule), Reason: in.Reason.Or(""), Once: once}
		})
		if err != nil {
			return nil, err
		}
		if answer.Replay {
			return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) { return show(answer.Made[0]), nil }}, nil
		}
		return show(answer.Made[0]), nil
	})
}
