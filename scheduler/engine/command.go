package engine

import (
	"encoding/json"

	"nightshift/models"
)

// Command asks the brain for one thing: exactly one of the verbs is set. It travels as JSON between replicas.
type Command struct {
	ID     models.ID    `json:"id"`     // minted at the edge, so that a resend is recognised
	Tenant int32        `json:"tenant"` // whose share of the inbox it takes; 0: the platform's
	Actor  models.Actor `json:"actor"`
	Resent bool         `json:"resent,omitempty"` // it was sent before and the answer got lost

	Submit    *Submit    `json:"submit,omitempty"`
	Intern    *Intern    `json:"intern,omitempty"`
	Flip      *Flip      `json:"flip,omitempty"`
	Claim     *Claim     `json:"claim,omitempty"`
	Return    *Return    `json:"return,omitempty"`
	Heartbeat *Heartbeat `json:"heartbeat,omitempty"`
	Settle    *Settle    `json:"settle,omitempty"`
	Cancel    *Cancel    `json:"cancel,omitempty"`
	Redrive   *Redrive   `json:"redrive,omitempty"`
	Discard   *Discard   `json:"discard,omitempty"`
	Bulk      *Bulk      `json:"bulk,omitempty"`
	Register  *Register  `json:"register,omitempty"`
	Retire    *Retire    `json:"retire,omitempty"`
	Configure *Configure `json:"configure,omitempty"`
	Look      *Look      `json:"look,omitempty"`
	Approve   *Approve   `json:"approve,omitempty"`
	Signal    *Signal    `json:"signal,omitempty"`
	Edit      *Edit      `json:"edit,omitempty"`
	Judge     *Judge     `json:"judge,omitempty"`
	Spawn     *Spawn     `json:"spawn,omitempty"`
	SteerBulk *SteerBulk `json:"steer_bulk,omitempty"`
	Unlock    *Unlock    `json:"unlock,omitempty"`
	Mark      *Mark      `json:"mark,omitempty"`
	Steer     *Steer     `json:"steer,omitempty"`
	Skip      *Skip      `json:"skip,omitempty"`
	Trigger   *Trigger   `json:"trigger,omitempty"`
	Backfill  *Backfill  `json:"backfill,omitempty"`
	Recheck   *Recheck   `json:"recheck,omitempty"`
	Publish   *Publish   `json:"publish,omitempty"`
	Tick      *Tick      `json:"tick,omitempty"`
}

// Env is the environment that a command makes tasks in, 0 when it makes none.
func (c *Command) Env() int32 {
	switch {
	case c.Submit != nil:
		return c.Submit.Env
	case c.Spawn != nil:
		return c.Spawn.Env
	case c.Intern != nil:
		return c.Intern.Env
	}
	return 0
}

// Tick is the loop's own command: timers, leases, slices and what was set free. It is added to a batch when due.
type Tick struct{}

// Once asks that the call be answered again, not done again, when it comes twice with the same key.
type Once struct {
	Scope   string    `json:"scope"`
	Key     string    `json:"key"`
	Request models.ID `json:"request"`
}

// NewTask is one task to make; the edge has checked its shape and minted its id.
type NewTask struct {
	ID               models.ID       `json:"id"`
	Class            models.Class    `json:"class"`
	Lane             string          `json:"lane,omitempty"` // empty: routed by type
	Priority         int16           `json:"priority"`
	RunAt            models.Instant  `json:"run_at,omitempty"`
	DelaySeconds     int32           `json:"delay_seconds,omitempty"`
	Deadline         models.Instant  `json:"deadline,omitempty"`
	AheadMS          int64           `json:"ahead_ms,omitempty"` // the rest of its workflow's critical path, itself included
	ExpiresInSeconds int32           `json:"expires_in_seconds,omitempty"`
	SoftSeconds      int32           `json:"soft_seconds,omitempty"`
	HardSeconds      int32           `json:"hard_seconds,omitempty"` // 0: the kind's default
	MaxAttempts      int32           `json:"max_attempts"`
	HasPolicy        bool            `json:"has_policy,omitempty"`
	FailWhenSpent    bool            `json:"fail_when_spent,omitempty"`
	EstimateMS       int64           `json:"estimate_ms,omitempty"`
	IdemKey          string          `json:"idem_key,omitempty"`
	LimitKey         string          `json:"limit_key,omitempty"`
	KeyLimit         int32           `json:"key_limit,omitempty"`
	MoreKeys         string          `json:"more_keys,omitempty"` // further keys, as models.PackKeys writes them
	Ordered          bool            `json:"ordered,omitempty"`
	Key              string          `json:"key,omitempty"` // in its workflow
	DependsOn        []Dependency    `json:"depends_on,omitempty"`
	Labels           []models.Label  `json:"labels,omitempty"`
	Input            json.RawMessage `json:"input"`
	Payload          json.RawMessage `json:"payload,omitempty"`
	Trace            string          `json:"trace,omitempty"`
	RedriveOf        models.ID       `json:"redrive_of,omitzero"`
	TotalSeconds     int32           `json:"total_seconds,omitempty"`
	HasCondition     bool            `json:"has_condition,omitempty"` // its input carries a run_if that compiles
	NeedsApproval    bool            `json:"needs_approval,omitempty"`
	Checkpoint       json.RawMessage `json:"checkpoint,omitempty"` // it goes on from there
	Detach           bool            `json:"detach,omitempty"`     // of a child: it is on its own
	Dedupe           *models.Dedupe  `json:"dedupe,omitempty"`     // its task and environment are filled in
	Items            *models.Items   `json:"items,omitempty"`      // it is a slice of a batch: First and Total
	Own              *NewWorkflow    `json:"own,omitempty"`        // of a task with a budget: the workflow that it and what it spawns are
	Tokens           int64           `json:"tokens,omitempty"`     // it expects to use a run
	CostMicro        int64           `json:"cost_micro,omitempty"` // like models.Task
	Schema           int64           `json:"schema,omitempty"`     // that its payload was checked by; 0: there is none
	Schedule         models.ID       `json:"schedule,omitzero"`    // whose run it belongs to

	Model *models.ModelAsk `json:"model,omitempty"` // what its model must be like; nil: it names one in its class, or none
}

