package api

import (
	"encoding/hex"
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

func (w *Work) deadLetterRoutes() []handlers.Route {
	read, write := []string{handlers.TasksRead}, []string{handlers.TasksWrite}
	return tenantRoutes(
		handlers.Route{Method: "GET", Path: "/v1/dead-letters", Scopes: read, Handler: w.deadGroups, Doc: docDeadGroups},
		handlers.Route{Method: "GET", Path: "/v1/dead-letters/tasks", Scopes: read, Handler: w.deadTasks, Doc: docDeadTasks},
		handlers.Route{Method: "POST", Path: "/v1/dead-letters/redrive", Scopes: write, Handler: w.bulk(models.RedriveDead), Doc: docRedrive},
		handlers.Route{Method: "POST", Path: "/v1/dead-letters/discard", Scopes: write, Handler: w.bulk(models.DiscardDead), Doc: docDiscardAll},
		handlers.Route{Method: "POST", Path: "/v1/bulk-actions", Scopes: write, Handler: w.bulkActions, Doc: docBulkActions},
		handlers.Route{Method: "POST", Path: "/v1/bulk-actions/:id/pause", Scopes: write, Handler: w.steerBulk("pause"), Doc: docSteerBulk("Pause")},
		handlers.Route{Method: "POST", Path: "/v1/bulk-actions/:id/resume", Scopes: write, Handler: w.steerBulk("resume"), Doc: docSteerBulk("Resume")},
		handlers.Route{Method: "POST", Path: "/v1/bulk-actions/:id/cancel", Scopes: write, Handler: w.steerBulk("cancel"), Doc: docSteerBulk("End")},
		handlers.Route{Method: "GET", Path: "/v1/bulk-actions/:id", Scopes: read, Handler: w.bulkAction, Doc: docBulkAction},
	)
}

// fingerprintText is a fingerprint on the wire: 32 hexadecimal digits.
func fingerprintText(id models.ID) string { return hex.EncodeToString(id[:]) }

func parseFingerprint(text string) (id models.ID, ok bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(id) || fingerprintText(models.ID(raw)) != text {
		return id, false
	}
	return models.ID(raw), true
}

// DeadGroupView is dead letters that died of the same thing.
type DeadGroupView struct {
	Fingerprint string        `json:"fingerprint"`
	Count       int64         `json:"count"`
	Types       []string      `json:"types"`
	FirstSeenAt handlers.Time `json:"first_seen_at"`
	LastSeenAt  handlers.Time `json:"last_seen_at"`
	Sample      *SampleView   `json:"sample" doc:"the newest of them"`
}

// SampleView is one dead letter of a group.
type SampleView struct {
	TaskID string     `json:"task_id"`
	Type   string     `json:"type"`
	Error  *ErrorView `json:"error"`
}

func (w *Work) deadGroups(d *handlers.Deps, c *fiber.Ctx) error {
	q, err := handlers.ReadList(d, c, "type")
	if err != nil {
		return err
	}
	p := &body.Problems{}
	f := &postgres.DeadFilter{Types: names(p, q, "type"), Desc: q.Desc, Limit: q.Limit + 1}
	if err := p.Err(models.ValidationFailed); err != nil {
		return err
	}
	if _, err := q.After(&f.After); err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	groups, err := w.Reads.DeadGroups(c.UserContext(), caller.Scope(), caller.Env, f)
	if err != nil {
		return err
	}
	samples, err := w.samples(c, groups)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, groups, func(g postgres.DeadGroup) DeadGroupView {
		return DeadGroupView{fingerprintText(g.Fingerprint), g.Count, g.Types, handlers.Time(g.FirstSeen), handlers.Time(g.LastSeen), samples[g.Sample]}
	}, func(g postgres.DeadGroup) any { return postgres.DeadMark{At: g.LastSeen, Fingerprint: g.Fingerprint} })
	if err != nil {
		return err
	}
	if q.Count {
		n, err := w.Reads.CountDeadGroups(c.UserContext(), caller.Scope(), caller.Env, f)
		if err != nil {
			return err
		}
		page.Total = total(n, false)
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}

func (w *Work) samples(c *fiber.Ctx, groups []postgres.DeadGroup) (map[models.ID]*SampleView, error) {
	ids := make([]models.ID, len(groups))
	for i, g := range groups {
		ids[i] = g.Sample
	}
	caller := handlers.CallerOf(c)
	rows, err := w.Reads.TasksByID(c.UserContext(), caller.Scope(), caller.Env, ids, postgres.Include{})
	samples := make(map[models.ID]*SampleView, len(rows))
	for i := range rows {
		v := viewTask(&rows[i], caller.Environment, postgres.Include{}, nil)
		samples[rows[i].ID] = &SampleView{v.ID, v.Type, v.Error}
	}
	return samples, err
}

// DeadView is a dead letter with its evidence.
type DeadView struct {
	TaskView
	Fingerprint string            `json:"fingerprint"`
	Reason      string            `json:"reason" doc:"why it stopped retrying"`
	Error       *EvidenceView     `json:"error"`
	Attempts    []DeadAttemptView `json:"attempts"`
	Input       DeadInputView     `json:"input"`
	Decision    *string           `json:"decision" doc:"null: it waits for one"`
}

// DeadAttemptView is one attempt that led to it.
type DeadAttemptView struct {
	Attempt       int32            `json:"attempt"`
	WorkerID      handlers.TypedID `json:"worker_id"`
	WorkerVersion *string          `json:"worker_version"`
	StartedAt     handlers.Time    `json:"started_at"`
	FinishedAt    handlers.Time    `json:"finished_at"`
	Class         *string          `json:"class"`
	Message       *string          `json:"message"`
	Usage         json.RawMessage  `json:"usage"`
}

// DeadInputView tells what was put in without showing it.
type DeadInputView struct {
	PayloadSHA256 *string       `json:"payload_sha256"`
	Bytes         int64         `json:"bytes"`
	Model         *string       `json:"model"`
	Resources     ResourcesView `json:"resources"`
}

func (w *Work) deadTasks(d *handlers.Deps, c *fiber.Ctx) error {
	q, err := handlers.ReadList(d, c, "fingerprint", "type", "lane", "kind", "workflow_id", "worker_id", "=label.", "=created_after", "=created_before", "include")
	if err != nil {
		return err
	}
	f, err := taskFilter(q)
	if err != nil {
		return err
	}
	f.States = []models.State{models.DeadLetter}
	for _, text := range q.Values["fingerprint"] {
		id, ok := parseFingerprint(text)
		if !ok {
			return models.Invalid("query.fingerprint", "%q is no fingerprint: 32 hexadecimal digits", handlers.Shorten(text, 40))
		}
		f.Fingerprints = append(f.Fingerprints, id)
	}
	caller := handlers.CallerOf(c)
	rows, err := w.Reads.Tasks(c.UserContext(), caller.Scope(), caller.Env, f)
	if err != nil {
		return err
	}
	show, err := w.evidence(c, rows, f.Include)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, rows, show, func(row postgres.TaskRow) any { return row.ID })
	if err != nil {
		return err
	}
	if q.Count {
		n, more, err := w.Reads.CountTasks(c.UserContext(), caller.Scope(), caller.Env, f)
		if err != nil {
			return err
		}
		page.Total = total(n, more)
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}

// evidence reads what the rows died of, in two queries for all of them.
func (w *Work) evidence(c *fiber.Ctx, rows []postgres.TaskRow, in postgres.Include) (func(postgres.TaskRow) DeadView, error) {
	ids := make([]models.ID, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	caller := handlers.CallerOf(c)
	attempts, err := w.Reads.Attempts(c.UserContext(), caller.Scope(), caller.Env, ids)
	if err != nil {
		return nil, err
	}
	digests, err := w.Reads.Digests(c.UserContext(), caller.Scope(), caller.Env, ids)
	return func(row postgres.TaskRow) DeadView {
		v := DeadView{
			TaskView: *viewTask(&row, caller.Environment, in, nil), Fingerprint: fingerprintText(row.Fingerprint), Error: viewEvidence(&row),
			Reason: deadReason(&row), Attempts: []DeadAttemptView{},
		}
		for i := range attempts[row.ID] {
			v.Attempts = append(v.Attempts, viewDeadAttempt(&attempts[row.ID][i]))
		}
		digest := digests[row.ID]
		v.Input = DeadInputView{handlers.Null(digest.SHA256), digest.Bytes, handlers.Null(row.Needs.Model), viewResources(&row.Needs, row.Tokens)}
		return v
	}, err
}

func viewDeadAttempt(a *models.Attempt) DeadAttemptView {
	v := DeadAttemptView{
		Attempt: a.N, WorkerID: handlers.TypedID{Prefix: models.WorkerPrefix, ID: a.Worker}, WorkerVersion: handlers.Null(a.WorkerVersion),
		StartedAt: handlers.Time(a.StartedAt), FinishedAt: handlers.Time(a.FinishedAt), Usage: null,
	}
	switch {
	case a.Error != nil:
		v.Class, v.Message = &a.Error.Class, &a.Error.Message
	case a.Outcome == models.AttemptLost:
		v.Class = handlers.Null("worker_lost")
	case a.Outcome == models.AttemptTimedOut:
		v.Class = handlers.Null("timeout")
	}
	if len(a.Usage) > 0 {
		v.Usage = a.Usage
	}
	return v
}

// deadReason says why it stopped retrying.
func deadReason(row *postgres.TaskRow) string {
	most := row.MaxAttempts
	policy := ParseInput(row.Input).RetryPolicy
	ruled := policy != nil && policy.Classes[row.ErrorClass].MaxAttempts > 0
	if ruled {
		most = policy.Classes[row.ErrorClass].MaxAttempts
	}
	switch {
	case row.ErrorClass == "worker_lost" && row.LeasesLost > 0:
		return "its worker was lost " + plural(int64(row.AllLost()), "time")
	case row.Has(models.RetriesSpent):
		return "its workflow's max_retries were used up: it would have been tried again"
	case outOfTime(row) || row.ErrorClass == "timeout" && row.TotalSeconds > 0 && row.AttemptsUsed < most:
		return engine.TotalOver(row.TotalSeconds)
	case ruled:
		return "its retry policy gives errors of the class " + row.ErrorClass + " " + plural(int64(most), "attempt")
	case row.AttemptsUsed < most:
		return "an error of the class " + row.ErrorClass + " is not retried"
	}
	return "all of its " + plural(int64(most), "attempt") + " failed"
}

// outOfTime says that a task died of its total timeout, whether it ran then or waited to be tried again.
func outOfTime(row *postgres.TaskRow) bool {
	return row.ErrorClass == "timeout" && row.TotalSeconds > 0 &&
		(row.Error == nil || row.Error.Class != "timeout" || row.Error.Message == engine.TotalOver(row.TotalSeconds))
}

// EvidenceView is what a worker said of its failure.
type EvidenceView struct {
	Class            string          `json:"class"`
	Message          string          `json:"message"`
	Stack            *string         `json:"stack"`
	ProviderResponse json.RawMessage `json:"provider_response"`
}

func viewEvidence(row *postgres.TaskRow) *EvidenceView {
	e := row.Error
	switch {
	case outOfTime(row): // what its last attempt failed with stands with the attempts
		return &EvidenceView{Class: row.ErrorClass, Message: engine.TotalOver(row.TotalSeconds)}
	case e == nil:
		return nil
	}
	return &EvidenceView{Class: e.Class, Message: e.Message, Stack: handlers.Null(e.Stack), ProviderResponse: e.ProviderResponse}
}
