package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"nightshift/models"
	"nightshift/scheduler/sim"
	"nightshift/scheduler/sim/scenario"
	"nightshift/workers/client"
)

// tenants are those that the key sees; whole says that it is the platform's.
func (e *exporter) tenants(ctx context.Context, c *source, slugs []string) (out []sim.Tenant, whole bool, err error) {
	var me struct {
		Tenant *string `json:"tenant_slug"`
	}
	if err := get(ctx, c, "/v1/whoami", &me); err != nil {
		return nil, false, err
	}
	if me.Tenant != nil {
		t := sim.Tenant{Name: *me.Tenant, Weight: 1} // its weight is the platform's to know, and means nothing alone
		if len(slugs) > 0 {
			return nil, false, usageError{fmt.Errorf("--tenant: the key is that of the tenant %s", t.Name)}
		}
		return []sim.Tenant{t}, false, nil
	}
	type row struct {
		Slug   string  `json:"slug"`
		Weight float64 `json:"weight"`
	}
	err = pages(ctx, c, "/v1/tenants", url.Values{"order": {"asc"}}, func(t row) error {
		if len(slugs) == 0 || slices.Contains(slugs, t.Slug) {
			out = append(out, sim.Tenant{Name: t.Slug, Weight: t.Weight})
		}
		return nil
	})
	if err == nil && len(out) < len(slugs) {
		err = usageError{fmt.Errorf("--tenant: of %v the server knows %d", slugs, len(out))}
	}
	return out, true, err
}

func (e *exporter) kinds(ctx context.Context, c *source, r *scenario.Recording) error {
	type row struct {
		Kind       string   `json:"kind"`
		Precedence int32    `json:"precedence"`
		Weight     float64  `json:"weight"`
		MinShare   float64  `json:"min_share"`
		Elastic    bool     `json:"elastic"`
		YieldsTo   []string `json:"yields_to"`
		MaxHold    *int32   `json:"max_hold_seconds"`
	}
	var all struct {
		Data []row `json:"data"`
	}
	if err := get(ctx, c, "/v1/kinds", &all); err != nil { // four: not a list of pages
		return err
	}
	for _, k := range all.Data {
		if name, ok := models.ParseKind(k.Kind); ok {
			r.Kinds = append(r.Kinds, models.Kind{Name: name, Precedence: k.Precedence, Weight: k.Weight, MinShare: k.MinShare, Elastic: k.Elastic, YieldsTo: k.YieldsTo, MaxHold: orZero(k.MaxHold)})
		}
	}
	return nil
}

func (e *exporter) lanes(ctx context.Context, c *source, tenant string, r *scenario.Recording) error {
	type row struct {
		Name          string   `json:"name"`
		Kind          string   `json:"kind"`
		MaxConcurrent *int32   `json:"max_concurrent"`
		TaskTypes     []string `json:"task_types"`
		Elastic       bool     `json:"elastic"`
		YieldsTo      []string `json:"yields_to"`
		MaxHold       *int32   `json:"max_hold_seconds"`
	}
	return pages(ctx, c, "/v1/lanes", nil, func(l row) error {
		kind, ok := models.ParseKind(l.Kind)
		if !ok {
			return nil
		}
		lane := sim.Lane{Tenant: tenant, Name: l.Name, Kind: kind, TaskTypes: l.TaskTypes, Elastic: l.Elastic, YieldsTo: l.YieldsTo, MaxHold: orZero(l.MaxHold)}
		if l.MaxConcurrent != nil {
			lane.MaxConcurrent = *l.MaxConcurrent
		}
		if _, first := models.ParseKind(l.Name); first && lane.MaxConcurrent == 0 && !lane.Elastic && len(lane.TaskTypes) == 0 {
			return nil // a simulated tenant has this one anyway
		}
		r.Lanes = append(r.Lanes, lane)
		return nil
	})
}

