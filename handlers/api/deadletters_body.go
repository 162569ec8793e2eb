package api

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
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
	dry, err := handlers.DryRun(c)
	if err != nil {
		return in, err
	}
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
	in.dryRun = in.dryRun || dry
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