// Dependency names a task that must end first. Inside one Submit it may name another task of the same body.
type Dependency struct {
	Task models.ID `json:"task"`
	On   models.On `json:"on"`
}

// NewWorkflow is the workflow a Submit or Flip makes.
type NewWorkflow struct {
	ID       models.ID         `json:"id"`
	Name     string            `json:"name"`
	Priority int16             `json:"priority"`
	Stops    bool              `json:"stops,omitempty"` // on_failure: stop
	Budget   models.FlowBudget `json:"budget,omitzero"`
	RerunOf  models.ID         `json:"rerun_of,omitzero"`
	Items    int32             `json:"items,omitempty"` // of a batch
	Schedule models.ID         `json:"schedule,omitzero"`
	Input    json.RawMessage   `json:"input"`
}

// Submit makes tasks, all or nothing. With Dry nothing is written and the answer says what would happen.
type Submit struct {
	Env      int32        `json:"env"`
	Tasks    []NewTask    `json:"tasks"`
	Workflow *NewWorkflow `json:"workflow,omitempty"` // the tasks are its members
	Into     models.ID    `json:"into,omitzero"`      // a workflow that the tasks are added to
	Grown    int32        `json:"grown,omitempty"`    // how often it had been added to when the keys were looked at
	Once     *Once        `json:"once,omitempty"`
	Dry      bool         `json:"dry,omitempty"`
	// Beyond says, with Dry, that the body goes on beyond these tasks: whom they wait for may be among the others.
	Beyond bool `json:"beyond,omitempty"`
	// Single says that the body is one task: errors are located at body.x, else at body.tasks[i].x.
	Single bool `json:"single,omitempty"`
	// InBatch says that a held business key yields its holder instead of refusing (tasks and batches: true).
	InBatch bool `json:"in_batch,omitempty"`
}

// Intern asks for the numbers of classes and lanes, so that a replica can stage rows. Classes not seen yet are made.
type Intern struct {
	Env   int32        `json:"env"`
	Items []InternItem `json:"items"`
	Tasks int64        `json:"tasks,omitempty"` // of the whole body
}

// InternItem is one distinct pair of class and lane of a body.
type InternItem struct {
	Class   models.Class  `json:"class"`
	Lane    string        `json:"lane,omitempty"`
	Schema  int64         `json:"schema,omitempty"`
	Dearest models.Amount `json:"dearest,omitzero"` // the most that any of them says it costs, and uses of tokens

	Model  *models.ModelAsk `json:"model,omitempty"`
	Needed int64            `json:"needed,omitempty"` // tokens, where a model is chosen
}

// Interned answers an InternItem.
type Interned struct {
	Class int32           `json:"class"`
	Lane  int32           `json:"lane"`
	Kind  models.KindName `json:"kind"`

	Choice   *models.Choice       `json:"choice,omitempty"`   // its task and environment are the replica's to fill in
	Defaults *models.LaneDefaults `json:"defaults,omitempty"` // of the lane, for the replica to Fill in
}

