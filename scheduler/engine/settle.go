package engine

import (
	"encoding/json"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/retry"
)

// settle judges reports. A report of a lease that is not the task's any more changes nothing but the books.
func (e *Engine) settle(s *Settle) (*Answer, error) {
	if !s.Worker.IsZero() {
		w, err := e.worker(s.Worker, s.Session)
		if err != nil {
			return nil, err
		}
		w.LastSeen = max(w.LastSeen, e.now)
	}
	answer := &Answer{Settled: make([]Settled, len(s.Results))}
	for i := range s.Results {
		r := &s.Results[i]
		lease := e.board.Leases[r.Token]
		if lease == nil || !s.Worker.IsZero() && lease.Row().Worker != s.Worker || !s.Task.IsZero() && (lease.Row().ID != s.Task || lease.Row().Env != s.Env) {
			answer.Settled[i] = e.late(r)
			continue
		}
		if err := holdsSession(lease, s.Session); err != nil {
			return nil, err
		}
		code := models.Code("")
		if r.Outcome == models.AttemptSucceeded && r.Mark != nil && !lease.Row().Has(models.Itemized) {
			if why := e.moveMark(lease.Row(), r.Mark); why != nil { // another has moved it: the value stays
				failed := *r
				failed.Outcome, failed.Error, failed.Result, code = models.AttemptFailed, why, nil, models.StateConflict
				r = &failed
			}
		}
		var c *change
		if lease.Row().Has(models.Itemized) || r.Items != nil {
			c, code = e.reportItems(lease, r, code)
		} else {
			c = e.report(lease, r)
		}
		e.b.fill = append(e.b.fill, func() {
			row := c.row
			answer.Settled[i] = Settled{Token: r.Token, Accepted: true, Row: &row, Code: code, Booked: len(r.Usage) > 0}
		})
	}
	return answer, nil
}

// late answers a report without a lease: settled before, or lost, and then its usage is booked once.
func (e *Engine) late(r *Result) Settled {
	out := Settled{Token: r.Token, Code: models.LeaseLost}
	attempt, known := e.b.facts.Tokens[models.TokenRef{Env: r.Task.Env, Task: r.Task.ID, Token: r.Token}]
	for i := range e.b.plan.Attempts { // it may have ended in this very batch
		if a := &e.b.plan.Attempts[i]; a.Token == r.Token && a.Task == r.Task.ID && a.Env == r.Task.Env {
			if lostOutcome(a.Outcome) && len(a.Usage) == 0 {
				a.Usage = e.spendLate(r, a)
				if row := e.peek(r.Task); row != nil {
					a.Model = e.usedModel(e.board.TenantOf(row.Env), a.Model, r.Usage)
				}
				e.noteLate(a.Usage)
			}
			attempt, known = *a, true
		}
	}
	if !known {
		return out
	}
	if row := e.peek(r.Task); row != nil {
		copied := *row
		out.Row = &copied
	}
	if !lostOutcome(attempt.Outcome) {
		out.Accepted, out.Code, out.Booked = true, "", len(attempt.Usage) > 0
		return out
	}
	if r.Outcome == models.AttemptReleased && attempt.Outcome == models.AttemptReleased { // it went back, as this report asks
		out.Accepted, out.Code = true, ""
	}
	booked := slices.ContainsFunc(e.b.plan.Late, func(l models.Late) bool { return l.Token == r.Token })
	if len(r.Usage) > 0 && len(attempt.Usage) == 0 && !booked {
		usage := e.spendLate(r, &attempt)
		e.b.plan.Late = append(e.b.plan.Late, models.Late{Env: r.Task.Env, Task: r.Task.ID, Token: r.Token, Usage: usage})
		e.noteLate(usage)
	}
	out.Booked = !out.Accepted || len(attempt.Usage)+len(r.Usage) > 0
	return out
}

func lostOutcome(o models.Outcome) bool {
	return o == models.AttemptLost || o == models.AttemptTimedOut || o == models.AttemptReleased
}

