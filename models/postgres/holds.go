package postgres

import "nightshift/models"

// holds sends which lanes are held back, and which are no longer.
func holds(pipe *pipeline, p *models.Plan) {
	if len(p.HeldGone) > 0 {
		pipe.send(call{name: "delete_holds", params: [][]byte{
			int4Array(p.HeldGone, func(h models.HeldRef) int32 { return h.Lane }),
			textArray(p.HeldGone, func(h models.HeldRef) string { return h.Pool }),
		}})
	}
	if len(p.Held) > 0 {
		pipe.send(call{name: "save_holds", params: [][]byte{
			int4Array(p.Held, func(h models.Held) int32 { return h.Lane }),
			textArray(p.Held, func(h models.Held) string { return h.Pool }),
			int4Array(p.Held, func(h models.Held) int32 { return h.Env }),
			int8Array(p.Held, func(h models.Held) int64 { return int64(h.Since) }),
			idArray(p.Held, func(h models.Held) models.ID { return h.Task }),
		}})
	}
}

// loadHolds reads what is held back.
func loadHolds(out *models.Snapshot) call {
	return call{name: "load_holds", read: func(c *columns) {
		out.Held = append(out.Held, models.Held{HeldRef: models.HeldRef{Lane: c.int4(), Pool: c.text()}, Env: c.int4(), Since: c.instant(), Task: c.id()})
	}}
}
