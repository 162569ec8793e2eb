package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/fit"
)

// MostClasses is how many distinct requirements an environment may have ready or running at once.
const MostClasses = 200

// place of a new task: resolved before anything is written.
type placement struct {
	task   *NewTask
	lane   *board.Lane
	class  int32 // 0: new
	holder *models.Task
	deps   []*models.Task // rows of dependencies outside the body, in the order of DependsOn; nil for those inside
}

// submit makes tasks and perhaps their workflow, all or nothing.
func (e *Engine) submit(cmd *Command) (*Answer, error) {
	s := cmd.Submit
	if answer, err := e.replay(s.Once); answer != nil || err != nil {
		return answer, err
	}
	if answer := e.resubmitted(cmd); answer != nil {
		return answer, nil
	}
	if s.Dry {
		return &Answer{Submitted: e.dry(s)}, nil
	}
	if err := e.takesSubmits(s.Env); err != nil {
		return nil, err
	}
	placements, err := e.resolve(s)
	if err != nil {
		return nil, err
	}
	answer := &Answer{Submitted: &Submitted{Tasks: make([]SubmittedTask, len(s.Tasks))}}
	flow := e.bornFlow(s.Env, s.Workflow, answer.Submitted)
	changes := make([]*change, len(placements))
	inside, holders := map[models.ID]*change{}, map[models.ID]*models.Task{}
	for i, p := range placements {
		if p.holder != nil {
			holders[p.task.ID] = p.holder
			continue
		}
		changes[i] = e.makeTask(s, p, flow)
		inside[changes[i].row.ID] = changes[i]
	}
	for i, p := range placements {
		if changes[i] != nil {
			e.link(s.Env, changes[i], p, inside, holders)
		}
	}
	for i, p := range placements {
		if changes[i] != nil {
			e.enterNew(changes[i], p.task)
			answer.Made = append(answer.Made, changes[i].row.ID)
		}
	}
	e.recordOnce(s.Once, answer.Made)
	e.b.fill = append(e.b.fill, func() { e.fillSubmitted(answer.Submitted, placements, changes) })
	return answer, nil
}

// takesSubmits says why an environment takes no new work.
func (e *Engine) takesSubmits(env int32) error {
	t := e.board.Tenants[e.board.TenantOf(env)]
	switch {
	case t == nil:
		return models.Errorf(models.NotFound, "there is no such environment")
	case t.Suspended:
		return models.Errorf(models.TenantSuspended, "the tenant %s is suspended: it takes no new work", t.Slug)
	}
	return nil
}

// replay recognises a call that came before with the same Idempotency-Key.
func (e *Engine) replay(once *Once) (*Answer, error) {
	if once == nil {
		return nil, nil
	}
	ref := models.OnceRef{Scope: once.Scope, Key: once.Key}
	known, ok := e.b.once[ref]
	if !ok {
		known, ok = e.b.facts.Once[ref]
	}
	switch {
	case !ok:
		return nil, nil
	case known.Request != once.Request:
		return nil, models.Errorf(models.IdempotencyKeyReused, "the Idempotency-Key %q was used for another request", once.Key)
	}
	answer := &Answer{Replay: true}
	if err := json.Unmarshal(known.Made, &answer.Made); err != nil {
		return nil, models.Errorf(models.Internal, "what was made under the Idempotency-Key cannot be read: %w", err)
	}
	return answer, nil
}

func (e *Engine) recordOnce(once *Once, made []models.ID) {
	if once == nil {
		return
	}
	text, err := json.Marshal(append([]models.ID{}, made...)) // [] where all were there before
	if err != nil {
		panic(err) // ids always encode
	}
	row := models.Once{Scope: once.Scope, Key: once.Key, Request: once.Request, Made: text, At: e.now}
	e.b.once[models.OnceRef{Scope: once.Scope, Key: once.Key}] = row
	e.b.plan.Once = append(e.b.plan.Once, row)
}

// resubmitted recognises a command that was done before its answer got lost: tasks of it exist.
func (e *Engine) resubmitted(cmd *Command) *Answer {
	s := cmd.Submit
	if !cmd.Resent {
		return nil
	}
	answer := &Answer{Submitted: &Submitted{Tasks: make([]SubmittedTask, len(s.Tasks))}}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if row := e.peek(models.TaskRef{Env: s.Env, ID: t.ID}); row != nil {
			answer.Submitted.Tasks[i] = SubmittedTask{Row: *row}
			answer.Made = append(answer.Made, row.ID)
		} else if held, ok := e.b.facts.IdemKeys[models.IdemRef{Env: s.Env, Key: t.IdemKey}]; ok && t.IdemKey != "" {
			answer.Submitted.Tasks[i] = SubmittedTask{Row: held, Deduplicated: true}
		}
	}
	if len(answer.Made) == 0 {
		return nil
	}
	if w := s.Workflow; w != nil {
		answer.Submitted.Workflow = &models.Workflow{Env: s.Env, ID: w.ID, Name: w.Name, Input: w.Input, CreatedAt: answer.Submitted.Tasks[0].Row.CreatedAt}
	}
	return answer
}