// report settles the attempt of a live lease.
func (e *Engine) report(lease *board.Lease, r *Result) *change {
	if len(r.Checkpoint) > 0 {
		row := lease.Row()
		e.keep(models.Progress{Env: row.Env, Task: row.ID, Checkpoint: r.Checkpoint})
	}
	asked := lease.Row().State == models.CancelRequested
	switch {
	case r.Outcome == models.AttemptSucceeded:
		c, charged := e.endAttempt(lease, r.Outcome, nil, r)
		c.row.AttemptsUsed++
		c.row.ErrorClass = ""
		ev := e.conclude(c, models.Reported, models.Succeeded, "task.succeeded")
		ev.Worker, ev.Pool, ev.Charged = lease.Worker.ID, lease.Pool, charged
		return c
	case r.Outcome == models.AttemptReleased && asked:
		return e.cancelled(lease, models.GivenBack, r.Outcome, r)
	case r.Outcome == models.AttemptReleased:
		return e.release(lease, &Result{Outcome: r.Outcome, Usage: r.Usage})
	case r.Outcome == models.AttemptSuspended && asked:
		return e.cancelled(lease, models.Suspends, r.Outcome, r)
	case r.Outcome == models.AttemptSuspended && lease.Row().Has(models.HasChildren):
		return e.suspend(lease, r)
	case r.Outcome == models.AttemptSuspended:
		childless := &models.TaskError{Class: "internal", Message: "it was suspended without having spawned anything to wait for"}
		return e.fail(lease, models.ReportedFailure, models.AttemptFailed, childless, r)
	case asked:
		return e.cancelled(lease, models.ReportedFailure, models.AttemptCancelled, r)
	}
	failure := r.Error
	if failure == nil {
		failure = &models.TaskError{Class: "internal", Message: "the worker gave no reason"}
	}
	if r.Outcome == models.AttemptCancelled {
		failure = &models.TaskError{Class: "cancelled", Message: "the worker gave the task up without being asked"}
	}
	return e.fail(lease, models.ReportedFailure, models.AttemptFailed, failure, r)
}

// cancelled ends an attempt that was asked to stop.
func (e *Engine) cancelled(lease *board.Lease, cause models.Cause, outcome models.Outcome, r *Result) *change {
	var failure *models.TaskError
	if r != nil {
		failure = r.Error
	}
	c, charged := e.endAttempt(lease, outcome, failure, r)
	ev := e.conclude(c, cause, models.Cancelled, "task.cancelled")
	ev.Pool, ev.Charged = lease.Pool, charged
	return c
}

// release gives a task back to its line at once; it uses no attempt. What its worker used until then it has used.
func (e *Engine) release(lease *board.Lease, r *Result) *change {
	if lease.Row().State == models.CancelRequested {
		return e.cancelled(lease, models.GivenBack, models.AttemptReleased, r)
	}
	c, charged := e.endAttempt(lease, models.AttemptReleased, nil, r)
	e.becomeReady(c, models.GivenBack)
	ev := e.event(c, "task.released")
	ev.Pool, ev.Charged = lease.Pool, charged
	return c
}

// fail ends an attempt with an error: another follows, or the task is a dead letter or failed.
func (e *Engine) fail(lease *board.Lease, cause models.Cause, outcome models.Outcome, failure *models.TaskError, r *Result) *change {
	row := lease.Row()
	policy := e.policyOf(row)
	class := retry.Class(failure.Class)
	kept := *failure
	kept.Class = class
	after := 0.0
	if r != nil {
		after = r.RetryAfter
	}
	if row.Has(models.Itemized) {
		return e.failItems(lease, cause, outcome, &kept, after, &policy, r)
	}
	verdict := retry.Decide(retry.Failure{Class: class, Used: row.AttemptsUsed, RetryAfter: after, Since: e.now.Sub(row.ReadyAt)}, &policy, e.rng)
	used := row.AttemptsUsed
	if verdict.Uses {
		used++
	}
	spent := e.outOfRetries(row, &verdict)
	if class == "quality_too_low" && verdict.Again {
		if choice := e.climb(row); choice != nil {
			verdict.Wait = 0 // another model does not need to recover
			c := e.failed(lease, cause, outcome, &kept, r, verdict, used, spent)
			e.climbed(c, choice)
			return c
		}
	}
	return e.failed(lease, cause, outcome, &kept, r, verdict, used, spent)
}

// policyOf is the retry policy of a task, its own or what is usual.
func (e *Engine) policyOf(row *models.Task) models.RetryPolicy {
	policy, ok := e.b.facts.Policies[models.TaskRef{Env: row.Env, ID: row.ID}]
	if !ok {
		policy = models.DefaultRetryPolicy()
		policy.MaxAttempts = row.MaxAttempts
	}
	return policy
}

