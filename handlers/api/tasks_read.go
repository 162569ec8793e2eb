package api

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

func (w *Work) get(d *handlers.Deps, c *fiber.Ctx) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	return w.show(d, c, fiber.StatusOK, id)
}

// AttemptView is one execution of a task.
type AttemptView struct {
	ID            string            `json:"id"`
	Attempt       int32             `json:"attempt"`
	WorkerID      handlers.TypedID  `json:"worker_id"`
	WorkerVersion *string           `json:"worker_version"`
	Outcome       string            `json:"outcome" enum:"running,succeeded,failed,cancelled,released,suspended,lost,timed_out"`
	Error         *models.TaskError `json:"error"`
	Usage         json.RawMessage   `json:"usage"`
	Model         *string           `json:"model" doc:"that ran: the one it was given, or another that its usage names"`
	Instead       *string           `json:"downgraded_from" doc:"the model that a budget did not cover, so that another was taken; null: none"`
	StartedAt     handlers.Time     `json:"started_at"`
	FinishedAt    handlers.Time     `json:"finished_at"`
}

// AttemptsAnswer lists attempts, oldest first.
type AttemptsAnswer struct {
	Data []AttemptView `json:"data"`
}

func viewAttempt(a *models.Attempt) AttemptView {
	v := AttemptView{
		ID: a.ID.Text(models.AttemptPrefix), Attempt: a.N, WorkerID: handlers.TypedID{Prefix: models.WorkerPrefix, ID: a.Worker},
		WorkerVersion: handlers.Null(a.WorkerVersion), Outcome: a.Outcome.String(), Error: a.Error, Usage: null, Model: handlers.Null(a.Model),
		StartedAt: handlers.Time(a.StartedAt), FinishedAt: handlers.Time(a.FinishedAt),
	}
	if len(a.Usage) > 0 {
		v.Usage = a.Usage
	}
	return v
}

func (w *Work) attempts(_ *handlers.Deps, c *fiber.Ctx) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	row, err := w.Reads.Task(c.UserContext(), caller.Scope(), caller.Env, id, postgres.Include{})
	if err != nil {
		return err
	}
	all, err := w.Reads.Attempts(c.UserContext(), caller.Scope(), caller.Env, []models.ID{id})
	if err != nil {
		return err
	}
	answer := AttemptsAnswer{Data: []AttemptView{}}
	for i := range all[id] {
		answer.Data = append(answer.Data, viewAttempt(&all[id][i]))
	}
	if n := len(all[id]); row.State.Live() && (n == 0 || all[id][n-1].N < row.Attempt) {
		worker, err := w.Reads.Worker(c.UserContext(), caller.Tenant, true, row.Worker)
		if err != nil && models.CodeOf(err) != models.NotFound {
			return err
		}
		answer.Data = append(answer.Data, viewAttempt(&models.Attempt{
			ID: row.AttemptID, N: row.Attempt, Worker: row.Worker, WorkerVersion: worker.Version,
			Outcome: models.AttemptRunning, StartedAt: row.StartedAt, Model: row.Needs.Model,
		}))
	}
	if err := w.downgrades(c, row, answer.Data); err != nil {
		return err
	}
	return handlers.Answer(c, fiber.StatusOK, answer)
}

// downgrades says of attempts whether a budget had given the task another model by then.
func (w *Work) downgrades(c *fiber.Ctx, row *postgres.TaskRow, attempts []AttemptView) error {
	if row.Choice == nil {
		return nil
	}
	caller := handlers.CallerOf(c)
	choices, err := w.Reads.Choices(c.UserContext(), caller.Scope(), caller.Env, row.ID)
	for i := range attempts {
		for j := range choices { // the last one from before it started stands
			if choices[j].At <= models.Instant(attempts[i].StartedAt) {
				attempts[i].Instead = handlers.Null(choices[j].Ranking[0].Instead)
			}
		}
	}
	return err
}

const (
	waitDefault = 30
	waitMost    = 60
	// lookAgain is how often a waiter looks for itself: events come sooner, so this is for those that got lost.
	lookAgain  = 5 * time.Second
	lookOften  = 250 * time.Millisecond // where nobody tells of events
	waitMargin = 100 * time.Millisecond
)

