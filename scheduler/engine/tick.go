package engine

import (
	"cmp"
	"fmt"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
)

// sweepEvery is how often leases are looked through, saveEvery how often last signs of life and virtual times are saved.
const (
	sweepEvery = 1_000_000
	saveEvery  = 10_000_000
)

// estimatesAtOnce bounds how many histograms are saved in one batch.
const estimatesAtOnce = 500

// poisonous is how many lost leases make a task a dead letter, mostLost how many do whatever else was lost with them.
const (
	poisonous = 3
	mostLost  = 10
)

// loss is one lease that ended without a report.
type loss struct {
	at     models.Instant
	worker models.ID
}

// tick does what time alone makes due.
func (e *Engine) tick() (*Answer, error) {
	e.fireTimers()
	if e.now-e.swept >= sweepEvery {
		e.swept = e.now
		e.sweepLeases()
		e.noteSilence()
		e.endFlows()
		e.saveFlows()
		e.b.plan.Quota.Levels = e.board.Levels()
		e.b.plan.Models.Levels = e.board.ModelLevels()
		e.measureLead()
		e.reserve()
		e.lookOn()
		e.lookLower()
		e.watchLoad()
		for _, id := range e.board.IdleKeeps() {
			e.board.Unkeep(id)
		}
	}
	e.adapt()
	if e.now-e.saved >= saveEvery {
		e.saved = e.now
		e.save()
	}
	return &Answer{}, nil
}

// fireTimers makes due what is due, at most a slice of it.
func (e *Engine) fireTimers() {
	for range e.portion() {
		entry := e.board.DueBy(e.now)
		if entry == nil {
			return
		}
		c := e.enlist(&entry.Row)
		switch {
		case c.row.ExpiresAt != 0 && c.row.ExpiresAt <= e.now && c.row.TotalUntil > 0:
			e.outOfTime(c)
		case c.row.ExpiresAt != 0 && c.row.ExpiresAt <= e.now:
			e.conclude(c, models.TooLate, models.Expired, "task.expired")
		case c.row.State == models.Scheduled, c.row.State == models.RetryWait:
			e.becomeReady(c, models.Due)
			e.event(c, "task.ready")
		default: // the run_at of one that still waits for others
			c.row.WakeAt = 0
			e.sync(c)
		}
		e.board.Settle(entry)
	}
}

// sweepLeases ends the leases that ran out, timed out, or ignored a cancel.
func (e *Engine) sweepLeases() {
	var lost []*board.Lease
	for _, lease := range e.sortedLeases() {
		e.accrue(lease)
		row := lease.Row()
		ran := e.now - row.StartedAt
		switch {
		case row.State == models.CancelRequested && e.now-row.CancelAt >= cancelGrace:
			e.b.notes.lost[lostSilent]++
			e.cancelled(lease, models.Gone, models.AttemptLost, nil)
		case row.TotalUntil > 0 && row.TotalUntil <= e.now && row.State == models.Running:
			c, charged := e.endAttempt(lease, models.AttemptTimedOut, totalOver(row), nil)
			ev := e.outOfTime(c)
			ev.Pool, ev.Charged = lease.Pool, charged
		case row.HardSeconds > 0 && ran >= models.Instant(row.HardSeconds)*1_000_000:
			e.timeOut(lease)
		case lease.Until <= e.now:
			lost = append(lost, lease)
		case row.SoftSeconds > 0 && !lease.SoftTold && ran >= models.Instant(row.SoftSeconds)*1_000_000:
			lease.SoftTold = true
			e.event(e.enlist(row), "task.soft_timeout")
		}
	}
	e.loseAll(lost, lostSilent)
}

var whyLost = map[cause]string{
	lostSilent:   "the worker was silent until its lease ended",
	lostReplaced: "the worker was started anew without it",
}

// loseAll ends leases of which their workers say nothing any more.
func (e *Engine) loseAll(lost []*board.Lease, why cause) {
	e.b.notes.lost[why] += int64(len(lost))
	for _, lease := range lost {
		e.losses = append(e.losses, loss{at: e.now, worker: lease.Row().Worker})
	}
	mass := e.massLoss(len(e.board.Leases) - len(lost))
	for _, lease := range lost {
		e.lose(lease, mass, whyLost[why])
	}
}

