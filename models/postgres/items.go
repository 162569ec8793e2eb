package postgres

import (
	"encoding/json"

	"nightshift/models"
)

// itemsOf reads how far the items of tasks are.
func itemsOf(refs []models.TaskRef, f *models.Facts, bad *error) []call {
	if len(refs) == 0 {
		return nil
	}
	envs := int4Array(refs, func(r models.TaskRef) int32 { return r.Env })
	ids := idArray(refs, func(r models.TaskRef) models.ID { return r.ID })
	return []call{{name: "fact_items", params: [][]byte{envs, ids}, read: func(c *columns) {
		i := models.Items{Env: c.int4(), Task: c.id(), Workflow: c.id(), First: c.int4(), Total: c.int4(), Done: c.int4(), Used: c.int4()}
		var err error
		if i.Left, err = itemsLeft(c.raw()); err != nil {
			*bad = err
		}
		f.Items[models.TaskRef{Env: i.Env, ID: i.Task}] = i
	}}}
}

func itemsLeft(text []byte) (left []models.Item, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	err = json.Unmarshal(text, &left)
	return left, err
}
