package memory

import "nightshift/models"

func refOf(t *models.Task) models.TaskRef { return models.TaskRef{Env: t.Env, ID: t.ID} }

func lineOf(t *models.Task) models.LineID {
	return models.LineID{Lane: t.Lane, Env: t.Env, Class: t.Class}
}

// put writes a task's row and keeps every index true.
func (r *rows) put(t models.Task) {
	ref := refOf(&t)
	if old, ok := r.tasks[ref]; ok {
		r.index(&old, false)
	}
	r.tasks[ref] = t
	r.index(&t, true)
}

// index enters a row into what its values say, or takes it out.
func (r *rows) index(t *models.Task, in bool) {
	ref, mark := refOf(t), models.Mark{AgeKey: t.AgeKey, ID: t.ID}
	switch {
	case t.State == models.Ready && t.Gate == "":
		r.lines.set(lineOf(t), mark, in)
		if t.LatestStart > 0 {
			r.starts.set(lineOf(t), models.Mark{AgeKey: int64(t.LatestStart), ID: t.ID}, in)
		}
		if t.MoreKeys != "" || t.OrderKey != 0 {
			set(r.standing, ref, in)
		}
	case t.State == models.Ready:
		r.parked.set(parkedKey{lineOf(t), t.Gate}, mark, in)
		if t.OrderKey != 0 {
			r.ordered.set(orderedKey{t.Env, t.Gate}, models.Mark{AgeKey: t.OrderKey, ID: t.ID}, in)
		}
	case t.State.Live():
		set(r.running, ref, in)
	case t.State == models.Pending && free(t):
		set(r.freed, ref, in)
	case t.State == models.DeadLetter:
		r.dead.set(models.TaskRef{Env: t.Env, ID: t.Fingerprint}, t.ID, in)
	case t.State == models.Staged:
		r.staged.set(r.stagingOf[ref], ref, in)
	}
	if t.State.Unready() {
		if in {
			r.later[t.Env]++
		} else {
			r.later[t.Env]--
		}
	}
	if t.HoldsIdle() {
		set(r.idle, ref, in)
	}
	if at := due(t); at != 0 {
		set(r.timers, timer{at, ref}, in)
	}
	if holdsKey(t) {
		if key := (models.IdemRef{Env: t.Env, Key: t.IdemKey}); in {
			r.holders[key] = t.ID
		} else {
			delete(r.holders, key)
		}
	}
	if !t.Parent.IsZero() {
		r.below.set(models.TaskRef{Env: t.Env, ID: t.Parent}, t.ID, in)
		if ref := (models.ChildRef{Env: t.Env, Parent: t.Parent, Key: t.Key}); in {
			r.children[ref] = t.ID
		} else {
			delete(r.children, ref)
		}
	}
	if !t.Workflow.IsZero() && (t.State != models.Staged || r.stagings[r.stagingOf[ref]].Flipped) {
		r.member(t, in)
	}
}

// member counts a task in its workflow.
func (r *rows) member(t *models.Task, in bool) {
	workflow := models.TaskRef{Env: t.Env, ID: t.Workflow}
	counts := r.counts[workflow]
	if in {
		counts[t.State]++
	} else {
		counts[t.State]--
	}
	r.counts[workflow] = counts
	if !t.State.Final() {
		r.members.set(workflow, t.ID, in)
	}
}

func set[K any](o *order[K], k K, in bool) {
	if in {
		o.add(k)
	} else {
		o.remove(k)
	}
}

// free says that a pending task has nothing left to wait for, or nothing left to hope for.
func free(t *models.Task) bool { return t.Remaining == 0 || t.Killed > 0 }

// due is the moment at which time alone changes the row; 0: never.
func due(t *models.Task) models.Instant {
	switch {
	case !t.State.Waiting() || t.State == models.Staged:
		return 0
	case t.WakeAt == 0 || t.ExpiresAt != 0 && t.ExpiresAt < t.WakeAt:
		return t.ExpiresAt
	}
	return t.WakeAt
}

// holdsKey says whether the row keeps its business key from others: live, dead and succeeded tasks do,
// staged ones not yet.
func holdsKey(t *models.Task) bool {
	return t.IdemKey != "" && t.State != models.Staged && t.State <= models.Succeeded
}
