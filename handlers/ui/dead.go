package ui

import (
	"encoding/hex"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/templates"
)

const mostGroups = 100

func (p *pages) deadLetters(c *fiber.Ctx) error {
	groups, err := p.deadGroups(c, mostGroups)
	if err != nil {
		return err
	}
	view := templates.DeadLettersView{Groups: groups}
	for _, g := range groups {
		view.Total += g.Count
	}
	if c.Query("fragment") == "groups" {
		return show(c, fiber.StatusOK, templates.DeadRegion(p.fragment(c, "Dead letters", "/dead-letters"), view))
	}
	page, err := p.whole(c, "Dead letters", "/dead-letters")
	if err != nil {
		return err
	}
	return show(c, fiber.StatusOK, templates.DeadLetters(page, view))
}

// deadGroups reads the groups that something joined last, each with its newest dead letter as evidence.
func (p *pages) deadGroups(c *fiber.Ctx, most int) ([]templates.DeadGroup, error) {
	caller, ctx := handlers.CallerOf(c), c.UserContext()
	groups, err := p.reads.DeadGroups(ctx, caller.Scope(), caller.Env, &postgres.DeadFilter{Desc: true, Limit: most})
	if err != nil || len(groups) == 0 {
		return nil, err
	}
	ids := make([]models.ID, len(groups))
	for i := range groups {
		ids[i] = groups[i].Sample
	}
	rows, err := p.reads.TasksByID(ctx, caller.Scope(), caller.Env, ids, postgres.Include{Payload: true})
	if err != nil {
		return nil, err
	}
	attempts, err := p.reads.Attempts(ctx, caller.Scope(), caller.Env, ids)
	if err != nil {
		return nil, err
	}
	workers, err := p.workerNames(c)
	samples := map[models.ID]*postgres.TaskRow{}
	for i := range rows {
		samples[rows[i].ID] = &rows[i]
	}
	out := make([]templates.DeadGroup, 0, len(groups))
	for i := range groups {
		out = append(out, viewGroup(&groups[i], samples[groups[i].Sample], attempts[groups[i].Sample], workers))
	}
	return out, err
}

func viewGroup(g *postgres.DeadGroup, sample *postgres.TaskRow, attempts []models.Attempt, workers map[models.ID]string) templates.DeadGroup {
	view := templates.DeadGroup{
		Fingerprint: hex.EncodeToString(g.Fingerprint[:]), Count: int(g.Count), Types: g.Types,
		FirstSeen: g.FirstSeen.Time(), LastSeen: g.LastSeen.Time(), Message: "stopped retrying",
	}
	if sample == nil { // it was decided meanwhile
		return view
	}
	view.Sample = templates.DeadSample{
		Task: sample.ID.Text(models.TaskPrefix), Type: sample.Needs.Type, Attempts: int(sample.Attempt), Payload: string(sample.Payload),
	}
	view.Class = sample.ErrorClass
	if e := sample.Error; e != nil {
		view.Class, view.Message, view.Sample.Error = e.Class, e.Message, *viewFailure(e)
	}
	if n := len(attempts); n > 0 {
		view.Sample.Worker, view.Sample.Version = workerRef(attempts[n-1].Worker, workers), attempts[n-1].WorkerVersion
	}
	return view
}
