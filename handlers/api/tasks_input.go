package api

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/dag"
	"nightshift/scheduler/engine"
)

const (
	maxKeyBytes         = handlers.KeyMost
	maxDescriptionBytes = 4_096
	maxDurationSeconds  = 10 * 365 * 86_400
	defaultPriority     = 50
)

// Input is what is kept of a submitted task beside its row, its class and its edges: nothing that they say already.
type Input struct {
	RunAt            models.Instant      `json:"run_at,omitempty"`
	DelaySeconds     int32               `json:"delay_seconds,omitempty"`
	ExpiresInSeconds int32               `json:"expires_in_seconds,omitempty"`
	EstimatedCostUSD *float64            `json:"estimated_cost_usd,omitempty"`
	RetryPolicy      *models.RetryPolicy `json:"retry_policy,omitempty"`
	Labels           map[string]string   `json:"labels,omitempty"`
	Description      string              `json:"description,omitempty"`
	Dedupe           *DedupeView         `json:"dedupe,omitempty"`
	Watermark        string              `json:"watermark,omitempty"`
	RunIf            string              `json:"run_if,omitempty"`
	Budget           *models.FlowBudget  `json:"budget,omitempty"`
	ScheduleID       string              `json:"schedule_id,omitempty"`
	RunID            string              `json:"run_id,omitempty"`
	Schedule         string              `json:"schedule,omitempty"` // its name when the run was made
	ScheduledFor     models.Instant      `json:"scheduled_for,omitempty"`
	Partition        json.RawMessage     `json:"partition,omitempty"`
	Fed              string              `json:"fed,omitempty"` // the kind of schedule that hands it what it took
	Portion          *int32              `json:"portion,omitempty"`
}

// taskReader reads the tasks of one body.
type taskReader struct {
	env     int32
	mint    func() models.ID
	trace   string // the request's traceparent, or empty
	lanes   []string
	may     []string // the permissions that the caller's key may hand to tasks; empty: all
	schemas func(env int32) (map[string]*handlers.InputSchema, error)
	loose   bool // payloads are not known whole yet
	problem *body.Problems
	judged  map[string]error // conditions that were compiled before
	denied  error            // a lane that the caller's key does not submit to

	// children says that a running task spawns them: each has a key and may be detached.
	children bool
	// Of a workflow or of children: its graph, the ids of its keys, and the first lane and priority that hold where a task names none.
	graph    *dag.Graph
	ids      []models.ID // by dag.Node
	lane     string
	priority int16
}

// draft is one task while its members are read.
type draft struct {
	r     *taskReader
	v     body.Value
	task  engine.NewTask
	input Input
	node  dag.Node

	keys    []models.TaskKey
	sugar   models.TaskKey // concurrency_key and concurrency_limit
	given   struct{ typ, key, lane, priority, delay, runAt, hard, sugarHard, concurrency, sugarKey, sugarLimit bool }
	outside bool // it waits for a task that was submitted before this body
	deps    []body.Value
}

// members says how each member of a task is read. What is named in notBuilt is refused unless it asks for nothing.
var members = map[string]func(*draft, body.Value){
	"type":                  func(d *draft, v body.Value) { d.given.typ = true; d.task.Class.Type = v.Name() },
	"payload":               func(d *draft, v body.Value) { d.task.Payload = v.Raw(handlers.PayloadLimit) },
	"lane":                  func(d *draft, v body.Value) { d.given.lane = true; d.task.Lane = v.Name() },
	"priority":              func(d *draft, v body.Value) { d.given.priority = true; d.task.Priority = int16(v.Int(0, 100)) },
	"run_at":                (*draft).runAt,
	"delay_seconds":         (*draft).delay,
	"deadline":              func(d *draft, v body.Value) { d.task.Deadline = v.Time() },
	"expires_in_seconds":    func(d *draft, v body.Value) { d.input.ExpiresInSeconds = seconds(v, aMoment) },
	"permissions":           (*draft).permissions,
	"resources":             (*draft).resources,
	"model":                 (*draft).model,
	"estimated_cost_usd":    (*draft).estimatedCost,
	"estimated_seconds":     (*draft).estimatedSeconds,
	"timeout":               (*draft).timeout,
	"timeout_seconds":       (*draft).timeoutSeconds,
	"retry_policy":          (*draft).retryPolicy,
	"concurrency":           (*draft).concurrency,
	"concurrency_key":       (*draft).concurrencyKey,
	"concurrency_limit":     (*draft).concurrencyLimit,
	"ordered":               func(d *draft, v body.Value) { d.task.Ordered = v.Bool() },
	"rate_keys":             (*draft).rateKeys,
	"idempotency_key":       (*draft).idempotencyKey,
	"worker_selector":       (*draft).selector,
	"labels":                func(d *draft, v body.Value) { d.input.Labels = v.Words(handlers.LabelsMost, maxKeyBytes, maxKeyBytes) },
	"depends_on":            (*draft).dependsOn,
	"on_attempts_exhausted": (*draft).exhausted,
	"dedupe":                (*draft).dedupe,
	"watermark":             func(d *draft, v body.Value) { d.input.Watermark = v.Name() },
	"run_if":                (*draft).runIf,
	"needs_approval":        func(d *draft, v body.Value) { d.task.NeedsApproval = v.Bool() },
	"budget":                (*draft).budget,
	"description":           func(d *draft, v body.Value) { d.input.Description = v.String(0, maxDescriptionBytes) },
}

// notBuilt names members that ask for what does not exist yet, with the value beside null that asks for nothing.
var notBuilt = map[string]string{
	"secrets": "{}",
}

