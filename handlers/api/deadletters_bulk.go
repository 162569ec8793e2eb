package api

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// bulkInput is the body of a bulk action.
type bulkInput struct {
	tasks       []models.ID
	byTask      bool
	fingerprint models.ID
	filter      *postgres.TaskFilter
	reason      string
	dryRun      bool
	patch       json.RawMessage
	rate        float64
	sample      int

	actions  bool // it names what to do; else that is said by the path
	action   models.Action
	acts     bool
	priority *int16
	lane     string
}

const (
	maxBulkTasks = 1_000
	maxListed    = 1_000_000 // tasks of one bulk action
	maxRate      = 10_000
)

func readBulk(c *fiber.Ctx, needsReason, actions bool) (in bulkInput, err error) {
	text, err := handlers.ReadBody(c)
	if err != nil {
		return in, err
	}
	in.actions = actions
	p := &body.Problems{}
	v, err := body.Open(text, "body", p)
	if err != nil {
		return in, err
	}
	v.Members(func(name string, m body.Value) {
		if !m.Null() {
			in.member(name, m, p)
		}
	})
	named := 0
	for _, given := range []bool{in.byTask, !in.fingerprint.IsZero(), in.filter != nil} {
		if given {
			named++
		}
	}
	if named != 1 && !p.Any() {
		p.Addf("body", "needs task_ids, fingerprint or filter, one of them")
	}
	if (needsReason || in.acts && in.action == models.ActDiscard) && in.reason == "" && !p.Any() {
		p.Addf("body.reason", "is required")
	}
	in.checkAction(p)
	return in, p.Err(models.ValidationFailed)
}

// checkAction looks that an action has what it needs, and nothing else.
func (in *bulkInput) checkAction(p *body.Problems) {
	switch {
	case p.Any():
	case in.actions && !in.acts:
		p.Addf("body.action", "is required")
	case in.acts && in.action == models.ActReprioritise && in.priority == nil:
		p.Addf("body.priority", "is required")
	case in.acts && in.action == models.ActMove && in.lane == "":
		p.Addf("body.lane", "is required")
	case in.patch != nil && in.action != models.ActRetry:
		p.Addf("body.payload_patch", "is for what is retried")
	}
}

func (in *bulkInput) member(name string, m body.Value, p *body.Problems) {
	switch name {
	case "task_ids":
		in.readTasks(m)
	case "fingerprint":
		text, ok := m.String(1, maxKeyBytes), false
		if in.fingerprint, ok = parseFingerprint(text); !ok && text != "" {
			m.Wrong("is no fingerprint: 32 hexadecimal digits")
		}
	case "filter":
		in.filter = bulkFilter(m, p)
	case "reason":
		in.reason = m.String(0, maxReasonBytes)
	case "dry_run":
		in.dryRun = m.Bool()
	case "payload_patch":
		in.patch = m.Raw(handlers.PayloadLimit)
	case "rate_per_second":
		in.rate = m.Number(0.001, maxRate)
	case "sample":
		in.sample = int(m.Int(1, maxListed))
	default:
		if !in.actions || !in.actionMember(name, m) {
			m.Wrong("there is no such field")
		}
	}
}

func (in *bulkInput) actionMember(name string, m body.Value) bool {
	switch name {
	case "action":
		in.action, in.acts = models.ParseAction(m.OneOf("cancel", "retry", "discard", "reprioritise", "move"))
	case "priority":
		n := int16(m.Int(0, 100))
		in.priority = &n
	case "lane":
		in.lane = m.Name()
	default:
		return false
	}
	return true
}

func (in *bulkInput) readTasks(m body.Value) {
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
}

