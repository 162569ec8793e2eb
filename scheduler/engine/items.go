package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/retry"
)

// ItemsReport is what a worker says of the items of a task that it reports as succeeded.
type ItemsReport struct {
	Done   *int32       `json:"done,omitempty"` // nil: all that are not named as failed
	Failed []ItemFailed `json:"failed,omitempty"`
}

// ItemFailed names an item by its place among those that were claimed.
type ItemFailed struct {
	Index   int32  `json:"index"`
	Class   string `json:"class"`
	Message string `json:"message"`
}

// needItems asks for what the end of an attempt with items is decided by.
func (e *Engine) needItems(n *models.Need, row *models.Task) {
	ref := models.TaskRef{Env: row.Env, ID: row.ID}
	n.Items = append(n.Items, ref)
	e.needCounted(n, row)
	n.Tasks = append(n.Tasks, ref) // it may be suspended: how many children are open
	e.needMark(n, row)
}

func (e *Engine) knowsItems(row *models.Task) bool {
	_, read := e.b.facts.Items[models.TaskRef{Env: row.Env, ID: row.ID}]
	return read
}

// itemsOf is how far the items of a running task are, with what its attempt carries started.
func (e *Engine) itemsOf(row *models.Task) models.Items {
	ref := models.TaskRef{Env: row.Env, ID: row.ID}
	s, read := e.b.facts.Items[ref]
	if !read {
		panic(fmt.Sprintf("how far the items of task %x are was not read", row.ID))
	}
	s.Left = slices.Clone(s.Left)
	s.Start(row.AttemptsUsed)
	return s
}

func (e *Engine) keepItems(s *models.Items) {
	if len(s.Left) == 0 {
		s.Left = nil
	}
	e.b.plan.Items = append(e.b.plan.Items, *s)
}

// reportItems settles an attempt that carries items: those done are done for good, the others are tried again.
func (e *Engine) reportItems(lease *board.Lease, r *Result, code models.Code) (*change, models.Code) {
	row := lease.Row()
	if !row.Has(models.Itemized) {
		if len(r.Items.Failed) > 0 && r.Outcome == models.AttemptSucceeded {
			return e.report(lease, malformed(r, "items are named as failed, but the task carries none")), models.ValidationFailed
		}
		return e.report(lease, r), code
	}
	if r.Outcome != models.AttemptSucceeded {
		return e.report(lease, r), code
	}
	s := e.itemsOf(row)
	claimed := s.Claim()
	if wrong := r.Items.wrong(len(claimed)); wrong != "" {
		return e.report(lease, malformed(r, wrong)), models.ValidationFailed
	}
	if r.Mark != nil && r.Items.failed() == 0 && len(claimed) == len(s.Left) { // with the last of them
		if why := e.moveMark(row, r.Mark); why != nil {
			failed := *r
			failed.Outcome, failed.Error, failed.Result = models.AttemptFailed, why, nil
			return e.report(lease, &failed), models.StateConflict
		}
	}
	policy := e.policyOf(row)
	first, wait := e.takeItems(&s, claimed, r, &policy, row)
	if len(s.Left) == 0 {
		s.Used = row.AttemptsUsed + 1
		e.keepItems(&s)
		return e.report(lease, r), code
	}
	fewest, again := s.Next()
	verdict, spent := wait.of(again), false
	if first != nil && row.State == models.Running {
		spent = e.outOfRetries(row, &verdict)
		again = verdict.Again
	}
	if !again {
		fewest = row.AttemptsUsed + 1
	}
	s.Used = fewest
	e.keepItems(&s)
	switch {
	case first == nil && again:
		return e.goOn(lease, r, fewest), code
	case first == nil:
		first = &models.TaskError{Class: s.Left[0].Class, Message: fmt.Sprintf("%d of %d items failed, the first with: %s", len(s.Left), s.Total, s.Left[0].Message)}
	}
	if row.State == models.CancelRequested {
		c := e.cancelled(lease, models.ReportedFailure, models.AttemptCancelled, r)
		c.row.AttemptsUsed = fewest
		return c, code
	}
	return e.failed(lease, models.ReportedFailure, models.AttemptFailed, first, r, verdict, fewest, spent), code
}

func (i *ItemsReport) failed() int {
	if i == nil {
		return 0
	}
	return len(i.Failed)
}

// wrong says why a report does not fit what was claimed.
func (i *ItemsReport) wrong(claimed int) string {
	if i == nil {
		return ""
	}
	seen := map[int32]bool{}
	for _, f := range i.Failed {
		switch {
		case f.Index < 0 || int(f.Index) >= claimed:
			return fmt.Sprintf("items.failed names the index %d, but %d items were claimed", f.Index, claimed)
		case seen[f.Index]:
			return fmt.Sprintf("items.failed names the index %d twice", f.Index)
		}
		seen[f.Index] = true
	}
	if i.Done != nil && (int(*i.Done) < claimed-len(seen) || int(*i.Done) > claimed) {
		return fmt.Sprintf("items.done is %d, but of %d items claimed %d are named as failed", *i.Done, claimed, len(seen))
	}
	return ""
}