// resolve finds lanes, classes, holders and dependencies, and refuses the whole body where one does not hold.
func (e *Engine) resolve(s *Submit) ([]placement, error) {
	inside := make(map[models.ID]bool, len(s.Tasks))
	for i := range s.Tasks {
		inside[s.Tasks[i].ID] = true
	}
	out := make([]placement, len(s.Tasks))
	fresh := map[string]bool{}
	keys := map[string]bool{}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		at := location(s.Single, i)
		p := placement{task: t}
		var err error
		if p.lane, err = e.route(s.Env, t.Lane, t.Class.Type, at); err != nil {
			return nil, err
		}
		if p.class = e.classNumber(t.Class); p.class == 0 {
			fresh[t.Class.Digest()] = true
		}
		if p.holder, err = e.holder(s, t, at, keys); err != nil {
			return nil, err
		}
		if p.deps, err = e.dependencies(s.Env, t, at, inside); err != nil {
			return nil, err
		}
		out[i] = p
	}
	if len(fresh) > 0 && e.board.LiveClasses(s.Env)+len(fresh) > MostClasses {
		return nil, e.tooManyClasses(s.Env)
	}
	return out, nil
}

func location(single bool, i int) string {
	if single {
		return "body"
	}
	return fmt.Sprintf("body.tasks[%d]", i)
}

// route finds the lane: the named one, else the one with the longest matching pattern, else the lane batch.
func (e *Engine) route(env int32, name, taskType, at string) (*board.Lane, error) {
	if name != "" {
		lane := e.board.LaneNamed(env, name)
		switch {
		case lane == nil:
			return nil, models.Invalid(at+".lane", "there is no lane %q", name)
		case lane.Draining:
			return nil, models.Errorf(models.StateConflict, "the lane %s is draining: it takes no new work", name)
		}
		return lane, nil
	}
	best, length := e.board.LaneNamed(env, "batch"), -1
	for _, lane := range e.board.LanesOf(env) {
		for _, pattern := range lane.TaskTypes {
			if n := len(strings.TrimSuffix(pattern, "*")); n > length && !lane.Draining && models.MatchPattern([]string{pattern}, taskType) {
				best, length = lane, n
			}
		}
	}
	if best == nil {
		return nil, models.Errorf(models.NotFound, "there is no such environment")
	}
	return best, nil
}

func (e *Engine) classNumber(c models.Class) int32 {
	if n := e.board.ClassNumber(c); n != 0 {
		return n
	}
	return 0
}

// internClass gives a class its number, a new one when nobody asked for the same before.
func (e *Engine) internClass(c models.Class) int32 {
	if n := e.board.ClassNumber(c); n != 0 {
		return n
	}
	e.numbers.class++
	c.Number = e.numbers.class
	e.board.PutClass(c)
	e.b.plan.Classes = append(e.b.plan.Classes, c)
	return c.Number
}

// holder finds who holds the task's business key.
func (e *Engine) holder(s *Submit, t *NewTask, at string, keys map[string]bool) (*models.Task, error) {
	if t.IdemKey == "" {
		return nil, nil
	}
	ref := models.IdemRef{Env: s.Env, Key: t.IdemKey}
	var row *models.Task
	if c := e.b.idem[ref]; c != nil && holdsKey(c.row.State) {
		row = &c.row
	} else if known, ok := e.b.facts.IdemKeys[ref]; ok {
		row = &known
		if now := e.peek(models.TaskRef{Env: s.Env, ID: known.ID}); now != nil {
			row = now
		}
	}
	if row == nil || !holdsKey(row.State) {
		if keys[t.IdemKey] && !s.InBatch {
			return nil, models.Invalid(at+".idempotency_key", "two tasks of the body have the key %q", t.IdemKey)
		}
		if keys[t.IdemKey] {
			return nil, models.Invalid(at+".idempotency_key", "the key %q stands twice in one body", t.IdemKey)
		}
		keys[t.IdemKey] = true
		return nil, nil
	}
	if !s.InBatch {
		return nil, models.Invalid(at+".idempotency_key", "the key %q is held by %s", t.IdemKey, row.ID.Text(models.TaskPrefix))
	}
	return row, nil
}

func holdsKey(s models.State) bool { return !s.Final() || s == models.Succeeded }

