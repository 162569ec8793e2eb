package api

import (
	"math"
	"slices"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/dag"
	"nightshift/scheduler/engine"
)

func (d *draft) runAt(v body.Value) {
	d.given.runAt = true
	d.input.RunAt = v.Time()
}

func (d *draft) delay(v body.Value) {
	d.given.delay = true
	d.task.DelaySeconds = seconds(v, 0)
	d.input.DelaySeconds = d.task.DelaySeconds
}

func (d *draft) key(v body.Value) {
	d.given.key = true
	d.task.Key = v.String(1, maxKeyBytes)
}

const (
	maxMemoryMB = 1 << 30 // a petabyte
	maxGPUs     = 1024
	maxTokens   = 1_000_000_000
)

func (d *draft) resources(v body.Value) {
	class := &d.task.Class
	v.Members(func(name string, m body.Value) {
		switch {
		case name == "tokens" && !m.Null():
			d.task.Tokens = m.Int(0, maxTokens)
			class.Tokens = d.task.Tokens > 0
		case name == "cpu" && !m.Null():
			class.CPUMilli = int64(math.Ceil(m.Number(0, 10_000) * 1000))
		case name == "memory_mb" && !m.Null():
			class.MemoryMB = m.Int(0, maxMemoryMB)
		case name == "disk_mb" && !m.Null():
			class.DiskMB = m.Int(0, maxMemoryMB)
		case name == "gpu" && !m.Null():
			class.GPU = int32(m.Int(0, maxGPUs))
		case name == "vram_mb" && !m.Null():
			class.VRAMMB = m.Int(0, maxMemoryMB)
		case !m.Null() || !slices.Contains([]string{"cpu", "memory_mb", "disk_mb", "gpu", "vram_mb", "tokens"}, name):
			m.Wrong("there is no such field")
		}
	})
	if class.VRAMMB > 0 && class.GPU == 0 {
		class.GPU = 1 // memory of a card is asked for, so a card is
	}
}

// mostCandidates is how many models a task may name to choose from.
const mostCandidates = 50

// model reads the model that a task names, or what the one must be like that is chosen for it.
func (d *draft) model(v body.Value) {
	if !v.IsObject() {
		d.task.Class.Model = v.Name()
		return
	}
	ask := &models.ModelAsk{}
	v.Members(func(name string, m body.Value) {
		switch {
		case !slices.Contains([]string{"auto", "quality_target", "max_latency_ms", "candidates"}, name):
			m.Wrong("there is no such field")
		case m.Null():
		case name == "auto":
			if !m.Bool() && string(m.Text) == "false" {
				m.Wrong("must be true: else give a model's name in place of the object")
			}
		case name == "quality_target":
			ask.QualityTarget = m.Number(0, 1)
		case name == "max_latency_ms":
			ask.MaxLatencyMS = m.Int(1, mostLatency)
		default:
			n := m.Elements(func(i int, e body.Value) {
				if i < mostCandidates {
					ask.Candidates = append(ask.Candidates, e.Name())
				}
			})
			if n > mostCandidates {
				m.Wrong("must have at most %d entries", mostCandidates)
			}
		}
	})
	d.task.Model = ask
}

func (d *draft) estimatedCost(v body.Value) {
	cost := v.Number(0, 1_000_000)
	cost = math.Round(cost*1e6) / 1e6
	d.input.EstimatedCostUSD = &cost
	if d.task.CostMicro = int64(math.Round(cost * 1e6)); d.task.CostMicro == 0 {
		d.task.CostMicro = models.Free
	}
}

func (d *draft) estimatedSeconds(v body.Value) {
	d.task.EstimateMS = int64(math.Ceil(v.Number(0, maxDurationSeconds) * 1000))
}

func (d *draft) timeout(v body.Value) {
	v.Members(func(name string, m body.Value) {
		switch {
		case name != "soft_seconds" && name != "hard_seconds" && name != "total_seconds":
			m.Wrong("there is no such field")
		case m.Null():
		case name == "soft_seconds":
			d.task.SoftSeconds = seconds(m, aMoment)
		case name == "total_seconds":
			d.task.TotalSeconds = seconds(m, aMoment)
		default:
			d.given.hard = true
			d.task.HardSeconds = seconds(m, aMoment)
		}
	})
}

