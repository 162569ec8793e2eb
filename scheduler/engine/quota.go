package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/calendar"
)

// MostTypes is of how many task types an environment may say something.
const MostTypes = 1_000

// SetQuotas replaces a tenant's quotas, and its weight where one is named.
type SetQuotas struct {
	Quotas models.Quotas `json:"quotas"`
	Weight *float64      `json:"weight,omitempty"` // nil: it stays
}

// defaults are what stands while nobody has set anything: a first version, so that an edit of it can be stale.
func (e *Engine) quotasOf(tenant int32) models.Quotas {
	if u := e.board.UseOf(tenant); u != nil && u.Quotas.Version > 0 {
		return u.Quotas
	}
	return models.Quotas{Tenant: tenant, Version: 1}
}

func (e *Engine) putQuotas(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := c.Quotas.Quotas
	tenant := e.board.Tenants[row.Tenant]
	if tenant == nil {
		return nil, models.Errorf(models.NotFound, "there is no such tenant")
	}
	old := e.quotasOf(row.Tenant)
	if err := fresh(c.Version, old.Version); err != nil {
		return nil, err
	}
	if w := c.Quotas.Weight; w != nil && *w != tenant.Weight {
		changed := *tenant
		changed.Weight, changed.UpdatedAt, changed.Version = *w, e.now, tenant.Version+1
		e.board.PutTenant(changed)
		replace(&e.b.plan.Tenants, changed, func(t models.Tenant) bool { return t.Number == changed.Number })
		tenant = &changed
	}
	row.UpdatedAt, row.Version = e.now, old.Version+1
	e.board.PutQuotas(row, e.now)
	replace(&e.b.plan.Quota.Quotas, row, func(q models.Quotas) bool { return q.Tenant == row.Tenant })
	e.auditChange(cmd, 0, tenant.ID.Text(models.TenantPrefix), old, row)
	copied := *tenant
	return &Answer{Quotas: &row, Tenant: &copied}, nil
}

func (e *Engine) putGrants(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := *c.Grants
	env := e.board.Envs[row.Env]
	if env == nil {
		return nil, models.Errorf(models.NotFound, "there is no such environment")
	}
	old := models.Grants{Env: row.Env, Version: 1}
	if g := e.board.GrantsOf(row.Env); g != nil {
		old = *g
	}
	if err := fresh(c.Version, old.Version); err != nil {
		return nil, err
	}
	row.Granted = slices.Compact(slices.Sorted(slices.Values(row.Granted)))
	row.UpdatedAt, row.Version = e.now, old.Version+1
	e.board.PutGrants(row)
	replace(&e.b.plan.Quota.Grants, row, func(g models.Grants) bool { return g.Env == row.Env })
	e.auditChange(cmd, row.Env, env.Name, old, row)
	return &Answer{Grants: &row}, nil
}

// putType keeps what an environment says of a type. Another schema makes what was checked by the one before stale.
func (e *Engine) putType(cmd *Command) (*Answer, error) {
	c := cmd.Configure
	row := *c.TaskType
	if e.board.Envs[row.Env] == nil {
		return nil, models.Errorf(models.NotFound, "there is no such environment")
	}
	old := models.TaskType{Env: row.Env, Type: row.Type, Version: 1}
	if t := e.board.TypeOf(row.Env, row.Type); t != nil {
		old = t.TaskType
	} else if e.board.TypesOf(row.Env) >= MostTypes {
		return nil, models.Errorf(models.StateConflict, "an environment says something of at most %d task types", MostTypes)
	}
	if err := fresh(c.Version, old.Version); err != nil {
		return nil, err
	}
	row.UpdatedAt, row.Version = e.now, old.Version+1
	switch {
	case row.InputSchema == nil:
		row.Schema = 0
	case row.Schema == models.NewSchema:
		row.Schema = row.Version
	default:
		row.Schema = old.Schema
	}
	e.board.PutType(row)
	replace(&e.b.plan.Quota.Types, row, func(t models.TaskType) bool { return t.Env == row.Env && t.Type == row.Type })
	e.auditChange(cmd, row.Env, row.Type, old, row)
	return &Answer{TaskType: &row}, nil
}

// replace puts a row into a list where it stands once.
func replace[T any](list *[]T, row T, same func(T) bool) {
	if i := slices.IndexFunc(*list, same); i >= 0 {
		(*list)[i] = row
		return
	}
	*list = append(*list, row)
}

// auditChange notes an edit with what stood and what stands.
func (e *Engine) auditChange(cmd *Command, env int32, object string, before, after any) {
	e.audit(cmd, env, cmd.Configure.Action, object, cmd.Configure.Reason)
	row := &e.b.plan.Audit[len(e.b.plan.Audit)-1]
	row.Before, row.After = encoded(before), encoded(after)
}

func encoded(row any) json.RawMessage {
	text, err := json.Marshal(row)
	if err != nil {
		panic(err) // numbers and texts always encode
	}
	if string(text) == "null" {
		return nil // there was none
	}
	return text
}

// mayQueue says why n more tasks do not fit beside what a tenant has queued.
func (e *Engine) mayQueue(env int32, n int64) error {
	u := e.board.UseOf(e.board.TenantOf(env))
	if u == nil || u.Quotas.MaxQueued == nil || n == 0 || u.Queued+n <= *u.Quotas.MaxQueued {
		return nil
	}
	err := models.Errorf(models.QueueFull, "max_queued is %d: the tenant has %d tasks waiting, and these are %d", *u.Quotas.MaxQueued, u.Queued, n)
	err.RetryAfterSeconds = queueRetry
	return err
}