// bulkFilter reads a filter with the names of the task list's, each a value or a list of values.
func bulkFilter(m body.Value, p *body.Problems) *postgres.TaskFilter {
	q := &handlers.ListQuery{Limit: handlers.PageMost, Values: map[string][]string{}}
	m.Members(func(name string, v body.Value) {
		known := slices.Contains([]string{"state", "type", "lane", "kind", "workflow_id", "worker_id", "created_after", "created_before", "schedule_id", "q"}, name) || strings.HasPrefix(name, "label.")
		switch {
		case !known:
			v.Wrong("there is no such filter")
		case v.IsArray():
			v.Elements(func(_ int, e body.Value) { q.Values[name] = append(q.Values[name], e.String(1, maxKeyBytes)) })
		case v.IsString():
			q.Values[name] = []string{v.String(1, maxKeyBytes)}
		default:
			v.Wrong("must be a text or a list of texts")
		}
	})
	if p.Any() {
		return &postgres.TaskFilter{}
	}
	f, err := taskFilter(q)
	var refused *models.Error
	if errors.As(err, &refused) {
		for _, field := range refused.Fields {
			p.Addf("body.filter."+strings.TrimPrefix(field.Location, "query."), "%s", field.Message)
		}
		if len(refused.Fields) == 0 {
			p.Addf("body.filter", "%s", refused.Detail)
		}
	}
	if f == nil {
		f = &postgres.TaskFilter{}
	}
	return f
}

// listed says that the tasks are written down first: what is asked is more than a fingerprint or a few named tasks.
func (in *bulkInput) listed() bool {
	return in.actions || in.filter != nil || in.patch != nil || in.rate > 0 || in.sample > 0
}

// of is the filter that names the tasks of a bulk action, however they were named.
func (in *bulkInput) of(dead bool) *postgres.TaskFilter {
	f := in.filter
	if f == nil {
		f = &postgres.TaskFilter{}
	}
	if in.byTask {
		f.IDs = in.tasks
	}
	if !in.fingerprint.IsZero() {
		f.Fingerprints = []models.ID{in.fingerprint}
	}
	if dead || !in.fingerprint.IsZero() {
		f.States = []models.State{models.DeadLetter}
	}
	f.Limit = maxListed
	if in.sample > 0 {
		f.Limit = in.sample
	}
	return f
}

// MatchedView answers a dry run.
type MatchedView struct {
	Matched int64 `json:"matched"`
}

// BulkView is a bulk action and how far it is.
type BulkView struct {
	ID        string        `json:"id"`
	Action    string        `json:"action" enum:"redrive,discard,cancel,retry,reprioritise,move"`
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
		if err := handlers.NoQuery(c); err != nil {
			return err
		}
		in, err := readBulk(c, kind == models.DiscardDead, false)
		if err != nil {
			return err
		}
		if in.action = models.ActRetry; kind == models.DiscardDead {
			in.action = models.ActDiscard
		}
		if in.listed() {
			return w.bulkListed(d, c, &in, true)
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

// bulkActions does one thing to all tasks of a filter.
func (w *Work) bulkActions(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	in, err := readBulk(c, false, true)
	if err != nil {
		return err
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
	return handlers.Create(d, c, func(*engine.Once) (*handlers.Made, error) {
		id := d.Mint()
		n, err := w.Reads.ListForBulk(c.UserContext(), id, caller.Env, f)
		if err != nil {
			return nil, err
		}
		bulk := &engine.Bulk{
			ID: id, Env: caller.Env, Kind: models.BulkAction, Fingerprint: id, Matched: n, Reason: in.reason,
			Action: in.action, Lane: in.lane, Patch: in.patch, Rate: in.rate,
		}
		if in.priority != nil {
			bulk.Priority = *in.priority
		}
		answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Bulk = bulk })
		if err != nil {
			return nil, err
		}
		v := viewBulk(answer.Cursor)
		return &handlers.Made{Status: fiber.StatusAccepted, Location: "/v1/bulk-actions/" + v.ID, Body: v}, nil
	})
}

// steerBulk pauses, resumes or ends a bulk action.
func (w *Work) steerBulk(verb string) func(*handlers.Deps, *fiber.Ctx) error {
	return func(d *handlers.Deps, c *fiber.Ctx) error {
		if err := handlers.NoQuery(c); err != nil {
			return err
		}
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
