package storetest

import (
	"encoding/json"
	"fmt"
	"strings"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

var streams = []string{"sale", "refund", "Übergabe"}

// publishes are one to four triggers, or items of a queue; some have a dedupe key, few are large.
func (r *run) publishes() (out []*engine.Command) {
	for range 1 + r.rng.IntN(4) {
		x := &engine.Publish{Env: r.env(), Source: models.Source(r.rng.IntN(2)), Name: pick(r, streams)}
		n := 1
		if x.Source == models.FromQueue {
			n += r.rng.IntN(6)
		}
		for range n {
			m := engine.NewMessage{ID: r.id(), Data: json.RawMessage(fmt.Sprintf(`{"n": %d}`, r.rng.IntN(1000)))}
			if r.chance(20) {
				m.Key = fmt.Sprint("key ", r.rng.IntN(20))
			}
			if r.chance(2) {
				m.Data = json.RawMessage(`"` + strings.Repeat("ä", 30_000) + `"`)
			}
			x.Messages = append(x.Messages, m)
		}
		cmd := r.command(&engine.Command{Publish: x})
		cmd.Resent = r.chance(5)
		out = append(out, cmd)
	}
	return out
}

// eventRule is for the triggers of one of the names, or drains a queue.
func (r *run) eventRule(rule models.ScheduleRule) models.ScheduleRule {
	if r.chance(40) {
		drain := models.ScheduleRule{
			Kind: "drain", Overlap: rule.Overlap, MostFailures: rule.MostFailures, ExpireSeconds: rule.ExpireSeconds,
			Drain: &models.DrainRule{Queue: pick(r, streams), MaxItems: 1 + r.rng.Int32N(8), BatchSize: 1 + r.rng.Int32N(4)},
		}
		drain = sameWork(drain, &rule)
		drain.FanOut /= max(1, rule.Partitions) // of a portion
		return drain
	}
	return sameWork(models.ScheduleRule{
		Kind: "event", Misfire: rule.Misfire, GraceSeconds: rule.GraceSeconds, Overlap: rule.Overlap, MostFailures: rule.MostFailures,
		JitterSeconds: rule.JitterSeconds, ExpireSeconds: rule.ExpireSeconds,
		Event: &models.EventRule{
			Name: pick(r, streams), DebounceSeconds: r.rng.Float64() * 5, MaxWaitSeconds: float64(r.rng.IntN(3) * 8), MaxEvents: r.rng.Int32N(4) * 3,
		},
	}, &rule)
}

// sameWork gives a rule what another says of its work.
func sameWork(to models.ScheduleRule, from *models.ScheduleRule) models.ScheduleRule {
	to.Workflow, to.Partitions, to.FanOut, to.Marks, to.FlexibleSeconds = from.Workflow, from.Partitions, from.FanOut, from.Marks, from.JitterSeconds
	return to
}
