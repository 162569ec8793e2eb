package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// QueueItem is an item of a queue as a claim has it.
type QueueItem struct {
	Data      json.RawMessage `json:"data"`
	DedupeKey *string         `json:"dedupe_key"`
}

// feeds adds the triggers and items that the runs of tasks took. The input of such a task says so; others cost no look.
func (f *Floor) feeds(ctx context.Context, briefs map[models.TaskRef]*postgres.Brief) error {
	var tasks []models.TaskRef
	var runs []models.ID
	var portions []int32
	kinds := map[models.TaskRef]string{}
	for ref, brief := range briefs {
		if !bytes.Contains(brief.Input, []byte(`"fed"`)) {
			continue
		}
		var kept struct {
			Fed     string `json:"fed"`
			Run     string `json:"run_id"`
			Portion *int32 `json:"portion"`
		}
		if json.Unmarshal(brief.Input, &kept) != nil || kept.Fed == "" {
			continue
		}
		run, err := models.ParseID(models.RunPrefix, kept.Run)
		if err != nil {
			continue
		}
		portion := int32(-1) // one made before portions were numbered: the portion names the task
		if kept.Portion != nil {
			portion = *kept.Portion
		}
		tasks, runs, portions, kinds[ref] = append(tasks, ref), append(runs, run), append(portions, portion), kept.Fed
	}
	if len(tasks) == 0 {
		return nil
	}
	taken, err := f.reads.TakenBy(ctx, tasks, runs, portions)
	if err != nil {
		return err
	}
	for _, ref := range tasks {
		if err := feed(briefs[ref], kinds[ref], taken[ref]); err != nil {
			return err
		}
	}
	return nil
}

// feed fills in what one task took. Triggers that are no longer kept are still in the payload.
func feed(brief *postgres.Brief, kind string, taken []models.Message) (err error) {
	if kind == "drain" {
		items := make([]QueueItem, len(taken))
		for i := range taken {
			items[i].Data = taken[i].Data
			if key := taken[i].Key; key != "" {
				items[i].DedupeKey = &key
			}
		}
		brief.Items, err = json.Marshal(items)
		return err
	}
	if len(taken) == 0 {
		var payload struct {
			Events json.RawMessage `json:"events"`
		}
		if json.Unmarshal(brief.Payload, &payload) == nil {
			brief.Events = slices.Clone(payload.Events)
		}
		return nil
	}
	events := make([]engine.EventPayload, len(taken))
	for i := range taken {
		events[i] = engine.ViewEvent(&taken[i])
	}
	brief.Events, err = json.Marshal(events)
	return err
}

// appendEvents writes what a run took, an empty list for other tasks.
func appendEvents(b []byte, events json.RawMessage) []byte {
	if len(events) == 0 {
		return append(b, `[]`...)
	}
	return append(b, events...)
}
