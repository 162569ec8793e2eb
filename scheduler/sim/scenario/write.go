package scenario

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

// Recording is work that really came, for Write: arrivals have Items of their own, each with the moment after the
// beginning and its run time.
type Recording struct {
	About    string // what the file begins with, a line
	Span     time.Duration
	Tenants  []sim.Tenant
	Kinds    []models.Kind
	Lanes    []sim.Lane
	Workers  []sim.Worker
	Arrivals []sim.Arrival
}

// pairsALine keeps the lines of recorded work short enough to be looked at.
const pairsALine = 10

// Write writes a recording as a scenario that Read reads.
func Write(to io.Writer, r *Recording) error {
	out := bufio.NewWriter(to)
	put := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) } // Flush tells
	put("# %s\n", r.About)
	put("seed: 1\nhorizon: %s\ntenants:\n", r.Span+24*time.Hour)
	for _, t := range r.Tenants {
		put("  - {name: %s, weight: %g", quoted(t.Name), t.Weight)
		putLimits(put, &t)
		put("}\n")
	}
	if len(r.Kinds) > 0 {
		put("kinds:\n")
	}
	for _, k := range r.Kinds {
		put("  - {name: %s, precedence: %d, weight: %g, min_share: %g, elastic: %t, yields_to: %s, max_hold_seconds: %d}\n", k.Name, k.Precedence, k.Weight, k.MinShare, k.Elastic, quoted(list(k.YieldsTo)), k.MaxHold)
	}
	if len(r.Lanes) > 0 {
		put("lanes:\n")
	}
	for _, l := range r.Lanes {
		put("  - {tenant: %s, name: %s, kind: %s, max_concurrent: %d, task_types: %s, elastic: %t, yields_to: %s, max_hold_seconds: %d}\n",
			quoted(l.Tenant), quoted(l.Name), l.Kind, l.MaxConcurrent, quoted(list(l.TaskTypes)), l.Elastic, quoted(list(l.YieldsTo)), l.MaxHold)
	}
	put("workers:\n")
	for i := range r.Workers {
		putWorker(put, &r.Workers[i])
	}
	put("arrivals:\n")
	for i := range r.Arrivals {
		putArrival(put, &r.Arrivals[i])
	}
	return out.Flush()
}

func putLimits(put func(string, ...any), t *sim.Tenant) {
	of := map[string]int64{}
	for name, most := range map[string]*int64{ // any order: a copy
		"max_concurrent": t.Quotas.MaxConcurrent, "max_gpus": t.Quotas.MaxGPUs, "max_vram_mb": t.Quotas.MaxVRAMMB, "tokens_per_minute": t.Quotas.TokensPerMinute,
	} {
		if most != nil {
			of[name] = *most
		}
	}
	if len(of) > 0 {
		put(", quotas: %s", quoted(of))
	}
	var rates []map[string]any
	for _, r := range t.Rates {
		rates = append(rates, map[string]any{"key": r.Key, "limit": r.Limit, "per_seconds": r.PerSeconds, "burst": r.Burst})
	}
	if len(rates) > 0 {
		put(", rate_limits: %s", quoted(rates))
	}
}

func putWorker(put func(string, ...any), w *sim.Worker) {
	put("  - {name: %s, count: %d, pool: %s, cpu: %g, memory_mb: %d, disk_mb: %d", quoted(w.Name), max(1, w.Count), quoted(w.Pool), float64(w.CPUMilli)/1000, w.MemoryMB, w.DiskMB)
	if len(w.KindSlots) > 0 {
		put(", slots_by_kind: %s", quoted(w.KindSlots))
	} else {
		put(", slots: %d", w.Slots)
	}
	if len(w.GPUs) > 0 {
		var cards []int64
		for _, c := range w.GPUs {
			cards = append(cards, c.VRAMMB)
		}
		put(", gpus: %s", quoted(cards))
	}
	if len(w.Kinds) > 0 {
		var names []string
		for _, k := range w.Kinds {
			names = append(names, k.String())
		}
		put(", kinds: %s", quoted(names))
	}
	put(", models: %s, permissions: %s, task_types: %s, lanes: %s", quoted(list(w.Models)), quoted(list(w.Permissions)), quoted(list(w.TaskTypes)), quoted(list(w.Lanes)))
	if w.AnyModel {
		put(", any_model: true")
	}
	if w.AnyPermit {
		put(", any_permission: true")
	}
	if len(w.Labels) > 0 {
		put(", labels: %s", quoted(w.Labels))
	}
	if w.LeaseSeconds > 0 {
		put(", lease: %ds", w.LeaseSeconds)
	}
	put("}\n")
}

func putArrival(put func(string, ...any), a *sim.Arrival) {
	put("  - tenant: %s\n    name: %s\n    type: %s\n    lane: %s\n    priority: %d\n", quoted(a.Tenant), quoted(a.Name), quoted(a.Class.Type), quoted(a.Lane), a.Priority)
	c := &a.Class
	put("    needs: {cpu: %g, memory_mb: %d, disk_mb: %d, gpu: %d, vram_mb: %d", float64(c.CPUMilli)/1000, c.MemoryMB, c.DiskMB, c.GPU, c.VRAMMB)
	if a.Tokens > 0 {
		put(", tokens: %d", a.Tokens)
	}
	if c.Model != "" {
		put(", model: %s", quoted(c.Model))
	}
	if len(c.Selector) > 0 {
		put(", labels: %s", quoted(c.Selector))
	}
	put(", permissions: %s}\n", quoted(list(c.Permissions)))
	if a.Deadline > 0 {
		put("    deadline: %s\n", a.Deadline)
	}
	if a.Hard > 0 {
		put("    timeout: %s\n", a.Hard)
	}
	if a.LimitKey != "" {
		put("    key: {name: %s, limit: %d}\n", quoted(a.LimitKey), a.KeyLimit)
	}
	if len(a.Concurrency) > 0 {
		var keys []map[string]any
		for _, k := range a.Concurrency {
			keys = append(keys, map[string]any{"key": k.Name, "limit": k.Limit})
		}
		put("    concurrency: %s\n", quoted(keys))
	}
	if len(a.RateKeys) > 0 {
		put("    rate_keys: %s\n", quoted(a.RateKeys))
	}
	if a.Ordered {
		put("    ordered: true\n")
	}
	put("    max_attempts: %d\n    fail_percent: %d\n    recorded: [", a.MaxAttempts, a.FailPercent)
	for i, item := range a.Items {
		if i > 0 {
			put(",")
		}
		if i%pairsALine == 0 {
			put("\n     ")
		}
		put(" [%.3f, %.3f]", item.At.Seconds(), item.Run.Seconds())
	}
	put("]\n")
}

// quoted is a value as JSON, which YAML reads.
func quoted(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return `""` // no value of a recording fails to encode
	}
	return string(text)
}

func list(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}