func malformed(r *Result, why string) *Result {
	failed := *r
	failed.Outcome, failed.Result = models.AttemptFailed, nil
	failed.Error = &models.TaskError{Class: "malformed_output", Message: why}
	return &failed
}

// waits is how long it takes until what failed is tried again.
type waits struct {
	verdict retry.Verdict
	behind  bool // others are to be tried before: they need not wait
}

func (w *waits) of(again bool) retry.Verdict {
	v := w.verdict
	v.Again = again
	if w.behind {
		v.Wait = 0
	}
	return v
}

// takeItems enters what was said of the claimed items. It answers the failure that stands for all, nil when none failed.
func (e *Engine) takeItems(s *models.Items, claimed []int, r *Result, policy *models.RetryPolicy, row *models.Task) (*models.TaskError, waits) {
	failed := map[int]*ItemFailed{}
	if r.Items != nil {
		for i := range r.Items.Failed {
			failed[claimed[r.Items.Failed[i].Index]] = &r.Items.Failed[i]
		}
	}
	var w waits
	var first *models.TaskError
	done := map[int]bool{}
	most := int32(0)
	for _, at := range claimed {
		f := failed[at]
		if f == nil {
			done[at] = true
			continue
		}
		it := &s.Left[at]
		e.failItem(it, f.Class, f.Message, r.RetryAfter, policy, row, &w)
		most = max(most, it.Tries)
		if first == nil {
			first = &models.TaskError{Class: it.Class, Message: fmt.Sprintf("%d of %d items failed, the first with: %s", len(failed), len(claimed), it.Message)}
		}
	}
	left := s.Left[:0]
	for i := range s.Left {
		if !done[i] {
			left = append(left, s.Left[i])
		}
	}
	s.Left, s.Done = left, s.Done+int32(len(done))
	fewest, again := s.Next()
	w.behind = again && fewest < most
	return first, w
}

// failItem enters that an item failed, and how long it waits at least.
func (e *Engine) failItem(it *models.Item, class, message string, after float64, policy *models.RetryPolicy, row *models.Task, w *waits) {
	class = retry.Class(class)
	v := retry.Decide(retry.Failure{Class: class, Used: it.Tries, RetryAfter: after, Since: e.now.Sub(row.ReadyAt)}, policy, e.rng)
	if v.Uses {
		it.Tries++
		w.verdict.Uses = true
	}
	it.Over, it.Class, it.Message = !v.Again, class, message
	if len(message) > models.MostItemMessage {
		it.Message = strings.ToValidUTF8(message[:models.MostItemMessage], "") + "…"
	}
	if v.Again {
		w.verdict.Wait = max(w.verdict.Wait, v.Wait)
	}
}

// failItems ends an attempt that failed as a whole: each item it carried did.
func (e *Engine) failItems(lease *board.Lease, cause models.Cause, outcome models.Outcome, failure *models.TaskError, after float64, policy *models.RetryPolicy, r *Result) *change {
	row := lease.Row()
	s := e.itemsOf(row)
	var w waits
	most := int32(0)
	for _, at := range s.Claim() {
		e.failItem(&s.Left[at], failure.Class, failure.Message, after, policy, row, &w)
		most = max(most, s.Left[at].Tries)
	}
	fewest, again := s.Next()
	w.behind = again && fewest < most
	verdict := w.of(again)
	spent := e.outOfRetries(row, &verdict)
	if !verdict.Again {
		fewest = row.AttemptsUsed + 1
	}
	s.Used = fewest
	e.keepItems(&s)
	return e.failed(lease, cause, outcome, failure, r, verdict, fewest, spent)
}

// goOn ends an attempt that did all it carried; the task is ready at once for what is left.
func (e *Engine) goOn(lease *board.Lease, r *Result, used int32) *change {
	if lease.Row().State == models.CancelRequested {
		c := e.cancelled(lease, models.ReportedFailure, models.AttemptCancelled, r)
		c.row.AttemptsUsed = used
		return c
	}
	c, charged := e.endAttempt(lease, models.AttemptSucceeded, nil, r)
	c.row.AttemptsUsed = used
	e.becomeReady(c, models.GivenBack)
	ev := e.event(c, "task.ready")
	ev.Pool, ev.Charged = lease.Pool, charged
	return c
}

// touchesItems says that a patch of a payload changes what makes it a slice.
func touchesItems(patch json.RawMessage) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(patch, &members) != nil {
		return true
	}
	_, items := members["items"]
	_, first := members["first_index"]
	return items || first
}
