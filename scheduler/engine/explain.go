package engine

import (
	"fmt"
	"strings"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/fit"
)

// clock is how moments stand in sentences.
const clock = "2006-01-02T15:04:05Z"

type blocker func(reason, format string, args ...any)

// explain says why a task does not run now, by the same questions that pick asks. What it costs is bounded by the makes of
// workers and by what runs, not by what waits: pages ask it each time they are drawn.
func (e *Engine) explain(ref models.TaskRef) (*Explained, error) {
	row := e.peek(ref)
	if row == nil || row.State == models.Staged {
		return nil, models.Errorf(models.NotFound, "there is no task %s", ref.ID.Text(models.TaskPrefix))
	}
	out := &Explained{State: row.State, BlockedBy: []Block{}}
	block := func(reason, format string, args ...any) {
		out.BlockedBy = append(out.BlockedBy, Block{Reason: reason, Detail: fmt.Sprintf(format, args...)})
	}
	if row.State.Waiting() {
		flowShutFor(e.board.Shut(row.Workflow), block)
	}
	switch row.State {
	case models.Scheduled:
		block("run_at", "it starts no earlier than %s", row.WakeAt.Time().Format(clock))
		out.EstimatedStart = row.WakeAt
	case models.RetryWait:
		block("run_at", "attempt %d failed (%s); it is tried again at %s", row.Attempt, row.ErrorClass, row.WakeAt.Time().Format(clock))
		out.EstimatedStart = row.WakeAt
	case models.Pending:
		e.explainPending(row, block)
	case models.Ready:
		e.explainReady(row, out, block)
	}
	return out, nil
}

// explainPending names whom a task waits for. A dead one will never end by itself.
func (e *Engine) explainPending(row *models.Task, block blocker) {
	var dead, open []string
	for _, b := range e.b.facts.Blockers[models.TaskRef{Env: row.Env, ID: row.ID}] {
		name := b.Task.Text(models.TaskPrefix)
		if b.Key != "" {
			name = fmt.Sprintf("%s (%s)", b.Key, name)
		}
		if b.State == models.DeadLetter {
			dead = append(dead, name)
		} else {
			open = append(open, fmt.Sprintf("%s is %s", name, b.State))
		}
	}
	named := ""
	if len(open) > 0 {
		named = ": " + strings.Join(open[:min(len(open), 3)], ", ")
	}
	block("dependencies", "%d of the tasks it depends on have not ended%s", row.Remaining, named)
	if len(dead) > 0 {
		block("dependency_dead", "%s is a dead letter: it waits for a redrive or a discard", strings.Join(dead[:min(len(dead), 3)], ", "))
	}
}

func (e *Engine) explainReady(row *models.Task, out *Explained, block blocker) {
	lane := e.laneOf(row)
	line := e.board.Line(board.LineOf(row))
	if line != nil && row.Gate == "" {
		out.Position = line.Position(row)
		out.Beyond = out.Position > int64(line.Windowed())
	}
	e.explainGates(row, lane, out, block)
	nearest, lack := e.nearest(row, lane)
	switch {
	case lack != "" && nearest == nil:
		block("no_capable_worker", "%s", lack)
	case lack != "":
		block("no_capable_worker", "the nearest worker is %s: %s", nearest.Name, lack)
	case len(out.BlockedBy) == 0 && e.keptFor(row, lane) != nil:
		r := e.keptFor(row, lane)
		block("reserved_for", "the worker %s has room, but is kept for %s until %s", e.board.Workers[r.worker].Name, r.task.Text(models.TaskPrefix), r.at.Time().Format(clock))
	case len(out.BlockedBy) == 0 && out.Beyond:
		block("workers_busy", "more than %d stand before it in its line; every worker that fits is busy", out.Position-1)
	case len(out.BlockedBy) == 0:
		block("workers_busy", "number %d of its line; every worker that fits is busy", max(out.Position, 1))
	}
	if lack == "" {
		out.EstimatedStart = e.whenOpen(row, e.estimateStart(row))
	}
}

