package postgres

import (
	"encoding/json"

	"nightshift/models"
)

// flows sends what is shut and what was used of workflows.
func flows(pipe *pipeline, p *models.Plan) error {
	if len(p.Shuts) > 0 {
		if err := sendJSON(pipe, "shut_workflows", p.Shuts, int8Param(int64(len(p.Shuts)))); err != nil {
			return err
		}
	}
	if len(p.Spends) > 0 {
		return sendJSON(pipe, "insert_spends", p.Spends, int8Param(p.Batch))
	}
	return nil
}

// budgetIn reads a stored budget; a jsonb in binary form begins with its version.
func budgetIn(text []byte) (b models.FlowBudget) {
	if len(text) > 0 && text[0] == 1 {
		text = text[1:]
	}
	_ = json.Unmarshal(text, &b) // written by the engine alone
	return b
}

// judgedOf reads what conditions are judged by.
func judgedOf(refs []models.TaskRef, f *models.Facts, bad *error) []call {
	if len(refs) == 0 {
		return nil
	}
	envs := int4Array(refs, func(r models.TaskRef) int32 { return r.Env })
	ids := idArray(refs, func(r models.TaskRef) models.ID { return r.ID })
	return []call{
		{name: "fact_judged", params: [][]byte{envs, ids}, read: func(c *columns) {
			ref := models.TaskRef{Env: c.int4(), ID: c.id()}
			var in struct {
				RunIf  string            `json:"run_if"`
				Labels map[string]string `json:"labels"`
			}
			if err := json.Unmarshal(c.raw(), &in); err != nil {
				*bad = err
			}
			f.Judged[ref] = models.Judged{RunIf: in.RunIf, Labels: in.Labels, Payload: c.json()}
		}},
		{name: "fact_judged_deps", params: [][]byte{envs, ids, int8Param(models.MostJudged)}, read: func(c *columns) {
			ref := models.TaskRef{Env: c.int4(), ID: c.id()}
			j := f.Judged[ref]
			dep := models.JudgedDep{Key: c.text(), State: models.State(c.int2())}
			j.Large = c.bool()
			dep.Result = c.json()
			if !j.Large {
				j.Deps = append(j.Deps, dep)
			}
			f.Judged[ref] = j
		}},
	}
}