// failed ends an attempt as was decided: used is how many of the task's attempts are used then; spent says that its workflow's
// retries are.
func (e *Engine) failed(lease *board.Lease, cause models.Cause, outcome models.Outcome, kept *models.TaskError, r *Result, verdict retry.Verdict, used int32, spent bool) *change {
	class := kept.Class
	c, charged := e.endAttempt(lease, outcome, kept, r)
	c.row.ErrorClass, c.row.AttemptsUsed = class, used
	if verdict.Again {
		e.move(c, cause, models.RetryWait)
		c.row.WakeAt = e.now.Add(max(verdict.Wait, time.Microsecond))
		e.place(c)
		e.note(tallyRetried, &c.row)
		ev := e.event(c, "task.retrying")
		ev.Class, ev.Pool, ev.Charged = class, lease.Pool, charged
		return c
	}
	if spent {
		c.row.Flags |= models.RetriesSpent
	}
	ev := e.giveUp(c, cause, kept)
	ev.Pool, ev.Charged = lease.Pool, charged
	if spent {
		ev.Reason = "its workflow's max_retries are used up"
	}
	return c
}

// giveUp makes a task a dead letter, or failed where it was submitted so.
func (e *Engine) giveUp(c *change, cause models.Cause, failure *models.TaskError) *models.Event {
	to, name := models.DeadLetter, "task.dead_lettered"
	if c.row.Has(models.FailWhenSpent) && cause != models.Gone {
		to, name = models.Failed, "task.failed"
	} else {
		c.row.Fingerprint = fingerprint(e.board.Classes[c.row.Class].Type, failure)
	}
	ev := e.conclude(c, cause, to, name)
	ev.Class = failure.Class
	return ev
}

// endAttempt takes the lease off, books what it used, and writes the attempt. It answers what the pool is charged.
func (e *Engine) endAttempt(lease *board.Lease, outcome models.Outcome, failure *models.TaskError, r *Result) (*change, float64) {
	c := e.enlist(lease.Row())
	row := &c.row
	charged := e.used(lease) * lease.Rate
	class := e.board.Classes[row.Class]
	attempt := models.Attempt{
		Env: row.Env, Task: row.ID, N: row.Attempt, ID: row.AttemptID, Token: row.Token, Worker: row.Worker, Outcome: outcome,
		Pool: lease.Pool, StartedAt: row.StartedAt, FinishedAt: e.now, ChargedMS: int64(charged * 1000), Error: failure, Model: class.Model,
	}
	if lease.Worker != nil {
		attempt.WorkerVersion = lease.Worker.Version
		e.board.Correct(lease, charged)
	}
	if r != nil {
		attempt.Model = e.usedModel(lease.Tenant, class.Model, r.Usage)
		attempt.Usage, attempt.Result = e.costed(row, attempt.Model, r.Usage), resultOf(r)
	}
	if outcome == models.AttemptSucceeded {
		if lease.Unseen == 0 { // else nobody knows how long it ran
			e.book.Saw(lease.Tenant, row.Class, e.now.Sub(row.StartedAt).Seconds())
		}
		if len(attempt.Usage) > 0 {
			used := models.SpendOf(attempt.Usage)
			e.book.Spent(lease.Tenant, row.Class, used.Tokens, used.CostMicro)
			e.board.Learned(lease.Tenant, row.Class)
		}
	}
	e.learn(lease, class.Type, attempt.Model, outcome, failure, attempt.Usage)
	e.b.plan.Attempts = append(e.b.plan.Attempts, attempt)
	e.pay(lease, &attempt, r == nil)
	e.useTokens(lease.Tenant, row, attempt.Usage)
	for _, s := range lease.Signals { // nobody is left to hear them
		e.b.plan.SignalsGone = append(e.b.plan.SignalsGone, s.ID)
	}
	lease.Signals = nil
	row.ExpiresAt = row.TotalUntil
	e.noteRun(&attempt, lease.Kind, row.CostMicro)
	e.board.End(lease)
	e.dirty = true
	row.Worker, row.AttemptID, row.Token, row.LeaseUntil, row.Cards, row.CancelAt = models.ID{}, models.ID{}, models.ID{}, 0, 0, 0
	return c, charged
}

func resultOf(r *Result) json.RawMessage {
	if r.Outcome == models.AttemptSucceeded {
		return r.Result
	}
	return nil
}