// whenOpen looks at an estimated start with the gates in mind: a closed lane opens by its windows, a rate when it
// lets the next start, limits free themselves, and when somebody opens what they have shut nobody can tell.
func (e *Engine) whenOpen(row *models.Task, at models.Instant) models.Instant {
	if at == 0 || row.Gate == approvalGate || row.Gate == models.ModelGate || e.board.Shut(row.Workflow) != 0 {
		return 0
	}
	for _, a := range e.board.Shorts(row) {
		switch {
		case !a.Purse.SpentUp(e.board.AskOf(row)): // what runs will let go of some
		case a.Until == models.Forever:
			return 0
		default:
			at = max(at, a.Until)
		}
	}
	for _, g := range e.board.GatesOf(board.LineOf(row), e.now) {
		switch g.Reason {
		case "lane_closed":
			opens := e.board.OpensAt(row.Lane)
			if opens == 0 {
				return 0
			}
			at = max(at, opens)
		case "rate_limit":
			at = max(at, g.Opens)
		case "lane_limit", "type_limit", "tenant_concurrency":
		default:
			return 0
		}
	}
	for need := range row.Keys() {
		if k := e.board.KeyFor(row.Env, need); k != nil && need.Rate() && !e.board.Lets(k, need, row) {
			if opens := k.Meter.OpensAt(e.now); opens != models.Forever {
				at = max(at, opens)
			}
		}
	}
	return at
}

func (e *Engine) explainGates(row *models.Task, lane *board.Lane, out *Explained, block blocker) {
	if row.Gate == approvalGate {
		block("approval", "it waits for somebody to approve it")
	}
	e.moneyBlocks(row, block)
	if row.Gate == models.ModelGate {
		why := "no model fits"
		if last, known := e.b.facts.Choices[models.TaskRef{Env: row.Env, ID: row.ID}]; known && last.Chosen == "" {
			why = last.Reason
		}
		block("model_unavailable", "%s", why)
	}
	out.BlockedBy = append(out.BlockedBy, e.keyBlocks(row)...)
	id := board.LineOf(row)
	if lane != nil {
		id.Lane = lane.Number // its own may have been deleted while it waited
	}
	for _, g := range e.board.GatesOf(id, e.now) {
		switch {
		case g.Reason == "quarantine", g.Reason == "lane_held" && e.isPast(row.ID):
		case g.Reason == "lane_held":
			block(g.Reason, "%s; %s", g.Detail, e.atMost(row))
		default:
			block(g.Reason, "%s", g.Detail)
		}
	}
}

// atMost says by when a held task is let go.
func (e *Engine) atMost(row *models.Task) string {
	if until := e.leavesAt(row); until > 0 {
		return "it is let go at " + until.Time().Format(clock) + " at the latest"
	}
	return "it is let go as soon as there is room"
}

// nearest finds the worker that comes closest to being able to run the task; lack is empty when one can.
func (e *Engine) nearest(row *models.Task, lane *board.Lane) (best *board.Worker, lack string) {
	class := e.board.Classes[row.Class]
	lack = "no worker serves this lane"
	for _, w := range e.board.Makes() { // like workers lack the same
		if class == nil || !e.board.Serves(w, row.Env, lane) {
			continue
		}
		missing := fit.Lack(&w.Worker, class)
		if missing == "" {
			return w, ""
		}
		if best == nil || len(w.TaskTypes) == 0 || models.MatchPattern(w.TaskTypes, class.Type) {
			best, lack = w, missing
		}
	}
	return best, lack
}

// estimateStart guesses when a ready task starts: what stands before it in its line, at the pace of the workers that fit.
func (e *Engine) estimateStart(row *models.Task) models.Instant {
	p := e.paceFor(row, e.board.Classes[row.Class])
	if p.slots == 0 {
		return 0
	}
	return e.startBehind(e.aheadOf(row), p, e.book.Mean(e.board.TenantOf(row.Env), row.Class))
}

// needExplained asks for a task, whom it waits for, and what its workflow has left where that has a limit.
func (e *Engine) needExplained(n *models.Need, ref models.TaskRef) {
	n.Tasks = append(n.Tasks, ref)
	n.Blockers = append(n.Blockers, ref)
	n.Choices = append(n.Choices, ref)
	if held := e.board.Held(ref.ID); held != nil && held.Row.Has(models.SpendsFlow) {
		e.needFlow(n, models.TaskRef{Env: held.Row.Env, ID: held.Row.Workflow})
	}
}