func (e *Engine) dependencies(env int32, t *NewTask, at string, inside map[models.ID]bool) ([]*models.Task, error) {
	rows := make([]*models.Task, len(t.DependsOn))
	for j, d := range t.DependsOn {
		if inside[d.Task] {
			continue
		}
		row := e.peek(models.TaskRef{Env: env, ID: d.Task})
		if row == nil || row.State == models.Staged {
			return nil, models.Invalid(fmt.Sprintf("%s.depends_on[%d]", at, j), "there is no task %s", d.Task.Text(models.TaskPrefix))
		}
		rows[j] = row
	}
	return rows, nil
}

func (e *Engine) tooManyClasses(env int32) error {
	seen := map[string]map[string]bool{}
	note := func(field, value string) {
		if seen[field] == nil {
			seen[field] = map[string]bool{}
		}
		seen[field][value] = true
	}
	for _, c := range e.board.ClassesOf(env) {
		note("type", c.Type)
		note("resources.cpu", fmt.Sprint(c.CPUMilli))
		note("resources.memory_mb", fmt.Sprint(c.MemoryMB))
		note("resources.disk_mb", fmt.Sprint(c.DiskMB))
		note("resources.gpu", fmt.Sprint(c.GPU, c.VRAMMB))
		note("model", c.Model)
		note("worker_selector", fmt.Sprint(c.Selector))
	}
	field := "type"
	for _, name := range []string{"resources.cpu", "resources.memory_mb", "resources.disk_mb", "resources.gpu", "model", "worker_selector"} {
		if len(seen[name]) > len(seen[field]) {
			field = name
		}
	}
	err := models.Errorf(models.TooManyClasses, "more than %d different requirements are ready at once; %s varies most", MostClasses, field)
	err.RetryAfterSeconds = 5
	return err
}

// makeTask writes the new row, its spec and labels. Its dependencies follow in link, its place in enterNew.
func (e *Engine) makeTask(s *Submit, p placement, flow *flow) *change {
	t := p.task
	row := models.Task{
		Env: s.Env, ID: t.ID, State: models.Pending, Lane: p.lane.Number, Class: e.internClass(t.Class),
		Priority: t.Priority, CreatedAt: e.now, UpdatedAt: e.now, MaxAttempts: t.MaxAttempts, Key: t.Key, IdemKey: t.IdemKey,
		LimitKey: t.LimitKey, KeyLimit: t.KeyLimit, SoftSeconds: t.SoftSeconds, HardSeconds: t.HardSeconds, EstimateMS: t.EstimateMS,
		WakeAt: t.RunAt,
	}
	if row.HardSeconds == 0 {
		row.HardSeconds = p.lane.Kind.DefaultHardSeconds()
	}
	if t.HasPolicy {
		row.Flags |= models.HasPolicy
	}
	if t.FailWhenSpent {
		row.Flags |= models.FailWhenSpent
	}
	if flow != nil {
		row.Workflow = flow.row.ID
	}
	c := e.born(row)
	if t.IdemKey != "" {
		e.b.idem[models.IdemRef{Env: s.Env, Key: t.IdemKey}] = c
	}
	e.b.plan.Specs = append(e.b.plan.Specs, models.Spec{Env: s.Env, ID: t.ID, Input: t.Input, Payload: t.Payload, Trace: t.Trace, Parent: t.RedriveOf})
	for _, l := range t.Labels {
		l.Env, l.Task = s.Env, t.ID
		e.b.plan.Labels = append(e.b.plan.Labels, l)
	}
	p.lane.In.Add(e.now)
	e.counters["submitted"]++
	return c
}

// link writes the task's edges and counts them in its row. One that has already fired or was killed is never open. Who
// depends on a task of the body that was there before depends on the one that holds its key.
func (e *Engine) link(env int32, c *change, p placement, inside map[models.ID]*change, holders map[models.ID]*models.Task) {
	for j, d := range p.task.DependsOn {
		edge := models.Edge{Env: env, From: d.Task, To: c.row.ID, On: d.On}
		row := p.deps[j]
		if holder := holders[d.Task]; holder != nil {
			row, edge.From = holder, holder.ID
		}
		if source := inside[d.Task]; source != nil {
			source.row.Flags |= models.HasDependants
		} else if edge.State = d.On.After(row.State); edge.State == models.EdgeOpen {
			e.hasDependant(row)
		}
		switch edge.State {
		case models.EdgeOpen:
			c.row.Remaining++
		case models.EdgeKilled:
			c.row.Killed++
		}
		e.b.plan.Edges = append(e.b.plan.Edges, edge)
	}
}