// queueRetry is when a caller whose queue is full may come again, in seconds.
const queueRetry = 5

// mayAsk says why tasks of a class may not be made: they ask for a permission that is not granted.
func (e *Engine) mayAsk(env int32, class *models.Class, at string) error {
	if len(class.Permissions) == 0 {
		return nil
	}
	if missing, ok := e.board.GrantsOf(env).Covers(class.Permissions); !ok {
		return models.Errorf(models.PermissionNotAllowed, "%s.permissions: %s is not granted to this environment", at, missing)
	}
	return nil
}

// mayTake asks both of a new task.
func (e *Engine) mayTake(env int32, t *NewTask, at string) error {
	if err := e.mayAsk(env, &t.Class, at); err != nil {
		return err
	}
	return e.checked(env, t.Class.Type, t.Schema)
}

// narrower says why a running task may not spawn children: they ask for what it was not given itself.
func (e *Engine) narrower(lease *board.Lease, children []NewTask) error {
	given := e.board.Classes[lease.Row().Class].Permissions
	for i := range children {
		for _, p := range children[i].Class.Permissions {
			if !slices.Contains(given, p) {
				return models.Errorf(models.PermissionNotAllowed, "body.tasks[%d].permissions: its parent has not got %s", i, p)
			}
		}
	}
	return nil
}

// maySchedule says why a schedule can't be saved beside the tenant's quotas; old is nil for a new one.
func (e *Engine) maySchedule(row *models.Schedule, old *models.Schedule) error {
	tenant := e.board.TenantOf(row.Env)
	u := e.board.UseOf(tenant)
	if u == nil {
		return nil
	}
	if most := u.Quotas.MaxSchedules; most != nil && old == nil {
		n := int64(0)
		for _, s := range e.plans.all { // any order: a count
			if e.board.TenantOf(s.Env) == tenant {
				n++
			}
		}
		if n >= *most {
			return models.Errorf(models.InvalidSchedule, "max_schedules is %d, and the tenant has %d", *most, n)
		}
	}
	least, rule := u.Quotas.MinIntervalSeconds, timesOf(row)
	if least == nil || rule == nil || old != nil && shortestOf(old) == rule.Shortest() {
		return nil
	}
	var refused *models.Error
	if !errors.As(rule.TooOften(time.Duration(min(*least, mostInterval))*time.Second), &refused) {
		return nil
	}
	field := "every_seconds"
	if row.Rule.Expression != "" {
		field = "expression"
	}
	why := fmt.Sprintf("%s (min_schedule_interval_seconds is %d)", refused.Detail, *least)
	return &models.Error{Code: models.InvalidSchedule, Detail: why, Fields: []models.FieldError{{Location: "body." + field, Message: why}}}
}

// timesOf is the rule of a schedule; nil: it was refused at the edge.
func timesOf(s *models.Schedule) *calendar.Rule {
	table, err := calendar.Of(&s.Rule, max(s.CreatedAt, 1))
	if err != nil {
		return nil
	}
	return table.Rule
}

// shortestOf is the least time between two occurrences; 0: it fires once.
func shortestOf(s *models.Schedule) time.Duration {
	if rule := timesOf(s); rule != nil {
		return rule.Shortest()
	}
	return 0
}

// mostInterval is a quota beyond which nothing repeats at all, in seconds: forty years.
const mostInterval = 40 * 366 * 86_400

// checked says why a task can't be taken: its payload was checked by another schema than the one that stands.
func (e *Engine) checked(env int32, taskType string, schema int64) error {
	stands := int64(0)
	if t := e.board.TypeOf(env, taskType); t != nil {
		stands = t.Schema
	}
	if schema != stands && schema != Unchecked {
		err := models.Errorf(models.SchemaChanged, "the input schema of %s was changed meanwhile: send it again", taskType)
		err.RetryAfterSeconds = 1
		return err
	}
	return nil
}

// Unchecked is the schema of a task whose payload is not known yet where it is looked at.
const Unchecked = -1

// countQueued follows a move between states; what is ready counts itself on the board.
func (e *Engine) countQueued(row *models.Task, from, to models.State) {
	was, is := from.Unready(), to.Unready()
	switch {
	case was && !is:
		e.awaits(row, -1)
	case is && !was:
		e.awaits(row, 1)
	}
	if was = was || from == models.Staged; was && !is {
		e.board.AddQueued(row.Env, -1)
	} else if is && !was {
		e.board.AddQueued(row.Env, 1)
	}
}

// openRates lets go what waited for tokens that have come back.
func (e *Engine) openRates() {
	if e.board.OpenRates(e.now) {
		e.dirty = true
	}
}

// keepHours opens and closes lanes as the time says.
func (e *Engine) keepHours() {
	if e.board.KeepHours(e.now) {
		e.dirty = true
	}
}

// useTokens settles what an attempt was charged ahead to what it reported. What reports nothing is taken to have used what
// it was expected to.
func (e *Engine) useTokens(tenant int32, row *models.Task, usage []byte) {
	if used := models.SpendOf(usage).Tokens; used > 0 {
		e.board.Spend(tenant, used-row.Tokens, e.now)
		if class := e.board.Classes[row.Class]; class != nil && class.Model != "" {
			e.board.SpendOn(tenant, class.Model, used-row.Tokens, e.now)
		}
	}
}