func (d *draft) timeoutSeconds(v body.Value) {
	d.given.sugarHard = true
	d.task.HardSeconds = seconds(v, aMoment)
}

const maxAttempts = 1000

func (d *draft) retryPolicy(v body.Value) {
	p := models.DefaultRetryPolicy()
	givenMax := false
	v.Members(func(name string, m body.Value) {
		if m.Null() && slices.Contains([]string{"max_attempts", "backoff", "initial_delay_seconds", "max_delay_seconds", "jitter", "classes"}, name) {
			return
		}
		switch name {
		case "max_attempts":
			p.MaxAttempts = int32(m.Int(1, maxAttempts))
		case "backoff":
			p.Backoff = m.OneOf("exponential", "linear", "fixed")
		case "initial_delay_seconds":
			p.InitialDelay = m.Number(0, maxDurationSeconds)
		case "max_delay_seconds":
			givenMax = true
			p.MaxDelay = m.Number(0, maxDurationSeconds)
		case "jitter":
			p.Jitter = m.Bool()
		case "classes":
			p.Classes = classPolicies(m)
		default:
			m.Wrong("there is no such field")
		}
	})
	switch {
	case p.InitialDelay <= p.MaxDelay:
	case givenMax:
		d.r.problem.Addf(body.Dot(v.At, "max_delay_seconds"), "must not be below initial_delay_seconds")
	default:
		p.MaxDelay = p.InitialDelay
	}
	d.task.MaxAttempts, d.task.HasPolicy = p.MaxAttempts, true
	d.input.RetryPolicy = &p
}

func classPolicies(v body.Value) map[string]models.ClassPolicy {
	classes := map[string]models.ClassPolicy{}
	v.Members(func(class string, of body.Value) {
		if !slices.Contains(models.ErrorClasses, class) {
			of.Wrong("there is no such error class")
			return
		}
		var p models.ClassPolicy
		of.Members(func(name string, m body.Value) {
			if name != "max_attempts" {
				m.Wrong("there is no such field")
				return
			}
			p.MaxAttempts = int32(m.Int(1, maxAttempts))
		})
		if p.MaxAttempts == 0 {
			of.Wrong("needs max_attempts")
		}
		classes[class] = p
	})
	return classes
}

// DedupeView is a key that lets one task of its like be at a time.
type DedupeView struct {
	Key   string `json:"key" required:"true"`
	While string `json:"while" enum:"queued,live,succeeded" doc:"until it starts, until it is final or dead, or for ttl_seconds after a success too"`
	TTL   int32  `json:"ttl_seconds" doc:"with succeeded: an hour when left out"`
}

const dedupeTTL = 3600

func (d *draft) dedupe(v body.Value) {
	if d.r.graph != nil {
		v.Wrong("a task of a workflow has none: its key in the workflow is what makes it one")
		return
	}
	in := &DedupeView{While: models.WhileLive.String(), TTL: dedupeTTL}
	v.Members(func(name string, m body.Value) {
		switch {
		case name == "key":
			in.Key = m.String(1, maxKeyBytes)
		case name != "while" && name != "ttl_seconds":
			m.Wrong("there is no such field")
		case m.Null():
		case name == "while":
			in.While = m.OneOf("queued", "live", "succeeded")
		default:
			in.TTL = seconds(m, 0)
		}
	})
	if in.Key == "" && v.IsObject() && !d.r.problem.Any() {
		d.r.problem.Addf(body.Dot(v.At, "key"), "is required")
	}
	while, _ := models.ParseWhile(in.While)
	d.input.Dedupe = in
	d.task.Dedupe = &models.Dedupe{Key: in.Key, While: while, TTLSeconds: in.TTL}
}

// runIf compiles each distinct condition of a body once.
func (d *draft) runIf(v body.Value) {
	text := v.String(1, dag.MostConditionBytes)
	if text == "" {
		return // said already
	}
	err, known := d.r.judged[text]
	if !known {
		_, err = dag.Compile(text)
		if d.r.judged == nil {
			d.r.judged = map[string]error{}
		}
		d.r.judged[text] = err
	}
	if err != nil {
		v.Wrong("does not compile: %s", err)
		return
	}
	d.input.RunIf, d.task.HasCondition = text, true
}

