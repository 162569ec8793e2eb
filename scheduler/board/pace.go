package board

import "nightshift/models"

// rivalsMost is how many tenants are looked at to say how much of a worker is a tenant's: more are counted like these.
const rivalsMost = 64

// Rivals is the weight of the other tenants that have work of a kind for workers like this one.
func (b *Board) Rivals(w *Worker, kind models.KindName, tenant int32) (weight float64) {
	if w.Make == nil {
		return 0
	}
	heap := w.Make.heaps[kind]
	looked := heap[:min(len(heap), rivalsMost)]
	for i := range looked {
		if of := looked[i].stand.Tenant; of != tenant {
			weight += b.Weight(of)
		}
	}
	return weight * float64(len(heap)) / float64(max(1, len(looked)))
}

// RatesLet is when the rates of a task's keys will have let all those pass that need them by now, and the task itself: 0,
// where no rate holds it back. One that is not counted among them yet comes after all.
func (b *Board) RatesLet(row *models.Task, counted bool) (at models.Instant) {
	for need := range row.Keys() {
		k := b.keys[idOf(row.Env, need)]
		if !need.Rate() || k == nil || k.Meter == nil {
			continue
		}
		before := k.queued
		for _, n := range k.Admitted { // any order: a sum
			before += int64(n)
		}
		if !counted {
			before++
		}
		terms := k.Meter.Terms
		once := max(1, min(before, terms.Limit))
		if terms.Burst > 0 {
			once = min(once, terms.Burst)
		}
		opens := k.Meter.OpensFor(b.Now, once)
		if opens == models.Forever {
			continue
		}
		rest := float64(max(0, before-once)) * terms.Per.Seconds() / float64(max(1, terms.Limit))
		at = max(at, opens+models.Instant(rest*1e6))
	}
	return at
}
