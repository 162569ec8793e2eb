package engine

import (
	"fmt"
	"maps"
	"strings"

	"nightshift/models"
	"nightshift/scheduler/calendar"
)

// expect notes by when an occurrence must have ended. One that was left out on purpose need not, nor what is made up.
func (e *Engine) expect(s *schedule, r *scheduleRun) {
	if s.Rule.WithinSeconds == 0 || strings.HasPrefix(r.Origin, "backfill:") {
		return
	}
	switch calendar.Outcome(r.Outcome) {
	case calendar.Excluded, calendar.SkippedPaused, calendar.SkippedOverlap:
		return
	}
	r.DueAt = r.ScheduledFor.Add(models.Seconds(int(s.Rule.WithinSeconds)))
	e.heed(r)
}

// heed keeps a timer for a run that must have ended by a moment, and tells at once of one that never will.
func (e *Engine) heed(r *scheduleRun) {
	if r.DueAt == 0 || r.LateAt > 0 {
		return
	}
	hopeless := false
	switch calendar.Outcome(r.Outcome) {
	case calendar.Misfired, calendar.Expired, calendar.Failed:
		hopeless = true
	case calendar.Superseded:
		hopeless = !r.Work().IsZero() // one that only waited has a newer one in its place
	}
	switch {
	case hopeless:
		e.tellLate(r)
	case r.Open() && r.Outcome != string(calendar.Superseded):
		e.plans.due(r)
	default:
		e.plans.forget(r)
	}
}

// tellLate tells once that a run has not ended by its time.
func (e *Engine) tellLate(r *scheduleRun) {
	e.plans.forget(r)
	r.LateAt = e.now
	if within := r.DueAt.Sub(r.ScheduledFor); r.Cause == "" {
		r.Cause = fmt.Sprintf("it had not ended %d seconds after its moment", int(within.Seconds()))
	}
	e.record(r)
	e.b.notes.late++
	ev := e.scheduleEvent(r.of, "schedule.late", r.Cause)
	ev.Task, ev.Workflow = r.Task, r.Workflow
}

// decideLate tells of the runs whose time is over, a bounded number a batch.
func (e *Engine) decideLate() {
	for _, id := range e.plans.dues.Due(e.now, e.eased(min(rowsAtOnce, e.cfg.Slice))) {
		e.tellLate(e.plans.expected[id])
	}
}

func (p *plans) due(r *scheduleRun) {
	p.expected[r.ID] = r
	p.dues.Set(r.ID, r.DueAt)
}

func (p *plans) forget(r *scheduleRun) {
	delete(p.expected, r.ID)
	p.dues.Set(r.ID, 0)
}

// came counts what became of an occurrence.
func (e *Engine) came(outcome string) {
	if e.b.notes.outcomes == nil {
		e.b.notes.outcomes = map[string]int64{}
	}
	e.b.notes.outcomes[outcome]++
}

// scheduleCounts count occurrences since this brain began: each outcome when it was decided, so that a run that started
// and was superseded later counts in both.
type scheduleCounts struct {
	outcomes map[string]int64
	late     int64
	messages [2]messageCounts // by source
}

func (c *scheduleCounts) take(n *notes) {
	for outcome, k := range n.outcomes { // any order: sums
		c.outcomes[outcome] += k
	}
	c.late += n.late
	for source := range n.messages {
		c.messages[source].add(&n.messages[source])
	}
}

func (c *scheduleCounts) show(s *Stats) {
	s.ScheduleRuns, s.ScheduleLate = maps.Clone(c.outcomes), c.late
}

// checkDues says where a timer of a run that must end is missing.
func (e *Engine) checkDues(s *models.ScheduleSnapshot) error {
	n := 0
	for i := range s.Runs {
		if r := &s.Runs[i]; r.DueAt > 0 && r.LateAt == 0 && r.Outcome != string(calendar.Superseded) {
			if n++; e.plans.dues.At(r.ID) != r.DueAt {
				return fmt.Errorf("run %x must have ended by %d, and its timer says %d", r.ID, r.DueAt, e.plans.dues.At(r.ID))
			}
		}
	}
	if n != e.plans.dues.Len() {
		return fmt.Errorf("%d runs must end by a moment, and there are %d timers", n, e.plans.dues.Len())
	}
	return nil
}

// next is the first moment at which something of a schedule is due.
func (p *plans) next() models.Instant { return min(p.agenda.Next(), p.dues.Next()) }
