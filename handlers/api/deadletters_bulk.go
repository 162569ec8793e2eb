package api

import (
	"encoding/json"
	"sync"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// BulkView is a bulk action and how far it is.
type BulkView struct {
	ID        string        `json:"id"`
	Action    string        `json:"action" enum:"redrive,discard,cancel,retry,reprioritise,move,backfill"`
	State     string        `json:"state" enum:"running,paused,done,cancelled"`
	Matched   int64         `json:"matched"`
	Done      int64         `json:"done"`
	Failed    int64         `json:"failed"`
	Reason    *string       `json:"reason"`
	CreatedAt handlers.Time `json:"created_at"`
}

func viewBulk(c *models.Cursor) BulkView {
	v := BulkView{
		ID: c.ID.Text(models.BulkPrefix), Action: "redrive", State: "running", Matched: c.Matched, Done: c.Done, Failed: c.Failed,
		Reason: handlers.Null(c.Reason), CreatedAt: handlers.Time(c.At),
	}
	switch {
	case c.Kind == models.DiscardDead:
		v.Action = "discard"
	case c.Kind == models.BulkAction:
		v.Action = c.Action.String()
	case c.Kind == models.Backfilled:
		v.Action = "backfill"
	}
	switch {
	case c.Dropped:
		v.State = "cancelled"
	case c.Finished:
		v.State = "done"
	case c.Paused:
		v.State = "paused"
	}
	return v
}

// bulk redrives or discards many dead letters.
func (w *Work) bulk(kind models.CursorKind) func(*handlers.Deps, *fiber.Ctx) error {
	return func(d *handlers.Deps, c *fiber.Ctx) error {
		in, err := readBulk(c, kind == models.DiscardDead, false)
		if err != nil {
			return err
		}
		if in.action = models.ActRetry; kind == models.DiscardDead {
			in.action = models.ActDiscard
		}
		// Task by task some could be done and then, sent again, done once more: under a key it is one command.
		if in.listed() || in.byTask && handlers.HasKey(c) {
			return w.bulkListed(d, c, &in, true)
		}
		matched, err := w.matched(c, &in)
		if err != nil {
			return err
		}
		if in.dryRun {
			return handlers.Answer(c, fiber.StatusOK, MatchedView{matched})
		}
		return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
			made := models.Cursor{
				ID: d.Mint(), Env: handlers.CallerOf(c).Env, Kind: kind, Target: in.fingerprint, Matched: matched, Reason: in.reason,
				Actor: handlers.CallerOf(c).Actor(), At: d.Now(),
			}
			if !in.byTask {
				return w.startBulk(d, c, &engine.Bulk{
					ID: made.ID, Env: made.Env, Kind: made.Kind, Fingerprint: made.Target, Matched: made.Matched, Reason: made.Reason, Once: once,
				})
			}
			if err := w.eachDead(d, c, &made, in.tasks); err != nil {
				return nil, err
			}
			return madeBulk(&made), nil
		})
	}
}

// bulkActions does one thing to all tasks of a filter.
func (w *Work) bulkActions(d *handlers.Deps, c *fiber.Ctx) error {
	in, err := readBulk(c, false, true)
	if err != nil {
		return err
	}
	if in.action == models.ActMove {
		if err := mayEnter(handlers.CallerOf(c), in.lane); err != nil {
			return err
		}
	}
	return w.bulkListed(d, c, &in, in.action == models.ActRetry || in.action == models.ActDiscard)
}

// bulkListed writes down which tasks are meant as they are now, and starts a cursor over them.
func (w *Work) bulkListed(d *handlers.Deps, c *fiber.Ctx, in *bulkInput, dead bool) error {
	caller := handlers.CallerOf(c)
	f := in.of(dead)
	if in.dryRun {
		n, err := w.Reads.CountListed(c.UserContext(), caller.Scope(), caller.Env, f)
		if err != nil {
			return err
		}
		return handlers.Answer(c, fiber.StatusOK, MatchedView{n})
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		id := d.Mint()
		n, err := w.Reads.ListForBulk(c.UserContext(), id, caller.Env, f)
		if err != nil {
			return nil, err
		}
		bulk := &engine.Bulk{
			ID: id, Env: caller.Env, Kind: models.BulkAction, Fingerprint: id, Matched: n, Reason: in.reason,
			Action: in.action, Lane: in.lane, Patch: in.patch, Rate: in.rate, Once: once,
		}
		if in.priority != nil {
			bulk.Priority = *in.priority
		}
		return w.startBulk(d, c, bulk)
	})
}

