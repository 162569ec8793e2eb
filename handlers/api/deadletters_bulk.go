package api

import (
	"encoding/json"
	"sync"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// bulkInput is the body of a redrive or discard of many.
type bulkInput struct {
	tasks       []models.ID
	byTask      bool
	fingerprint models.ID
	reason      string
	dryRun      bool
}

const maxBulkTasks = 1_000

func readBulk(c *fiber.Ctx, needsReason bool) (in bulkInput, err error) {
	text, err := handlers.ReadBody(c)
	if err != nil {
		return in, err
	}
	p := &body.Problems{}
	v, err := body.Open(text, "body", p)
	if err != nil {
		return in, err
	}
	v.Members(func(name string, m body.Value) {
		switch name {
		case "payload_patch", "rate_per_second", "sample", "filter":
			refuseUnbuilt(m, "")
			return
		}
		if !m.Null() {
			in.member(name, m)
		}
	})
	if in.byTask == !in.fingerprint.IsZero() && !p.Any() {
		p.Addf("body", "needs task_ids or fingerprint, one of the two")
	}
	if needsReason && in.reason == "" && !p.Any() {
		p.Addf("body.reason", "is required")
	}
	return in, p.Err(models.ValidationFailed)
}

func (in *bulkInput) member(name string, m body.Value) {
	switch name {
	case "task_ids":
		in.byTask = true
		seen := map[models.ID]bool{}
		n := m.Elements(func(i int, e body.Value) {
			text := e.String(1, maxKeyBytes)
			id, err := models.ParseID(models.TaskPrefix, text)
			if err != nil && text != "" {
				e.Wrong("is no task's id")
			}
			if i < maxBulkTasks && !seen[id] {
				seen[id] = true
				in.tasks = append(in.tasks, id)
			}
		})
		if n > maxBulkTasks || n == 0 && m.IsArray() {
			m.Wrong("must have 1 to %d entries", maxBulkTasks)
		}
	case "fingerprint":
		text, ok := m.String(1, maxKeyBytes), false
		if in.fingerprint, ok = parseFingerprint(text); !ok && text != "" {
			m.Wrong("is no fingerprint: 32 hexadecimal digits")
		}
	case "reason":
		in.reason = m.String(0, maxReasonBytes)
	case "dry_run":
		in.dryRun = m.Bool()
	default:
		m.Wrong("there is no such field")
	}
}

// MatchedView answers a dry run.
type MatchedView struct {
	Matched int64 `json:"matched"`
}

// BulkView is a bulk action and how far it is.
type BulkView struct {
	ID        string        `json:"id"`
	Action    string        `json:"action" enum:"redrive,discard"`
	State     string        `json:"state" enum:"running,done"`
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
	if c.Kind == models.DiscardDead {
		v.Action = "discard"
	}
	if c.Finished {
		v.State = "done"
	}
	return v
}

// bulk redrives or discards many dead letters.
func (w *Work) bulk(kind models.CursorKind) func(*handlers.Deps, *fiber.Ctx) error {
	return func(d *handlers.Deps, c *fiber.Ctx) error {
		if err := handlers.NoQuery(c); err != nil {
			return err
		}
		in, err := readBulk(c, kind == models.DiscardDead)
		if err != nil {
			return err
		}
		matched, err := w.matched(c, &in)
		if err != nil {
			return err
		}
		if in.dryRun {
			return handlers.Answer(c, fiber.StatusOK, MatchedView{matched})
		}
		return handlers.Create(d, c, func(*engine.Once) (*handlers.Made, error) {
			made := models.Cursor{
				ID: d.Mint(), Env: handlers.CallerOf(c).Env, Kind: kind, Target: in.fingerprint, Matched: matched, Reason: in.reason,
				Actor: handlers.CallerOf(c).Actor(), At: d.Now(),
			}
			if in.byTask {
				err = w.eachDead(d, c, &made, in.tasks)
			} else {
				err = w.allDead(d, c, &made)
			}
			if err != nil {
				return nil, err
			}
			v := viewBulk(&made)
			return &handlers.Made{Status: fiber.StatusAccepted, Location: "/v1/bulk-actions/" + v.ID, Body: v}, nil
		})
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

// allDead starts a cursor over the dead letters of a fingerprint that are there now.
func (w *Work) allDead(d *handlers.Deps, c *fiber.Ctx, made *models.Cursor) error {
	_, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Bulk = &engine.Bulk{ID: made.ID, Env: made.Env, Kind: made.Kind, Fingerprint: made.Target, Matched: made.Matched, Reason: made.Reason}
	})
	return err
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
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
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
