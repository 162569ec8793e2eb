package postgres

import "nightshift/models"

// rates sends rate limits and what passed under them.
func rates(pipe *pipeline, p *models.Plan) error {
	if len(p.RatesGone) > 0 {
		pipe.send(call{name: "delete_rates", params: [][]byte{
			int4Array(p.RatesGone, func(r models.RateRef) int32 { return r.Env }),
			textArray(p.RatesGone, func(r models.RateRef) string { return r.Key }),
		}})
	}
	if len(p.Rates) > 0 {
		if err := sendJSON(pipe, "save_rates", p.Rates); err != nil {
			return err
		}
	}
	if len(p.RatePasses) > 0 {
		pipe.send(call{name: "insert_rate_passes", params: [][]byte{
			int4Array(p.RatePasses, func(r models.RatePass) int32 { return r.Env }),
			textArray(p.RatePasses, func(r models.RatePass) string { return r.Key }),
			int8Param(p.Batch),
			int8Array(p.RatePasses, func(r models.RatePass) int64 { return int64(r.At) }),
			int8Array(p.RatePasses, func(r models.RatePass) int64 { return r.N }),
			int8Array(p.RatePasses, func(r models.RatePass) int64 { return r.Credit }),
		}})
	}
	return nil
}

// loadRates reads the rate limits, and then what passed under each, in the same order.
func loadRates(out *models.Snapshot) []call {
	next := 0
	return []call{
		{name: "load_rates", read: func(c *columns) {
			out.Rates = append(out.Rates, models.RateState{RateLimit: c.rateLimit(), Credit: c.int8(), At: c.instant()})
		}},
		{name: "load_rate_passes", params: [][]byte{int8Param(models.RateSlices)}, read: func(c *columns) {
			env, key := c.int4(), c.text()
			for out.Rates[next].Env != env || out.Rates[next].Key != key {
				next++
			}
			out.Rates[next].Passes = append(out.Rates[next].Passes, models.RateSum{At: c.instant(), N: c.int8()})
		}},
	}
}

func (c *columns) rateLimit() models.RateLimit {
	return models.RateLimit{
		Env: c.int4(), Key: c.text(), Limit: c.int8(), PerSeconds: c.int8(), Burst: c.int8(), FromBatch: c.int8(),
		CreatedAt: c.instant(), UpdatedAt: c.instant(), Version: c.int8(),
	}
}

func (c *columns) keys() models.KeyText {
	return models.KeyText{LimitKey: c.text(), KeyLimit: c.int4(), MoreKeys: c.text(), Ordered: c.bool()}
}
