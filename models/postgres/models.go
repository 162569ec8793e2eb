package postgres

import (
	"encoding/json"

	"nightshift/models"
)

// choices sends what a batch changes of models.
func choices(pipe *pipeline, p *models.ModelPlan) error {
	if len(p.Gone) > 0 {
		pipe.send(call{name: "delete_models", params: [][]byte{
			int4Array(p.Gone, func(r models.ModelRef) int32 { return r.Tenant }), textArray(p.Gone, func(r models.ModelRef) string { return r.Name }),
		}})
	}
	for _, rare := range []struct {
		name  string
		n     int
		value any
	}{
		{"save_models", len(p.Models), p.Models},
		{"insert_choices", len(p.Choices), p.Choices},
		{"save_model_seen", len(p.Seen), p.Seen},
		{"save_breakers", len(p.Breakers), p.Breakers},
		{"save_model_levels", len(p.Levels), p.Levels},
	} {
		if rare.n > 0 {
			if err := sendJSON(pipe, rare.name, rare.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadModels reads what a board knows of models.
func loadModels(out *models.ModelSnapshot, bad *error) []call {
	return []call{
		{name: "load_models", read: func(c *columns) { out.Models = append(out.Models, c.model(bad)) }},
		{name: "load_model_seen", read: func(c *columns) {
			out.Seen = append(out.Seen, models.ModelSeen{
				Tenant: c.int4(), Type: c.text(), Model: c.text(), Judged: c.float8(), Good: c.float8(), Runs: c.float8(), In: c.float8(),
				Out: c.float8(), Cached: c.float8(), Seconds: c.float8(),
			})
		}},
		{name: "load_breakers", read: func(c *columns) {
			out.Breakers = append(out.Breakers, models.ModelBreaker{Tenant: c.int4(), Model: c.text(), Opened: c.int4(), Until: c.instant(), Class: c.text()})
		}},
		{name: "load_model_levels", read: func(c *columns) {
			out.Levels = append(out.Levels, models.ModelLevel{Tenant: c.int4(), Model: c.text(), Credit: c.int8(), At: c.instant()})
		}},
	}
}

func (c *columns) model(bad *error) models.Model {
	decode := func(into any) {
		if err := json.Unmarshal(c.raw(), into); err != nil {
			*bad = err
		}
	}
	m := models.Model{
		Tenant: c.int4(), Name: c.text(), Provider: c.text(), TaskTypes: c.texts(), InputMicro: c.int8(), OutputMicro: c.int8(),
		CachedMicro: c.maybe8(), ContextTokens: c.maybe8(),
	}
	decode(&m.Quality)
	m.LatencyMS, m.VRAMMB, m.BatchDiscount = c.maybe8(), c.maybe8(), c.float8()
	decode(&m.OffPeak)
	m.Fallbacks, m.MaxConcurrent, m.TokensPerMinute, m.Enabled = c.texts(), c.maybe8(), c.maybe8(), c.bool()
	m.CreatedAt, m.UpdatedAt, m.Version = c.instant(), c.instant(), c.int8()
	return m.Whole()
}

// choicesOf reads what was chosen for tasks, without the rankings, and what was said of results before.
func choicesOf(need *models.Need, f *models.Facts, bad *error) (calls []call) {
	if refs := need.Choices; len(refs) > 0 {
		calls = append(calls, call{name: "fact_choices", params: [][]byte{
			int4Array(refs, func(r models.TaskRef) int32 { return r.Env }), idArray(refs, func(r models.TaskRef) models.ID { return r.ID }),
		}, read: func(c *columns) {
			row := models.Choice{Env: c.int4(), Task: c.id(), N: c.int4(), At: c.instant()}
			if asked := c.raw(); asked != nil {
				row.Asked = &models.ModelAsk{}
				if err := json.Unmarshal(asked, row.Asked); err != nil {
					*bad = err
				}
			}
			row.Named, row.Chosen, row.Reason, row.Failed = c.text(), c.text(), c.text(), c.texts()
			f.Choices[models.TaskRef{Env: row.Env, ID: row.Task}] = row
		}})
	}
	if refs := need.Qualities; len(refs) > 0 {
		calls = append(calls, call{name: "fact_qualities", params: [][]byte{
			int4Array(refs, func(r models.QualityRef) int32 { return r.Env }), idArray(refs, func(r models.QualityRef) models.ID { return r.Task }),
			textArray(refs, func(r models.QualityRef) string { return r.Source }),
		}, read: func(c *columns) {
			ref := models.QualityRef{Env: c.int4(), Task: c.id(), Source: c.text()}
			f.Qualities[ref] = c.float8()
		}})
	}
	return calls
}