// startBulk starts a cursor over what is meant. Of a call that came before it finds the one that was started then.
func (w *Work) startBulk(d *handlers.Deps, c *fiber.Ctx, bulk *engine.Bulk) (*handlers.Made, error) {
	answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Bulk = bulk })
	if err != nil {
		return nil, err
	}
	if answer.Replay {
		return &handlers.Made{Replay: true, Again: func() (*handlers.Made, error) {
			row, err := w.Reads.BulkAction(c.UserContext(), handlers.CallerOf(c).Scope(), bulk.Env, answer.Made[0])
			if err != nil {
				return nil, err
			}
			return madeBulk(&row), nil
		}}, nil
	}
	return madeBulk(answer.Cursor), nil
}

func madeBulk(c *models.Cursor) *handlers.Made {
	v := viewBulk(c)
	return &handlers.Made{Status: fiber.StatusAccepted, Location: "/v1/bulk-actions/" + v.ID, Body: v}
}

// steerBulk pauses, resumes or ends a bulk action.
func (w *Work) steerBulk(verb string) func(*handlers.Deps, *fiber.Ctx) error {
	return func(d *handlers.Deps, c *fiber.Ctx) error {
		id, err := handlers.PathID(c, "id", models.BulkPrefix)
		if err != nil {
			return err
		}
		if _, err := readReason(c, false); err != nil {
			return err
		}
		caller := handlers.CallerOf(c)
		if _, err := w.Reads.BulkAction(c.UserContext(), caller.Scope(), caller.Env, id); err != nil {
			return err
		}
		answer, err := ask(d, c, func(cmd *engine.Command) { cmd.SteerBulk = &engine.SteerBulk{Env: caller.Env, ID: id, Verb: verb} })
		if err != nil {
			return err
		}
		return handlers.Answer(c, fiber.StatusOK, viewBulk(answer.Cursor))
	}
}

// matched counts what is meant; for named tasks it leaves those that are dead letters.
func (w *Work) matched(c *fiber.Ctx, in *bulkInput) (int64, error) {
	caller := handlers.CallerOf(c)
	if !in.byTask {
		return w.Reads.CountDead(c.UserContext(), caller.Scope(), caller.Env, in.fingerprint)
	}
	dead, err := w.Reads.DeadAmong(c.UserContext(), caller.Scope(), caller.Env, in.tasks)
	in.tasks = dead
	return int64(len(dead)), err
}

// bulkAtOnce is how many commands of one bulk action are under way at a time: they share a batch of the brain.
const bulkAtOnce = 64

// eachDead asks for every named task by a command of its own and keeps the record of what came of it.
func (w *Work) eachDead(d *handlers.Deps, c *fiber.Ctx, made *models.Cursor, tasks []models.ID) error {
	var all sync.WaitGroup
	var count sync.Mutex
	room := make(chan struct{}, bulkAtOnce)
	for _, id := range tasks {
		room <- struct{}{}
		all.Go(func() {
			_, err := ask(d, c, func(cmd *engine.Command) {
				if made.Kind == models.RedriveDead {
					cmd.Redrive = &engine.Redrive{Env: made.Env, Task: id, Reason: made.Reason}
				} else {
					cmd.Discard = &engine.Discard{Env: made.Env, Task: id, Reason: made.Reason}
				}
			})
			count.Lock()
			if err == nil {
				made.Done++
			} else {
				made.Failed++
			}
			count.Unlock()
			<-room
		})
	}
	all.Wait()
	made.Finished = true
	actor, err := json.Marshal(made.Actor)
	if err != nil {
		return models.Errorf(models.Internal, "the actor can't be written: %w", err)
	}
	return w.Reads.KeepBulkAction(c.UserContext(), made, actor)
}

func (w *Work) bulkAction(_ *handlers.Deps, c *fiber.Ctx) error {
	id, err := handlers.PathID(c, "id", models.BulkPrefix)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	row, err := w.Reads.BulkAction(c.UserContext(), caller.Scope(), caller.Env, id)
	if err != nil {
		return err
	}
	return handlers.Answer(c, fiber.StatusOK, viewBulk(&row))
}
