package engine

import (
	"encoding/json"

	"nightshift/models"
)

// What stands in the audit of a thing before and after an edit: the fields that people set, by the names they know.

func tenantWords(t *models.Tenant) any {
	if t == nil {
		return nil
	}
	return map[string]any{"slug": t.Slug, "name": t.Name, "weight": t.Weight, "timezone": t.Timezone, "suspended": t.Suspended}
}

func environmentWords(e *models.Environment) any {
	if e == nil {
		return nil
	}
	return map[string]any{"name": e.Name, "kind": e.Kind, "paused": e.Paused}
}

func kindWords(k *models.Kind) any {
	return map[string]any{
		"precedence": k.Precedence, "weight": k.Weight, "min_share": k.MinShare, "elastic": k.Elastic, "yields_to": k.YieldsTo, "max_hold_seconds": k.MaxHold,
	}
}

func laneWords(l *models.Lane) any {
	if l == nil {
		return nil
	}
	return map[string]any{
		"kind": l.Kind.String(), "weight": l.Weight, "max_concurrent": l.MaxConcurrent, "high_water": l.HighWater, "task_types": l.TaskTypes, "paused": l.Paused,
		"elastic": l.Elastic, "yields_to": l.YieldsTo, "max_hold_seconds": l.MaxHold, "defaults": l.Defaults,
		"draining": l.Draining, "description": l.Description, "owner": l.Owner, "runbook_url": l.RunbookURL,
	}
}

// scheduleWords says when a schedule fires and whether it does; what it does stands in its versions.
func scheduleWords(s *models.Schedule, enabled bool) any {
	if s == nil {
		return nil
	}
	out := map[string]any{}
	if text, err := json.Marshal(s.Rule); err == nil {
		_ = json.Unmarshal(text, &out) // just written
	}
	out["name"], out["version"], out["enabled"] = s.Name, s.Version, enabled
	return out
}

// budgetWords says what a budget covers.
func budgetWords(g *models.Budget) any {
	return map[string]any{
		"scope": g.Scope.String(), "name": g.Name, "period": g.Period.String(), "timezone": g.Timezone, "limit_micro_usd": g.LimitMicro,
		"limit_tokens": g.LimitTokens, "on_exhausted": g.OnExhausted.String(), "alert_at": g.AlertAt,
	}
}
