package engine

import (
	"fmt"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/fit"
)

// explain says why a task does not run now, by the same questions that pick asks.
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
		block("run_at", "it starts no earlier than %s", row.WakeAt.Time().Format("2006-01-02T15:04:05Z"))
		out.EstimatedStart = row.WakeAt
	case models.RetryWait:
		block("run_at", "attempt %d failed (%s); it is tried again at %s", row.Attempt, row.ErrorClass, row.WakeAt.Time().Format("2006-01-02T15:04:05Z"))
		out.EstimatedStart = row.WakeAt
	case models.Pending:
		block("dependencies", "%d of the tasks it depends on have not ended", row.Remaining)
	case models.Ready:
		e.explainReady(row, out, block)
	}
	return out, nil
}

func (e *Engine) explainReady(row *models.Task, out *Explained, block func(reason, format string, args ...any)) {
	lane := e.board.Lanes[row.Lane]
	line := e.board.Line(board.LineOf(row))
	if line != nil && row.Gate == "" {
		out.Position = line.Position(row)
	}
	e.explainGates(row, lane, block)
	nearest, lack := e.nearest(row, lane)
	switch {
	case lack != "" && nearest == nil:
		block("no_capable_worker", "%s", lack)
	case lack != "":
		block("no_capable_worker", "the nearest worker is %s: %s", nearest.Name, lack)
	case len(out.BlockedBy) == 0 && e.keptFor(row, lane) != nil:
		r := e.keptFor(row, lane)
		block("reserved_for", "the worker %s has room, but is kept for %s until %s", e.board.Workers[r.worker].Name, r.task.Text(models.TaskPrefix), r.at.Time().Format("2006-01-02T15:04:05Z"))
	case len(out.BlockedBy) == 0:
		block("workers_busy", "number %d of its line; every worker that fits is busy", max(out.Position, 1))
	}
	if lack == "" {
		out.EstimatedStart = e.estimateStart(row)
	}
}

func (e *Engine) explainGates(row *models.Task, lane *board.Lane, block func(reason, format string, args ...any)) {
	if row.Gate == approvalGate {
		block("approval", "it waits for somebody to approve it")
	}
	if row.Gate != "" {
		if name, ok := board.KeyOf(row.Gate); ok {
			block("concurrency_key", "the key %s is held by %s", name, e.holderOf(row.Env, name))
		}
	}
	tenant := e.board.Tenants[e.board.TenantOf(row.Env)]
	env := e.board.Envs[row.Env]
	if tenant != nil && tenant.Suspended {
		block("tenant_suspended", "the tenant %s is suspended", tenant.Slug)
	}
	if env != nil && env.Paused {
		block("environment_paused", "the environment %s is paused: %s", env.Name, orNone(env.Reason))
	}
	if lane != nil && lane.Paused {
		block("lane_paused", "the lane %s is paused: %s", lane.Name, orNone(lane.Reason))
	}
	if lane != nil && lane.MaxConcurrent > 0 && lane.Running >= lane.MaxConcurrent {
		block("lane_limit", "the lane %s runs %d of at most %d", lane.Name, lane.Running, lane.MaxConcurrent)
	}
}

func orNone(reason string) string {
	if reason == "" {
		return "no reason was given"
	}
	return reason
}

func (e *Engine) holderOf(env int32, key string) string {
	for _, lease := range e.sortedLeases() {
		if row := lease.Row(); row.Env == env && row.LimitKey == key {
			return row.ID.Text(models.TaskPrefix)
		}
	}
	return "a task that is about to start"
}

// nearest finds the worker that comes closest to being able to run the task; lack is empty when one can.
func (e *Engine) nearest(row *models.Task, lane *board.Lane) (best *board.Worker, lack string) {
	class := e.board.Classes[row.Class]
	lack = "no worker serves this lane"
	for _, w := range e.workers() {
		if w.State != models.WorkerActive || class == nil || !e.board.Serves(w, row.Env, lane) {
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
	ahead := int64(1)
	if line := e.board.Line(board.LineOf(row)); line != nil {
		ahead = line.Position(row)
	}
	slots := int64(0)
	for _, w := range e.board.Workers { // any order: a sum
		if w.State == models.WorkerActive && e.board.Fits(w, row.Class) {
			slots += int64(max(w.Slots, 1))
		}
	}
	if slots == 0 {
		return 0
	}
	seconds := e.book.Mean(e.board.TenantOf(row.Env), row.Class)
	return e.now + models.Instant(float64((ahead+slots-1)/slots)*seconds*1e6)
}
