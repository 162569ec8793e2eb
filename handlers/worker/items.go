package worker

import (
	"context"
	"encoding/json"

	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/workers/protocol"
)

// readItems reads what a worker says of the items it claimed.
func readItems(v body.Value) *engine.ItemsReport {
	report := &engine.ItemsReport{}
	v.Members(func(name string, m body.Value) {
		switch {
		case name != "done" && name != "failed":
			m.Wrong("there is no such field")
		case m.Null():
		case name == "done":
			n := int32(m.Int(0, 1<<30))
			report.Done = &n
		default:
			n := m.Elements(func(i int, e body.Value) {
				if i < models.MostItems {
					report.Failed = append(report.Failed, readItem(e))
				}
			})
			if n > models.MostItems {
				m.Wrong("must have at most %d entries", models.MostItems)
			}
		}
	})
	return report
}

func readItem(v body.Value) engine.ItemFailed {
	f := engine.ItemFailed{Index: -1, Class: protocol.ClassInternal}
	given := false
	v.Members(func(name string, m body.Value) {
		switch {
		case name == "index":
			given = true
			f.Index = int32(m.Int(0, 1<<30))
		case name != "class" && name != "message":
			m.Wrong("there is no such field")
		case m.Null():
		case name == "class":
			f.Class = class(m)
		default:
			f.Message = evidence(m)
		}
	})
	if !given && v.IsObject() {
		v.Wrong("names no index")
	}
	return f
}

// items adds the items that attempts carry: of a first attempt all, of a later one those that are left. The payload of a slice
// has the same; those that a run took of a queue are there already, all of them.
func (f *Floor) items(ctx context.Context, leases []engine.Lease, briefs map[models.TaskRef]*postgres.Brief) error {
	var refs []models.TaskRef
	for i := range leases {
		if row := &leases[i].Row; row.Has(models.Itemized) {
			refs = append(refs, models.TaskRef{Env: row.Env, ID: row.ID})
		}
	}
	if len(refs) == 0 {
		return nil
	}
	all, err := f.reads.ItemsOf(ctx, refs)
	if err != nil {
		return err
	}
	for i := range leases {
		row := &leases[i].Row
		ref := models.TaskRef{Env: row.Env, ID: row.ID}
		s, itemized := all[ref]
		if brief := briefs[ref]; itemized && brief != nil {
			s.Start(row.AttemptsUsed)
			carry(brief, &s)
		}
	}
	return nil
}

// carry leaves in a payload the items of this attempt.
func carry(brief *postgres.Brief, s *models.Items) {
	var payload map[string]json.RawMessage
	var items []json.RawMessage
	if brief.Items != nil {
		if json.Unmarshal(brief.Items, &items) == nil {
			brief.Items = picked(items, s)
		}
		return
	}
	if json.Unmarshal(brief.Payload, &payload) != nil || json.Unmarshal(payload["items"], &items) != nil {
		return // written when the batch was made
	}
	places := s.Claim()
	if len(places) == len(items) {
		brief.Items = payload["items"]
		return
	}
	text := picked(items, s)
	brief.Items, payload["items"] = text, text
	if whole, err := json.Marshal(payload); err == nil {
		brief.Payload = whole
	}
}

// picked are those of a task's items that its attempt carries.
func picked(items []json.RawMessage, s *models.Items) json.RawMessage {
	some := make([]json.RawMessage, 0, len(items))
	for _, at := range s.Claim() {
		if index := s.Left[at].Index; int(index) < len(items) {
			some = append(some, items[index])
		}
	}
	text, err := json.Marshal(some)
	if err != nil {
		panic(err) // they were read from JSON
	}
	return text
}