func (e *Engine) sortedLeases() []*board.Lease {
	out := make([]*board.Lease, 0, len(e.board.Leases))
	for _, l := range e.board.Leases { // any order: sorted below
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b *board.Lease) int {
		return cmp.Or(cmp.Compare(a.Row().StartedAt, b.Row().StartedAt), a.Row().ID.Compare(b.Row().ID))
	})
	return out
}

func totalOver(row *models.Task) *models.TaskError {
	return &models.TaskError{Class: "timeout", Message: TotalOver(row.TotalSeconds)}
}

// TotalOver says that the time for all attempts of a task is over.
func TotalOver(seconds int32) string {
	return fmt.Sprintf("all its attempts and waits took longer than its total timeout of %d s", seconds)
}

// outOfTime ends a task whose time for all attempts is over: no retry follows.
func (e *Engine) outOfTime(c *change) *models.Event {
	failure := totalOver(&c.row)
	c.row.ErrorClass = failure.Class
	return e.giveUp(c, models.TimedOut, failure)
}

func (e *Engine) timeOut(lease *board.Lease) {
	row := lease.Row()
	if row.State == models.CancelRequested {
		e.cancelled(lease, models.TimedOut, models.AttemptTimedOut, nil)
		return
	}
	if _, read := e.b.facts.Policies[models.TaskRef{Env: row.Env, ID: row.ID}]; row.Has(models.HasPolicy) && !read {
		return // its policy is read for the next sweep
	}
	if !e.known(row) {
		return // its workflow's budget is read for the next sweep
	}
	if row.Has(models.Itemized) && !e.knowsItems(row) {
		return // how far its items are is read for the next sweep
	}
	e.fail(lease, models.TimedOut, models.AttemptTimedOut, &models.TaskError{Class: "timeout", Message: fmt.Sprintf("it ran longer than its hard timeout of %d s", row.HardSeconds)}, nil)
}

// massLoss says that so much was lost at once that the fault is not the tasks': at least three workers and half of all
// leases within one lease time. Living are those that are left.
func (e *Engine) massLoss(living int) bool {
	e.losses = slices.DeleteFunc(e.losses, func(l loss) bool { return e.now-l.at > 30_000_000 })
	workers := map[models.ID]bool{}
	for _, l := range e.losses {
		workers[l.worker] = true
	}
	return len(workers) >= 3 && len(e.losses) >= living
}

// lose ends a lease without a report: the task is ready again at once, or, having lost too many, a dead letter.
func (e *Engine) lose(lease *board.Lease, mass bool, why string) {
	if lease.Row().State == models.CancelRequested {
		e.cancelled(lease, models.Gone, models.AttemptLost, nil)
		return
	}
	worker := lease.Row().Worker
	failure := &models.TaskError{Class: "worker_lost", Message: why}
	c, charged := e.endAttempt(lease, models.AttemptLost, failure, nil)
	if c.row.LeasesLost++; mass {
		c.row.LeasesLost += models.UncountedLoss - 1
	}
	c.row.ErrorClass = failure.Class
	if c.row.Poisonous() >= poisonous || c.row.AllLost() >= mostLost {
		ev := e.giveUp(c, models.Gone, failure)
		ev.Pool, ev.Charged = lease.Pool, charged
		return
	}
	e.becomeReady(c, models.Gone)
	ev := e.event(c, "task.ready")
	ev.Class, ev.Worker, ev.Pool, ev.Charged = failure.Class, worker, lease.Pool, charged
}

// save writes the signs of life and the virtual times, in one statement each.
func (e *Engine) save() {
	for _, lease := range e.sortedLeases() { // what is saved holds all until now
		e.accrue(lease)
	}
	for _, w := range e.workers() {
		e.b.plan.Seen = append(e.b.plan.Seen, models.Seen{Worker: w.ID, At: w.LastSeen})
	}
	e.b.plan.Virtual = e.board.Virtuals()
	e.b.plan.Estimates = e.book.Changes(estimatesAtOnce)
	e.b.plan.Models.Seen = e.taught.Changes(estimatesAtOnce)
}