// task reads one task. What is wrong with it stands in the reader's problems; it is then of no use.
func (r *taskReader) task(v body.Value) engine.NewTask { return r.draft(v).task }

func (r *taskReader) draft(v body.Value) *draft {
	d := &draft{r: r, v: v, node: -1}
	d.task.Priority, d.task.Lane = r.priority, r.lane
	d.task.MaxAttempts = models.DefaultRetryPolicy().MaxAttempts
	d.task.Trace = r.trace
	v.Members(d.member)
	d.finish()
	return d
}

func (d *draft) member(name string, v body.Value) {
	if name == "key" && d.r.graph != nil {
		d.key(v)
		return
	}
	if name == "detach" && d.r.children {
		d.task.Detach = !v.Null() && v.Bool()
		return
	}
	if v.Null() {
		if _, known := members[name]; !known && !unbuilt(name) {
			v.Wrong("there is no such field")
		}
		return
	}
	if read, known := members[name]; known {
		read(d, v)
		return
	}
	if unbuilt(name) {
		refuseUnbuilt(v, notBuilt[name])
		return
	}
	v.Wrong("there is no such field")
}

func unbuilt(name string) bool { _, is := notBuilt[name]; return is }

// refuseUnbuilt refuses a member that this version does not have, unless it asks for nothing.
func refuseUnbuilt(v body.Value, neutral string) {
	switch {
	case v.Null(), neutral == "false" && string(v.Text) == neutral:
	case neutral == "[]" && v.IsArray() && v.Empty(), neutral == "{}" && v.IsObject() && v.Empty():
	default:
		v.Wrong("is not available in this version")
	}
}

// finish checks what members say together and writes what is kept.
func (d *draft) finish() {
	at := d.v.At
	if !d.given.typ {
		d.r.problem.Addf(body.Dot(at, "type"), "is required")
	}
	if d.given.runAt && d.given.delay {
		d.r.problem.Addf(body.Dot(at, "delay_seconds"), "stands beside run_at; give one of the two")
	}
	if d.given.sugarHard && d.given.hard {
		d.r.problem.Addf(body.Dot(at, "timeout_seconds"), "stands beside timeout.hard_seconds; give one of the two")
	}
	if soft, hard := d.task.SoftSeconds, d.task.HardSeconds; hard > 0 && soft > hard {
		d.r.problem.Addf(body.Dot(at, "timeout.soft_seconds"), "must not be above hard_seconds")
	}
	d.finishKeys()
	if d.given.lane || d.r.graph == nil { // of a task in a workflow that names none its reader knows the lane when it has read all
		d.r.enters(d.task.Lane, at)
	}
	d.check(&d.task, body.Dot(at, "payload"))
	d.identify()
	if d.r.problem.Any() {
		return
	}
	if d.input.Budget != nil {
		d.task.Own = ownFlow(d.r.mint(), &d.task, d.input.Budget)
	}
	d.edges()
	d.task.ExpiresInSeconds = d.input.ExpiresInSeconds
	d.task.RunAt = d.input.RunAt
	for key, value := range d.input.Labels {
		d.task.Labels = append(d.task.Labels, models.Label{Env: d.r.env, Task: d.task.ID, Key: key, Value: value})
	}
	d.task.Input = d.input.text()
}

// enters refuses a task, the one at a place, in a lane that the caller's key does not submit to.
func (r *taskReader) enters(lane, at string) {
	if len(r.lanes) > 0 && !slices.Contains(r.lanes, lane) {
		r.denied = models.Errorf(models.Forbidden, "this key submits to %s only: name one of them in %s", strings.Join(r.lanes, ", "), body.Dot(at, "lane"))
	}
}

// err is the refusal of what was read, nil when all is well.
func (r *taskReader) err() error {
	if err := r.problem.Err(models.ValidationFailed); err != nil {
		return err
	}
	return r.denied
}

// identify gives the task its id: in a workflow the one its key may have got before, when another task named it.
func (d *draft) identify() {
	if d.r.graph == nil {
		d.task.ID = d.r.mint()
		return
	}
	if !d.given.key {
		d.r.problem.Addf(body.Dot(d.v.At, "key"), "is required")
		return
	}
	d.node = d.r.graph.Declare(d.task.Key)
	d.task.ID = d.r.idOf(d.node)
}

func (r *taskReader) idOf(n dag.Node) models.ID {
	for len(r.ids) <= int(n) {
		r.ids = append(r.ids, models.ID{})
	}
	if r.ids[n].IsZero() {
		r.ids[n] = r.mint()
	}
	return r.ids[n]
}

var nothingKept = json.RawMessage("{}")

func (in *Input) text() json.RawMessage {
	if in.RunAt == 0 && in.DelaySeconds == 0 && in.ExpiresInSeconds == 0 && in.EstimatedCostUSD == nil && in.RetryPolicy == nil && len(in.Labels) == 0 && in.Description == "" && in.Dedupe == nil && in.Watermark == "" && in.Budget == nil && in.RunIf == "" && in.RunID == "" {
		return nothingKept
	}
	text, err := json.Marshal(in)
	if err != nil {
		panic(err) // texts and finite numbers always encode
	}
	return text
}

// ParseInput reads what was kept of a task.
func ParseInput(text json.RawMessage) (in Input) {
	_ = json.Unmarshal(text, &in) // written by text alone
	return in
}

// seconds reads a duration; a fraction of a second counts as a whole one.
func seconds(v body.Value, least float64) int32 {
	return int32(math.Ceil(v.Number(least, maxDurationSeconds)))
}

// aMoment is the least of durations that can't be none.
const aMoment = 0.001
