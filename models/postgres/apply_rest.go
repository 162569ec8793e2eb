package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"nightshift/models"
)

// configure sends what decisions read. These rows are few: they travel as JSON.
func configure(pipe *pipeline, p *models.Plan) error {
	var failed error
	add := func(name string, n int, value any, more ...[]byte) {
		if n > 0 && failed == nil {
			failed = sendJSON(pipe, name, value, more...)
		}
	}
	add("save_tenants", len(p.Tenants), p.Tenants)
	add("save_environments", len(p.Environments), p.Environments)
	add("save_kinds", len(p.Kinds), p.Kinds)
	if len(p.LanesGone) > 0 {
		pipe.send(call{name: "delete_lanes", params: [][]byte{int4Array(p.LanesGone, same)}})
	}
	add("save_lanes", len(p.Lanes), p.Lanes)
	holds(pipe, p)
	add("insert_classes", len(p.Classes), storedClasses(p.Classes))
	add("save_workers", len(p.Workers), p.Workers)
	add("insert_workflows", len(p.Workflows), p.Workflows)
	add("change_workflows", len(p.WorkflowChanges), p.WorkflowChanges, int8Param(int64(len(p.WorkflowChanges))))
	if len(p.Seen) > 0 {
		pipe.send(call{name: "save_seen", params: [][]byte{
			idArray(p.Seen, func(s models.Seen) models.ID { return s.Worker }),
			int8Array(p.Seen, func(s models.Seen) int64 { return int64(s.At) }),
		}})
	}
	if len(p.Virtual) > 0 {
		pipe.send(call{name: "save_virtual", params: [][]byte{
			textArray(p.Virtual, func(v models.Virtual) string { return v.Pool }),
			int2Array(p.Virtual, func(v models.Virtual) int16 { return int16(v.Kind) }),
			int4Array(p.Virtual, func(v models.Virtual) int32 { return v.Tenant }),
			float8Array(p.Virtual, func(v models.Virtual) float64 { return v.Time }),
			float8Array(p.Virtual, func(v models.Virtual) float64 { return v.Span }),
			int8Param(int64(p.At)),
		}})
	}
	if len(p.Estimates) > 0 {
		pipe.send(call{name: "save_estimates", params: [][]byte{
			int4Array(p.Estimates, func(e models.Estimate) int32 { return e.Tenant }),
			int4Array(p.Estimates, func(e models.Estimate) int32 { return e.Class }),
			bytesArray(p.Estimates, func(e models.Estimate) []byte { return e.Counts }),
			int8Param(int64(p.At)),
		}})
	}
	if len(p.Corrections) > 0 {
		pipe.send(call{name: "save_corrections", params: [][]byte{
			textArray(p.Corrections, func(c models.Correction) string { return c.Pool }),
			int2Array(p.Corrections, func(c models.Correction) int16 { return int16(c.Kind) }),
			bytesArray(p.Corrections, func(c models.Correction) []byte { return c.Factors }),
			int8Param(int64(p.At)),
		}})
	}
	if failed != nil {
		return failed
	}
	if err := limits(pipe, &p.Quota); err != nil {
		return err
	}
	if err := choices(pipe, &p.Models); err != nil {
		return err
	}
	return schedules(pipe, &p.Schedules)
}

func same[T any](v T) T { return v }

func sendJSON(pipe *pipeline, name string, value any, more ...[]byte) error {
	text, err := json.Marshal(value)
	if err != nil {
		return models.Errorf(models.BadData, "%s: %w", name, err)
	}
	pipe.send(call{name: name, params: append([][]byte{text}, more...)})
	return nil
}

// storedClass is a class as its table holds it.
type storedClass struct {
	Number int32
	Digest string
	Type   string
	Spec   json.RawMessage
}

func storedClasses(classes []models.Class) []storedClass {
	out := make([]storedClass, len(classes))
	for i, c := range classes {
		text := c.Digest()
		sum := sha256.Sum256([]byte(text))
		out[i] = storedClass{Number: c.Number, Digest: hex.EncodeToString(sum[:]), Type: c.Type, Spec: json.RawMessage(text)}
	}
	return out
}

// note sends what is told and remembered of a batch.
func (w *Writer) note(pipe *pipeline, p *models.Plan) error {
	batch, at := int8Param(p.Batch), int8Param(int64(p.At))
	if len(p.Late) > 0 {
		pipe.send(call{name: "book_late", params: [][]byte{
			int4Array(p.Late, func(v models.Late) int32 { return v.Env }),
			idArray(p.Late, func(v models.Late) models.ID { return v.Task }),
			idArray(p.Late, func(v models.Late) models.ID { return v.Token }),
			jsonArray(p.Late, func(v models.Late) []byte { return v.Usage }),
			int8Param(int64(len(p.Late))),
		}})
	}
	if len(p.Progress) > 0 {
		pipe.send(call{name: "save_progress", params: [][]byte{
			int4Array(p.Progress, func(v models.Progress) int32 { return v.Env }),
			idArray(p.Progress, func(v models.Progress) models.ID { return v.Task }),
			jsonArray(p.Progress, func(v models.Progress) []byte { return v.Progress }),
			jsonArray(p.Progress, func(v models.Progress) []byte { return v.Checkpoint }),
			at,
		}})
	}
	if len(p.Flips) > 0 {
		pipe.send(call{name: "flip_stagings", params: [][]byte{idArray(p.Flips, same), int8Param(int64(len(p.Flips)))}})
	}
	if len(p.Done) > 0 {
		pipe.send(call{name: "insert_done", params: [][]byte{idArray(p.Done, same), batch, at}})
	}
	for _, rare := range []struct {
		name  string
		n     int
		value any
	}{{"save_cursors", len(p.Cursors), p.Cursors}, {"insert_once", len(p.Once), p.Once}, {"insert_audit", len(p.Audit), p.Audit}} {
		if rare.n > 0 {
			if err := sendJSON(pipe, rare.name, rare.value); err != nil {
				return err
			}
		}
	}
	if len(p.Events) == 0 {
		return nil
	}
	pipe.send(call{name: "insert_events", params: [][]byte{w.buffers.packedEvents(pipe.link.types, p.Events), batch, at}})
	return nil
}
