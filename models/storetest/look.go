package storetest

import (
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// look asks for live facts.
func (r *run) look() *engine.Command {
	ref := pick(r, r.known.all)
	look := &engine.Look{}
	switch r.rng.IntN(7) {
	case 5:
		r.lookModels(look)
	case 0:
		look.Live = []models.TaskRef{ref, pick(r, r.known.all)}
	case 1:
		look.Lanes = r.env()
	case 2:
		look.Workers = true
	case 3:
		look.Stats = true
	case 4:
		look.Shares = true
	default:
		look.Explain = &ref
	}
	return r.command(&engine.Command{Look: look})
}
