package postgres

import "nightshift/models"

// unusual sends what few batches have: growing trees, edited inputs, signals, judgements and dedupe keys.
func unusual(pipe *pipeline, p *models.Plan) error {
	if len(p.Overrides) > 0 {
		pipe.send(call{name: "save_overrides", params: [][]byte{
			int4Array(p.Overrides, func(o models.Override) int32 { return o.Env }),
			idArray(p.Overrides, func(o models.Override) models.ID { return o.Task }),
			jsonArray(p.Overrides, func(o models.Override) []byte { return o.Input }),
			jsonArray(p.Overrides, func(o models.Override) []byte { return o.Payload }),
		}})
	}
	if len(p.Signals) > 0 {
		pipe.send(call{name: "insert_signals", params: [][]byte{
			idArray(p.Signals, func(s models.Signal) models.ID { return s.ID }),
			int4Array(p.Signals, func(s models.Signal) int32 { return s.Env }),
			idArray(p.Signals, func(s models.Signal) models.ID { return s.Task }),
			textArray(p.Signals, func(s models.Signal) string { return s.Name }),
			jsonArray(p.Signals, func(s models.Signal) []byte { return s.Data }),
		}})
	}
	if len(p.SignalsGone) > 0 {
		pipe.send(call{name: "delete_signals", params: [][]byte{idArray(p.SignalsGone, same)}})
	}
	if len(p.Watermarks) > 0 {
		pipe.send(call{name: "save_watermarks", params: [][]byte{
			int4Array(p.Watermarks, func(m models.Watermark) int32 { return m.Env }),
			textArray(p.Watermarks, func(m models.Watermark) string { return m.Name }),
			jsonArray(p.Watermarks, func(m models.Watermark) []byte { return m.Value }),
			int8Array(p.Watermarks, func(m models.Watermark) int64 { return m.Version }),
			int8Array(p.Watermarks, func(m models.Watermark) int64 { return int64(m.At) }),
		}})
	}
	for _, rare := range []struct {
		name  string
		n     int
		value any
	}{{"raise_waits", len(p.Waits), p.Waits}, {"save_qualities", len(p.Qualities), p.Qualities}, {"save_dedupes", len(p.Dedupes), p.Dedupes}, {"save_items", len(p.Items), p.Items}} {
		if rare.n > 0 {
			if err := sendJSON(pipe, rare.name, rare.value); err != nil {
				return err
			}
		}
	}
	if err := rates(pipe, p); err != nil {
		return err
	}
	if err := money(pipe, p); err != nil {
		return err
	}
	return flows(pipe, p)
}