func (w *Work) wait(d *handlers.Deps, c *fiber.Ctx) error {
	values, err := handlers.ReadQuery(c, "timeout_seconds")
	if err != nil {
		return err
	}
	patience, err := waitSeconds(values["timeout_seconds"])
	if err != nil {
		return err
	}
	id, err := taskID(c)
	if err != nil {
		return err
	}
	ctx, stop := handlers.Watch(c)
	done, err := w.untilDone(ctx, handlers.CallerOf(c), id, patience)
	stop()
	if err != nil {
		return err
	}
	if !done {
		return w.show(d, c, fiber.StatusAccepted, id)
	}
	return w.show(d, c, fiber.StatusOK, id)
}

func waitSeconds(given []string) (time.Duration, error) {
	if len(given) == 0 {
		return waitDefault * time.Second, nil
	}
	n, err := strconv.ParseFloat(given[0], 64)
	if err != nil || len(given) > 1 || !(n >= 0) {
		return 0, handlers.QueryError("timeout_seconds", "must be a number of seconds from 0")
	}
	return time.Duration(min(n, waitMost) * float64(time.Second)), nil
}

// untilDone waits until a task is final or a dead letter, or patience ends.
func (w *Work) untilDone(ctx context.Context, caller *handlers.Caller, id models.ID, patience time.Duration) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	again := lookOften
	var told <-chan struct{}
	if w.Follow != nil && patience > 0 {
		told, again = w.Follow(ctx, caller.Env, id), lookAgain
	}
	end := time.NewTimer(patience)
	defer end.Stop()
	look := time.NewTicker(again)
	defer look.Stop()
	for {
		now, err := w.Reads.State(ctx, caller.Scope(), caller.Env, id)
		if err != nil && ctx.Err() != nil {
			return false, nil // nobody waits any more
		}
		if err != nil || now.State.Final() || now.State == models.DeadLetter {
			return err == nil, err
		}
		select {
		case _, open := <-told:
			if !open { // told no more: look for ourselves
				told = nil
				look.Reset(lookOften)
			}
		case <-look.C:
		case <-end.C:
			return false, nil
		case <-ctx.Done():
			return false, nil
		}
	}
}

// ExplainView says why a task does not run.
type ExplainView struct {
	State            string         `json:"state"`
	BlockedBy        []engine.Block `json:"blocked_by"`
	Position         *int64         `json:"position" doc:"1 is the next of its line; null: it stands in none, or beyond the first 100,000 of it"`
	EstimatedStartAt handlers.Time  `json:"estimated_start_at"`
}

func (w *Work) explain(d *handlers.Deps, c *fiber.Ctx) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	row, err := w.Reads.Task(c.UserContext(), caller.Scope(), caller.Env, id, postgres.Include{})
	if err != nil {
		return err
	}
	v := ExplainView{State: row.State.String(), BlockedBy: []engine.Block{}}
	if row.State.Final() || row.State.Live() {
		return handlers.Answer(c, fiber.StatusOK, v)
	}
	ref := models.TaskRef{Env: caller.Env, ID: id}
	answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Look = &engine.Look{Explain: &ref} })
	switch {
	case err == nil && answer.Looked != nil && answer.Looked.Explain != nil:
		e := answer.Looked.Explain
		v.State, v.BlockedBy = e.State.String(), handlers.List(e.BlockedBy)
		v.Position, v.EstimatedStartAt = handlers.Null(e.Position), handlers.Time(e.EstimatedStart)
		if e.Beyond {
			n, err := w.Reads.Position(c.UserContext(), caller.Scope(), &row.Task)
			if err != nil {
				return err
			}
			v.Position = handlers.Null(n)
		}
	case err == nil, models.CodeOf(err) == models.Unavailable, models.CodeOf(err) == models.NotFound:
		if v.BlockedBy, err = w.deadDependencies(c, &row.Task); err != nil {
			return err
		}
	default:
		return err
	}
	return handlers.Answer(c, fiber.StatusOK, v)
}

// deadDependencies is what the rows say, for want of a brain: with the dead letters among what a task waits for, which end
// by a decision alone.
func (w *Work) deadDependencies(c *fiber.Ctx, row *models.Task) ([]engine.Block, error) {
	caller, blocks := handlers.CallerOf(c), blockedBy(row)
	if row.State != models.Pending {
		return blocks, nil
	}
	dead, err := w.Reads.DeadDependencies(c.UserContext(), caller.Scope(), caller.Env, row.ID)
	if err != nil || len(dead) == 0 {
		return blocks, err
	}
	return append(blocks, engine.Block{Reason: "dependency_dead", Detail: strings.Join(dead, ", ") + ": dead letters, to be redriven, skipped or discarded"}), nil
}