// Flip makes a staged body part of the world: one row first, the tasks follow in slices.
type Flip struct {
	Env      int32        `json:"env"`
	Staging  models.ID    `json:"staging"`
	Tasks    int32        `json:"tasks"`
	Workflow *NewWorkflow `json:"workflow,omitempty"`
	Into     models.ID    `json:"into,omitzero"`   // a workflow that the tasks are added to
	Grown    int32        `json:"grown,omitempty"` // how often it had been added to when the keys were looked at
	Wide     int32        `json:"wide,omitempty"`  // the most tasks outside the body that one of the body waits for
	Once     *Once        `json:"once,omitempty"`
}

// Claim asks for leases. It may wait: then it is answered by a later batch, at the latest at Until.
type Claim struct {
	Worker  models.ID      `json:"worker"`
	Session models.ID      `json:"session"`
	Most    int32          `json:"most"`
	Until   models.Instant `json:"until,omitempty"` // 0: do not wait; the loop fills it in from WaitMS
	WaitMS  int64          `json:"wait_ms,omitempty"`
	Free    *Free          `json:"free,omitempty"`
}

// Free is what a worker says it has left; nil fields mean registered minus leased.
type Free struct {
	Slots    *int32           `json:"slots,omitempty"`
	BySlot   map[string]int32 `json:"by_slot,omitempty"`
	CPUMilli *int64           `json:"cpu_milli,omitempty"`
	MemoryMB *int64           `json:"memory_mb,omitempty"`
}

// Return gives leases back that could not be delivered, and takes a parked claim (by command id) off.
type Return struct {
	Claim  models.ID   `json:"claim,omitzero"`
	Tokens []models.ID `json:"tokens,omitempty"`
}

