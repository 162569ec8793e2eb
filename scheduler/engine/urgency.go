package engine

import (
	"encoding/json"

	"nightshift/models"
	"nightshift/scheduler/board"
)

const (
	// marginSeconds and marginShare are what a latest start leaves for claiming and for estimates that are a little off.
	marginSeconds = 1.0
	marginShare   = 0.05
	// startQuantile is how sure a run time must be when it is counted back from a deadline.
	startQuantile = 0.7
	// leadMargin is how long before its latest start a task is looked at even when nothing else waits, in seconds.
	leadMargin = 600
)

// mostAhead bounds what the rest of a critical path is worth in waiting: an hour, sixty points of priority.
const mostAhead = 3600 * 1_000_000

// AheadKey is what the rest of a workflow's critical path takes off a task's age key, in µs. Until a task is ready its
// row carries it there, negative.
func AheadKey(aheadMS int64) int64 { return min(max(aheadMS, 0)*1000, mostAhead) }

// finerAhead divides what the rest of the critical path is worth inside a workflow that is to finish first: all of it
// together is a tenth of a second, so it orders the workflow's tasks and hardly anything else.
const finerAhead = 36_000

// importance is what a new task's place in its workflow takes off its age key, in µs. Where a workflow is to finish first
// each of its tasks, those added later too, counts from its beginning and has all that a critical path may be worth: none of
// a workflow that came later goes before it, however long its path.
func (e *Engine) importance(f *flow, aheadMS int64) int64 {
	key := AheadKey(aheadMS)
	if f == nil || !f.first {
		return key
	}
	return mostAhead + key/finerAhead + int64(e.now-f.row.CreatedAt)
}

// finishesFirst reads what was asked of a workflow.
func finishesFirst(input json.RawMessage) bool {
	var asked struct {
		FinishFirst bool `json:"finish_first"`
	}
	return len(input) > 2 && json.Unmarshal(input, &asked) == nil && asked.FinishFirst
}

// rank fixes a task's place in its line the first time it is ready: by age and priority and, with a deadline, by the
// moment it must start. Tasks of a workflow age from its beginning, the longest rest of the critical path first. Linear
// ageing never changes the order of two tasks, so both keys are written once.
func (e *Engine) rank(c *change) {
	c.row.ReadyAt = e.now
	since := e.now
	if !c.row.Workflow.IsZero() {
		since = c.row.CreatedAt
	}
	c.row.AgeKey += models.AgeKeyOf(since, c.row.Priority)
	c.row.LatestStart = e.latestStart(&c.row)
	if c.row.Has(models.Ordered) && c.row.OrderKey == 0 {
		e.b.places++
		c.row.OrderKey = e.b.plan.Batch<<orderBits | e.b.places
	}
}

// orderBits is how much of an order key counts within a batch: the rest is the batch.
const orderBits = 20

// latestStart is when a task must start to make its deadline; 0: it has none.
func (e *Engine) latestStart(row *models.Task) models.Instant {
	if row.Deadline == 0 {
		return 0
	}
	seconds := e.expected(row, startQuantile)
	return max(1, row.Deadline-models.Instant((seconds*(1+marginShare)+marginSeconds)*1e6))
}

// expected is the run time of a task in seconds that a share q of its like stay within; its own estimate goes first.
func (e *Engine) expected(row *models.Task, q float64) float64 {
	if row.EstimateMS > 0 {
		return float64(row.EstimateMS) / 1000
	}
	return e.book.Quantile(e.board.TenantOf(row.Env), row.Class, q)
}

// hopeless says that a task can no longer make its deadline, even if it started now and ran as expected.
func (e *Engine) hopeless(row *models.Task) bool {
	margin := models.Instant((float64(row.Deadline-row.LatestStart)/1e6-marginSeconds)*marginShare/(1+marginShare)*1e6 + marginSeconds*1e6)
	return e.now > row.LatestStart+margin
}

// nextOf is what a line would start next: the head by rank, or the one that must start first to make its deadline once
// that moment is near. A head past the ageing bound is passed over at most every second time.
func (e *Engine) nextOf(line *board.Line) (entry *board.Entry, urgent bool) {
	head := e.headOf(line)
	due := e.urgentOf(line)
	if due == nil || due.Row.LatestStart-e.now > e.lead[line.Kind] {
		return head, false
	}
	if head != nil && line.UrgentLast && e.now-head.Row.ReadyAt > board.AgedAfter(line.Kind) {
		return head, false
	}
	return due, true
}

// urgentOf is the line's most urgent task whose key has room. Those that can no longer make it fall back to their rank.
func (e *Engine) urgentOf(line *board.Line) *board.Entry {
	for {
		due := line.Urgent()
		switch {
		case due == nil:
			return nil
		case e.hopeless(&due.Row):
			e.board.Demote(line)
		case !e.board.Open(&due.Row):
			e.parkEntry(due)
		case !e.known(&due.Row):
			return nil
		default:
			return due
		}
	}
}

// measureLead says, a kind each, how far ahead deadlines must be looked at: as long as the ready work takes on all slots.
// Looking too far costs little, since what has aged still goes every second time; not far enough costs deadlines.
func (e *Engine) measureLead() {
	slots := int64(0)
	for _, p := range e.board.Pools { // any order: a sum
		slots += p.Slots
	}
	for _, kind := range models.Kinds() {
		seconds := 0.0
		for _, q := range e.board.Queues(kind) {
			for _, line := range q.Lines {
				seconds += line.Work(e.book.Mean(line.Tenant, line.ID.Class))
			}
		}
		e.lead[kind] = models.Instant((seconds/float64(max(slots, 1)) + leadMargin) * 1e6)
	}
}