// limits are a tenant's quotas, where the key may read them, and its rate limits.
func (e *exporter) limits(ctx context.Context, c *source, t *sim.Tenant) error {
	var quotas struct {
		MaxConcurrent   *int64 `json:"max_concurrent"`
		MaxGPUs         *int64 `json:"max_gpus"`
		MaxVRAMMB       *int64 `json:"max_vram_mb"`
		TokensPerMinute *int64 `json:"tokens_per_minute"`
	}
	if err := get(ctx, c, "/v1/quotas", &quotas); err != nil && client.Status(err) != http.StatusForbidden {
		return err
	}
	t.Quotas = models.Quotas{MaxConcurrent: quotas.MaxConcurrent, MaxGPUs: quotas.MaxGPUs, MaxVRAMMB: quotas.MaxVRAMMB, TokensPerMinute: quotas.TokensPerMinute}
	type row struct {
		Key        string `json:"key"`
		Limit      int64  `json:"limit"`
		PerSeconds int64  `json:"per_seconds"`
		Burst      int64  `json:"burst"`
	}
	return pages(ctx, c, "/v1/rate-limits", nil, func(r row) error {
		t.Rates = append(t.Rates, models.RateLimit{Key: r.Key, Limit: r.Limit, PerSeconds: r.PerSeconds, Burst: r.Burst})
		return nil
	})
}

// orZero is the value, 0 where there is none.
func orZero(v *int32) int32 {
	if v == nil {
		return 0
	}
	return *v
}

// workers counts like ones together.
func (e *exporter) workers(ctx context.Context, c *source, r *scenario.Recording) error {
	type row struct {
		State     string   `json:"state"`
		Pool      string   `json:"pool"`
		TaskTypes []string `json:"task_types"`
		Lanes     []string `json:"lanes"`
		Kinds     []string `json:"kinds"`
		Resources struct {
			CPU      float64 `json:"cpu"`
			MemoryMB int64   `json:"memory_mb"`
			DiskMB   int64   `json:"disk_mb"`
			GPUs     []struct {
				VRAMMB int64 `json:"vram_mb"`
			} `json:"gpus"`
		} `json:"resources"`
		Slots        json.RawMessage   `json:"slots"`
		Models       []string          `json:"models"`
		Permissions  []string          `json:"permissions"`
		Labels       map[string]string `json:"labels"`
		LeaseSeconds int32             `json:"lease_seconds"`
	}
	known := map[string]int{}
	return pages(ctx, c, "/v1/workers", nil, func(w row) error {
		if w.State == "gone" {
			return nil
		}
		like, err := json.Marshal(w)
		if err != nil {
			return err
		}
		if n, ok := known[string(like)]; ok {
			r.Workers[n].Count++
			return nil
		}
		known[string(like)] = len(r.Workers)
		out := sim.Worker{Name: "w" + strconv.Itoa(len(r.Workers)+1), Count: 1, Worker: models.Worker{
			Pool: w.Pool, TaskTypes: w.TaskTypes, Lanes: w.Lanes, Models: w.Models, AnyModel: w.Models == nil, Permissions: w.Permissions, AnyPermit: w.Permissions == nil, Labels: w.Labels, LeaseSeconds: w.LeaseSeconds,
			CPUMilli: int64(w.Resources.CPU * 1000), MemoryMB: w.Resources.MemoryMB, DiskMB: w.Resources.DiskMB,
		}}
		if json.Unmarshal(w.Slots, &out.Slots) != nil {
			if err := json.Unmarshal(w.Slots, &out.KindSlots); err != nil {
				return fmt.Errorf("the slots of a worker: %w", err)
			}
		}
		for _, name := range w.Kinds {
			if kind, ok := models.ParseKind(name); ok {
				out.Kinds = append(out.Kinds, kind)
			}
		}
		for _, card := range w.Resources.GPUs {
			out.GPUs = append(out.GPUs, models.GPUCard{VRAMMB: card.VRAMMB})
		}
		r.Workers = append(r.Workers, out)
		return nil
	})
}