func (d *draft) idempotencyKey(v body.Value) {
	if d.r.graph != nil {
		v.Wrong("a task of a workflow has none: its key in the workflow is what makes it one")
		return
	}
	d.task.IdemKey = v.String(1, maxKeyBytes)
}

func (d *draft) selector(v body.Value) {
	if words := v.Words(handlers.LabelsMost, maxKeyBytes, maxKeyBytes); len(words) > 0 {
		d.task.Class.Selector = words
	}
}

func (d *draft) exhausted(v body.Value) {
	d.task.FailWhenSpent = v.OneOf("dead_letter", "fail") == "fail"
}

func (d *draft) dependsOn(v body.Value) {
	n := v.Elements(func(i int, e body.Value) {
		if i < handlers.DependsOnMost {
			d.deps = append(d.deps, e)
		}
	})
	if n > handlers.DependsOnMost {
		v.Wrong("must have at most %d entries", handlers.DependsOnMost)
	}
}

// edges reads what the task waits for once it has its place in the graph.
func (d *draft) edges() {
	if len(d.deps) == 0 {
		return
	}
	seen := make(map[models.ID]models.On, len(d.deps))
	d.task.DependsOn = make([]engine.Dependency, 0, len(d.deps))
	for _, v := range d.deps {
		id, on, ok := d.dependency(v)
		if !ok {
			continue
		}
		before, twice := seen[id]
		switch {
		case twice && before != on:
			v.Wrong("names a task twice with different conditions")
		case !twice:
			seen[id] = on
			d.task.DependsOn = append(d.task.DependsOn, engine.Dependency{Task: id, On: on})
		}
	}
}

// dependency reads "a", {"key": "a", "on": …} in a workflow, "task_…" and {"task": "task_…", "on": …} everywhere.
func (d *draft) dependency(v body.Value) (id models.ID, on models.On, ok bool) {
	if v.IsString() {
		name := v.String(1, maxKeyBytes)
		return d.named(v, name, d.unsaid())
	}
	if !v.IsObject() {
		v.Wrong("must be a task's id, or an object")
		return id, 0, false
	}
	var name string
	var at body.Value
	isTask := false
	on = d.unsaid()
	v.Members(func(member string, m body.Value) {
		switch {
		case member == "task", member == "key" && d.r.graph != nil:
			if at.Text != nil {
				m.Wrong("stands beside another name; give one of the two")
			}
			at, isTask, name = m, member == "task", m.String(1, maxKeyBytes)
		case member == "on":
			if m.Null() {
				return
			}
			on, _ = models.ParseOn(m.OneOf("succeeded", "failed", "finished"))
		default:
			m.Wrong("there is no such field")
		}
	})
	switch {
	case at.Text == nil:
		v.Wrong("must name a task")
		return id, 0, false
	case isTask:
		id, ok = d.submitted(at, name)
		return id, on, ok
	case name == "":
		return id, on, false // said already
	}
	return d.r.idOf(d.r.graph.Mention(d.node, name)), on, true
}

// unsaid is the condition of an edge that names none: a task with run_if judges for itself.
func (d *draft) unsaid() models.On {
	if d.task.HasCondition {
		return models.OnFinished
	}
	return models.OnSucceeded
}

func (d *draft) named(v body.Value, name string, on models.On) (models.ID, models.On, bool) {
	if name == "" {
		return models.ID{}, on, false
	}
	if d.r.graph == nil {
		id, ok := d.submitted(v, name)
		return id, on, ok
	}
	if id, err := models.ParseID(models.TaskPrefix, name); err == nil {
		d.outside = true
		return id, on, true
	}
	return d.r.idOf(d.r.graph.Mention(d.node, name)), on, true
}

// submitted is a task that was submitted before this body.
func (d *draft) submitted(v body.Value, name string) (models.ID, bool) {
	id, err := models.ParseID(models.TaskPrefix, name)
	if err != nil && name != "" {
		v.Wrong("there is no task %q here", name)
	}
	d.outside = true
	return id, err == nil
}
