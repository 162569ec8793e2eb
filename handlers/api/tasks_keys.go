package api

import (
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

const maxKeyLimit = 1_000_000

// concurrency reads the keys that a task holds while it runs.
func (d *draft) concurrency(v body.Value) {
	n := v.Elements(func(i int, e body.Value) {
		if i >= models.MostKeys {
			return
		}
		d.given.concurrency = true
		key, named := models.TaskKey{Limit: 1}, false
		e.Members(func(name string, m body.Value) {
			switch name {
			case "key":
				named = true
				key.Name = m.String(1, maxKeyBytes)
				d.once(m, key.Name, false)
			case "limit":
				if !m.Null() {
					key.Limit = int32(m.Int(1, maxKeyLimit))
				}
			default:
				m.Wrong("there is no such field")
			}
		})
		if !named && e.IsObject() {
			d.r.problem.Addf(body.Dot(e.At, "key"), "is required")
		}
		d.keys = append(d.keys, key)
	})
	if n > models.MostKeys {
		v.Wrong("has %d entries, at most %d are allowed", n, models.MostKeys)
	}
}

// once refuses a key that stands twice.
func (d *draft) once(v body.Value, name string, rate bool) {
	for _, k := range d.keys {
		if k.Name == name && k.Rate() == rate && name != "" {
			v.Wrong("stands twice")
		}
	}
}

func (d *draft) concurrencyKey(v body.Value) {
	d.given.sugarKey = true
	d.sugar.Name = v.String(1, maxKeyBytes)
}

func (d *draft) concurrencyLimit(v body.Value) {
	d.given.sugarLimit = true
	d.sugar.Limit = int32(v.Int(1, maxKeyLimit))
}

// rateKeys reads the keys under whose rates a task starts.
func (d *draft) rateKeys(v body.Value) {
	n := v.Elements(func(i int, e body.Value) {
		if i >= models.MostKeys {
			return
		}
		key := models.TaskKey{Name: e.String(1, maxKeyBytes)}
		d.once(e, key.Name, true)
		d.keys = append(d.keys, key)
	})
	if n > models.MostKeys {
		v.Wrong("has %d entries, at most %d are allowed", n, models.MostKeys)
	}
}

// finishKeys checks what members say together of keys, and writes them into the task. A watermark is one more key.
func (d *draft) finishKeys() {
	at := d.v.At
	if d.given.sugarKey && d.given.concurrency {
		d.r.problem.Addf(body.Dot(at, "concurrency_key"), "stands beside concurrency; give one of the two")
	}
	if d.given.sugarLimit && !d.given.sugarKey {
		d.r.problem.Addf(body.Dot(at, "concurrency_limit"), "needs a concurrency_key")
	}
	if d.given.sugarKey {
		d.keys = append(d.keys, models.TaskKey{Name: d.sugar.Name, Limit: max(1, d.sugar.Limit)})
	}
	if d.input.Watermark != "" {
		mark := models.TaskKey{Name: engine.MarkKey + d.input.Watermark, Limit: 1}
		keys := []models.TaskKey{mark} // the first of its kind: by it the watermark is found
		for _, k := range d.keys {
			if k.Name != mark.Name || k.Rate() {
				keys = append(keys, k)
			}
		}
		d.keys = keys
	}
	d.task.LimitKey, d.task.KeyLimit, d.task.MoreKeys = models.PackKeys(d.keys)
	if d.task.Ordered && d.task.LimitKey == "" {
		d.r.problem.Addf(body.Dot(at, "ordered"), "needs a concurrency key: tasks of one key run in order")
	}
}
