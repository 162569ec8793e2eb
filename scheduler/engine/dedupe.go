package engine

import (
	"slices"

	"nightshift/models"
)

// dedupeHolder is the task that keeps t's dedupe key from it, nil when none does.
func (e *Engine) dedupeHolder(env int32, t *NewTask) *models.Task {
	if t.Dedupe == nil {
		return nil
	}
	ref := models.IdemRef{Env: env, Key: t.Dedupe.Key}
	held := e.b.dedupes[ref]
	if known, ok := e.b.facts.Dedupes[ref]; ok && held == nil {
		held = &known
	}
	if held == nil {
		return nil
	}
	row := held.Row
	if now := e.peek(models.TaskRef{Env: env, ID: held.Task}); now != nil {
		row = *now
	}
	if !held.Holds(&row, e.now) {
		return nil
	}
	return &row
}

// deduped is what a submit does about a dedupe key: the holder is answered, or the whole body refused.
func (e *Engine) deduped(s *Submit, t *NewTask, at string, keys map[string]bool) (*models.Task, error) {
	if t.Dedupe == nil {
		return nil, nil
	}
	name := "dedupe\x00" + t.Dedupe.Key
	if keys[name] {
		return nil, models.Invalid(at+".dedupe.key", "the key %q stands twice in one body", t.Dedupe.Key)
	}
	keys[name] = true
	row := e.dedupeHolder(s.Env, t)
	if row != nil && !s.InBatch {
		return nil, models.Invalid(at+".dedupe.key", "the key %q is held by %s", t.Dedupe.Key, row.ID.Text(models.TaskPrefix))
	}
	return row, nil
}

// takeDedupe gives a new task its dedupe key.
func (e *Engine) takeDedupe(env int32, t *NewTask) {
	if t.Dedupe == nil {
		return
	}
	d := *t.Dedupe
	d.Env, d.Task = env, t.ID
	e.b.dedupes[models.IdemRef{Env: env, Key: d.Key}] = &models.Deduped{Dedupe: d}
	e.b.plan.Dedupes = slices.DeleteFunc(e.b.plan.Dedupes, func(o models.Dedupe) bool { return o.Env == env && o.Key == d.Key })
	e.b.plan.Dedupes = append(e.b.plan.Dedupes, d)
}