// hasDependant notes on an existing task that its end concerns others.
func (e *Engine) hasDependant(row *models.Task) {
	if c := e.enlist(row); !c.row.Has(models.HasDependants) {
		c.row.Flags |= models.HasDependants
		if held := e.board.Held(c.row.ID); held != nil {
			held.Row.Flags = c.row.Flags
		}
		if c.row.State == models.DeadLetter || c.row.State.Final() {
			e.endEdges(c) // it ended earlier in this very batch
		}
	}
}

// enterNew gives a new task its first state: waiting for others, for its moment, or ready.
func (e *Engine) enterNew(c *change, t *NewTask) {
	e.event(c, "task.created")
	e.settleBirth(c, t.DelaySeconds, models.Seconds(int(t.ExpiresInSeconds)).Microseconds())
	e.bornCount(c)
}

// settleBirth decides where a task that just entered the world stands. The row is Pending without a place.
func (e *Engine) settleBirth(c *change, delaySeconds int32, expires int64) {
	if delaySeconds > 0 && c.row.Remaining == 0 {
		c.row.WakeAt = e.now.Add(models.Seconds(int(delaySeconds)))
	} else {
		c.row.DelaySeconds = delaySeconds
	}
	if expires > 0 {
		c.row.ExpiresAt = max(c.row.WakeAt, e.now) + models.Instant(expires)
	}
	switch {
	case c.row.Remaining > 0 || c.row.Killed > 0:
		c.row.State = models.Pending
	case c.row.WakeAt > e.now:
		c.row.State = models.Scheduled
	default:
		c.row.State, c.row.WakeAt = models.Ready, 0
		c.row.ReadyAt, c.row.AgeKey = e.now, models.AgeKeyOf(e.now, c.row.Priority)
	}
	e.place(c)
}

func (e *Engine) fillSubmitted(s *Submitted, placements []placement, changes []*change) {
	for i := range placements {
		if p := placements[i]; p.holder != nil {
			s.Tasks[i] = SubmittedTask{Row: *p.holder, Deduplicated: true}
			continue
		}
		s.Tasks[i].Row = changes[i].row
		if lane := placements[i].lane; lane.HighWater > 0 && lane.Depth > int64(lane.HighWater) && changes[i].row.State == models.Ready {
			s.HighWater = true
			s.EstimatedStart = max(s.EstimatedStart, e.estimateStart(&changes[i].row))
		}
	}
}

// dry says what would happen, changing nothing.
func (e *Engine) dry(s *Submit) *Submitted {
	out := &Submitted{}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		d := DryTask{Class: e.board.ClassNumber(t.Class)}
		refuse := func(err error) {
			if known, ok := err.(*models.Error); ok {
				d.Refusals = append(d.Refusals, *known)
			}
		}
		if err := e.takesSubmits(s.Env); err != nil {
			refuse(err)
		}
		lane, err := e.route(s.Env, t.Lane, t.Class.Type, location(s.Single, i))
		if err != nil {
			refuse(err)
		} else {
			d.Lane, d.Kind = lane.Name, lane.Kind.String()
			start := e.now
			if lane.Depth > 0 {
				start = e.estimateStart(&models.Task{Env: s.Env, Lane: lane.Number, Class: d.Class, AgeKey: models.AgeKeyOf(e.now, t.Priority)})
			}
			d.EstimatedStart = max(start, t.RunAt, e.now.Add(models.Seconds(int(t.DelaySeconds))))
		}
		if len(s.Tasks) > 0 && d.Class == 0 && e.board.LiveClasses(s.Env) >= MostClasses {
			refuse(e.tooManyClasses(s.Env))
		}
		if !slices.ContainsFunc(e.workers(), func(w *board.Worker) bool { return fit.Lack(&w.Worker, &t.Class) == "" }) {
			d.EstimatedStart = 0
		}
		out.Dry = append(out.Dry, d)
	}
	return out
}

// intern gives classes and lanes their numbers, for a replica that stages rows.
func (e *Engine) intern(in *Intern) (*Answer, error) {
	if err := e.takesSubmits(in.Env); err != nil {
		return nil, err
	}
	answer := &Answer{}
	lanes := make([]*board.Lane, len(in.Items))
	for i, item := range in.Items {
		lane, err := e.route(in.Env, item.Lane, item.Class.Type, "body")
		if err != nil {
			return nil, err
		}
		lanes[i] = lane
	}
	if len(in.Items) > MostClasses {
		return nil, e.tooManyClasses(in.Env)
	}
	for i, item := range in.Items {
		answer.Interned = append(answer.Interned, Interned{Class: e.internClass(item.Class), Lane: lanes[i].Number, Kind: lanes[i].Kind})
	}
	return answer, nil
}