// Beat is one lease in a heartbeat.
type Beat struct {
	Token      models.ID       `json:"token"`
	Task       models.TaskRef  `json:"task,omitzero"` // as the wire token says
	Progress   json.RawMessage `json:"progress,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
}

// Heartbeat renews leases. The worker form lists all leases of the session; the single form (All false) only its own.
type Heartbeat struct {
	Worker      models.ID       `json:"worker,omitzero"` // zero: found by the token
	Session     models.ID       `json:"session,omitzero"`
	Env         int32           `json:"env,omitempty"` // of the single form; 0: any
	Task        models.ID       `json:"task,omitzero"` // of the single form
	All         bool            `json:"all,omitempty"`
	Leases      []Beat          `json:"leases"`
	Utilization json.RawMessage `json:"utilization,omitempty"`
	Models      []string        `json:"models,omitempty"` // loaded now; nil: unchanged
}

// Result is what a worker reports of one attempt.
type Result struct {
	Token      models.ID         `json:"token"`
	Task       models.TaskRef    `json:"task,omitzero"` // as the wire token says
	Outcome    models.Outcome    `json:"outcome"`       // succeeded, failed, cancelled, released, suspended
	Result     json.RawMessage   `json:"result,omitempty"`
	Error      *models.TaskError `json:"error,omitempty"`
	Usage      json.RawMessage   `json:"usage,omitempty"`
	Checkpoint json.RawMessage   `json:"checkpoint,omitempty"`
	RetryAfter float64           `json:"retry_after_seconds,omitempty"`
	Mark       *MarkMove         `json:"mark,omitempty"` // the task's watermark moves on with a success
	Items      *ItemsReport      `json:"items,omitempty"`
}

// Settle reports attempts.
type Settle struct {
	Worker  models.ID `json:"worker,omitzero"` // zero: the single form
	Session models.ID `json:"session,omitzero"`
	Env     int32     `json:"env,omitempty"`
	Task    models.ID `json:"task,omitzero"` // of the single form: the token must be its
	Results []Result  `json:"results"`
}

// Cancel stops a task or, with Workflow, a whole workflow.
type Cancel struct {
	Env      int32     `json:"env"`
	Task     models.ID `json:"task,omitzero"`
	Workflow models.ID `json:"workflow,omitzero"`
	Reason   string    `json:"reason,omitempty"`
}

// Redrive gives a dead letter another life.
type Redrive struct {
	Env     int32           `json:"env"`
	Task    models.ID       `json:"task"`
	Reason  string          `json:"reason,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"` // instead of the one it had
	Afresh  bool            `json:"afresh,omitempty"`  // without its checkpoint
	Apart   bool            `json:"apart,omitempty"`   // its items do not stand in its payload: it drains a queue
}

// Discard gives a dead letter up.
type Discard struct {
	Env    int32     `json:"env"`
	Task   models.ID `json:"task"`
	Reason string    `json:"reason"`
}

// Bulk redrives or discards the dead letters of a fingerprint, in slices. Matched was counted at the edge.
type Bulk struct {
	ID          models.ID         `json:"id"`
	Env         int32             `json:"env"`
	Kind        models.CursorKind `json:"kind"`
	Fingerprint models.ID         `json:"fingerprint"`
	Matched     int64             `json:"matched"`
	Until       models.ID         `json:"until,omitzero"`
	Reason      string            `json:"reason"`
	Once        *Once             `json:"once,omitempty"`

	// Of a bulk action over tasks that were listed under Fingerprint.
	Action   models.Action   `json:"action,omitempty"`
	Priority int16           `json:"priority,omitempty"`
	Lane     string          `json:"lane,omitempty"`
	Patch    json.RawMessage `json:"patch,omitempty"`
	Rate     float64         `json:"rate,omitempty"`
}

// SteerBulk pauses, resumes or ends a bulk action.
type SteerBulk struct {
	Env  int32     `json:"env"`
	ID   models.ID `json:"id"`
	Verb string    `json:"verb"` // pause, resume, cancel
}

// Register makes a worker known or replaces the session of its instance.
type Register struct {
	Worker models.Worker `json:"worker"` // ID and Session minted at the edge; ID is replaced by the instance's own
	Leases []models.ID   `json:"leases,omitempty"`
}

// Retire drains a worker (it gets nothing more) or, with Gone, removes it and gives its leases back.
type Retire struct {
	Worker  models.ID `json:"worker"`
	Session models.ID `json:"session,omitzero"` // zero: by an admin
	Gone    bool      `json:"gone,omitempty"`
}

// Configure writes what decisions read. Exactly one field is set. Version 0 makes a new thing, else it must be the one
// that stands (Stale otherwise); -1 takes whatever stands.
type Configure struct {
	Tenant      *models.Tenant      `json:"tenant,omitempty"`
	Environment *models.Environment `json:"environment,omitempty"`
	// CloseEnvironment deletes one (Env): sealed first, so that nothing comes in while somebody looks whether anything is left.
	CloseEnvironment int32            `json:"close_environment,omitempty"`
	Unseal           bool             `json:"unseal,omitempty"` // it is not empty: it takes work again
	Seal             bool             `json:"seal,omitempty"`
	Kind             *models.Kind     `json:"kind,omitempty"`
	Lane             *models.Lane     `json:"lane,omitempty"`
	DeleteLane       *models.Lane     `json:"delete_lane,omitempty"` // Env, Name and Version
	Schedule         *models.Schedule `json:"schedule,omitempty"`
	// Enabled goes with Schedule; nil leaves it as it stands.
	Enabled        *bool           `json:"enabled,omitempty"`
	DeleteSchedule *models.TaskRef `json:"delete_schedule,omitempty"`
	SwitchSchedule *SwitchSchedule `json:"switch_schedule,omitempty"`

	Variables  *models.Variables `json:"variables,omitempty"`
	Quotas     *SetQuotas        `json:"quotas,omitempty"`
	Grants     *models.Grants    `json:"grants,omitempty"`
	TaskType   *models.TaskType  `json:"task_type,omitempty"`
	Rate       *models.RateLimit `json:"rate,omitempty"`
	DeleteRate *models.RateRef   `json:"delete_rate,omitempty"`

	Budget       *SetBudget `json:"budget,omitempty"`
	DeleteBudget *BudgetRef `json:"delete_budget,omitempty"`

	Model       *models.Model    `json:"model,omitempty"`
	DeleteModel *models.ModelRef `json:"delete_model,omitempty"`

	New     bool   `json:"new,omitempty"`
	Dry     bool   `json:"dry,omitempty"`     // goes with New: nothing is made, and what would be refused is refused; of a schedule the answer says it
	Version int64  `json:"version,omitempty"` // the If-Match, 0: none sent
	Over    int64  `json:"over,omitempty"`    // of a tenant's first model of a name: the version of the platform's that it is put over; 0: whichever
	Once    *Once  `json:"once,omitempty"`
	Action  string `json:"action"` // for the audit, like "lane.pause"
	Reason  string `json:"reason,omitempty"`
}

// Look asks for live facts; it commits nothing. Exactly one field is set.
type Look struct {
	Explain  *models.TaskRef  `json:"explain,omitempty"`
	Live     []models.TaskRef `json:"live,omitempty"`
	Lanes    int32            `json:"lanes,omitempty"` // environment
	Heads    int32            `json:"heads,omitempty"` // lane
	Workers  bool             `json:"workers,omitempty"`
	Stats    bool             `json:"stats,omitempty"`
	Shares   bool             `json:"shares,omitempty"`
	Locks    int32            `json:"locks,omitempty"`  // environment
	Queues   int32            `json:"queues,omitempty"` // environment
	Budgets  *BudgetRef       `json:"budgets,omitempty"`
	Ahead    *LookAhead       `json:"ahead,omitempty"`
	Models   *int32           `json:"models,omitempty"` // of a tenant; 0: the platform's
	Route    *RouteAsk        `json:"route,omitempty"`
	Fallback models.Instant   `json:"-"`
}
