package engine

import (
	"encoding/json"
	"fmt"
	"strings"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/budget"
)

// place of a new task: resolved before anything is written.
type placement struct {
	task   *NewTask
	lane   *board.Lane
	class  int32 // 0: new
	choice *models.Choice
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
	flow, err := e.flowFor(s, answer.Submitted)
	if err != nil {
		return nil, err
	}
	changes := make([]*change, len(placements))
	inside, holders := map[models.ID]*change{}, map[models.ID]*models.Task{}
	for i, p := range placements {
		if p.holder != nil {
			holders[p.task.ID] = p.holder
			continue
		}
		own, err := e.ownFlow(s.Env, p.task, flow)
		if err != nil {
			return nil, err
		}
		changes[i] = e.makeTask(s, p, own)
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
			e.downgraded(changes[i], p.choice)
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
	case t == nil || !e.openEnv(env):
		return models.Errorf(models.NotFound, "there is no such environment")
	case e.seals[env] > e.now:
		return models.Errorf(models.StateConflict, "the environment is being deleted: it takes no new work")
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
		} else if held := e.dedupeHolder(s.Env, t); held != nil {
			answer.Submitted.Tasks[i] = SubmittedTask{Row: *held, Deduplicated: true}
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
	inside := members(s)
	out := make([]placement, len(s.Tasks))
	classes := newClassCount(e, s.Env)
	keys := map[string]bool{}
	made := int64(0)
	for i := range s.Tasks {
		t := &s.Tasks[i]
		at := location(s.Single, i)
		p := placement{task: t}
		var err error
		if p.lane, err = e.route(s.Env, t.Lane, t.Class.Type, at); err != nil {
			return nil, err
		}
		late := SoftInTime(p.lane.Defaults, p.lane.Kind, t, at)
		Fill(p.lane.Defaults, t)
		if t.Model != nil || t.Class.Model != "" {
			p.choice = e.assign(s.Env, t, p.lane.Kind)
		}
		if i > 0 && alike(&t.Class, &s.Tasks[i-1].Class) {
			p.class = out[i-1].class // a body mostly asks for one thing
		} else {
			p.class = e.board.ClassNumber(t.Class)
			classes.asks(p.class, &t.Class)
		}
		if err = e.mayTake(s.Env, t, at); err != nil {
			return nil, err
		}
		if p.holder, err = e.holder(s, t, at, keys); err != nil {
			return nil, err
		}
		if p.holder == nil {
			if late != nil {
				return nil, late
			}
			if err = e.mayAfford(s.Env, &t.Class, p.class, budget.Said(t.CostMicro, t.Tokens), at); err != nil {
				return nil, err
			}
		}
		if p.deps, err = e.dependencies(s.Env, s.Into, t, at, inside); err != nil {
			return nil, err
		}
		if out[i] = p; p.holder == nil {
			made++
		}
	}
	if err := e.mayQueue(s.Env, made); err != nil {
		return nil, err
	}
	if err := classes.refusal(); err != nil {
		return nil, err
	}
	return out, nil
}

// members are the tasks of a body.
func members(s *Submit) map[models.ID]bool {
	inside := make(map[models.ID]bool, len(s.Tasks))
	for i := range s.Tasks {
		inside[s.Tasks[i].ID] = true
	}
	return inside
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

// alike says that two classes without lists surely are the same.
func alike(a, b *models.Class) bool {
	return len(a.Selector)+len(b.Selector)+len(a.Permissions)+len(b.Permissions) == 0 && a.Type == b.Type && a.Model == b.Model &&
		a.CPUMilli == b.CPUMilli && a.MemoryMB == b.MemoryMB && a.DiskMB == b.DiskMB && a.GPU == b.GPU && a.VRAMMB == b.VRAMMB && a.Tokens == b.Tokens && a.Hosted == b.Hosted && a.Chosen == b.Chosen
}

// internClass gives a class its number, a new one when nobody asked for the same before.
func (e *Engine) internClass(c models.Class) int32 {
	if n := e.board.ClassNumber(c); n != 0 {
		return n
	}
	e.numbers.class++
	c.Number = e.numbers.class
	e.board.PutClass(c)
	e.book.Knows(c.Number, c.Type, c.Model)
	e.b.plan.Classes = append(e.b.plan.Classes, c)
	return c.Number
}

// holder finds who holds the task's business key.
func (e *Engine) holder(s *Submit, t *NewTask, at string, keys map[string]bool) (*models.Task, error) {
	if t.IdemKey == "" {
		return e.deduped(s, t, at, keys)
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
		return e.deduped(s, t, at, keys)
	}
	if !s.InBatch {
		return nil, models.Invalid(at+".idempotency_key", "the key %q is held by %s", t.IdemKey, row.ID.Text(models.TaskPrefix))
	}
	return row, nil
}

func holdsKey(s models.State) bool { return !s.Final() || s == models.Succeeded }

func (e *Engine) dependencies(env int32, into models.ID, t *NewTask, at string, inside map[models.ID]bool) ([]*models.Task, error) {
	rows := make([]*models.Task, len(t.DependsOn))
	for j, d := range t.DependsOn {
		if inside[d.Task] {
			continue
		}
		row := e.peek(models.TaskRef{Env: env, ID: d.Task})
		if row == nil || row.State == models.Staged && (row.Workflow.IsZero() || row.Workflow != into) { // its own are known by keys once they have flipped
			return nil, models.Invalid(fmt.Sprintf("%s.depends_on[%d]", at, j), "there is no task %s", d.Task.Text(models.TaskPrefix))
		}
		rows[j] = row
	}
	return rows, nil
}

// foreseenMost is of how many tasks of a body it is said whether they will start in time: each asks the workers.
const foreseenMost = 16

func (e *Engine) fillSubmitted(s *Submitted, placements []placement, changes []*change) {
	foreseen := 0
	for i := range placements {
		if p := placements[i]; p.holder != nil {
			s.Tasks[i] = SubmittedTask{Row: *p.holder, Deduplicated: true}
			continue
		}
		row := &changes[i].row
		s.Tasks[i].Row, s.Tasks[i].Choice = *row, placements[i].choice
		if placements[i].lane.Defaults != nil {
			s.Tasks[i].Input = placements[i].task.Input
		}
		if t := placements[i].task; foreseen < foreseenMost && (t.Deadline > 0 || t.ExpiresInSeconds > 0) {
			foreseen++
			f := e.foresee(row, &t.Class)
			if row.State.Live() && row.Deadline == 0 { // its expiry went with its start
				in := true
				f.Feasible = &in
			}
			s.Tasks[i].Foresight = &f
		}
		if lane := placements[i].lane; lane.HighWater > 0 && lane.Depth > int64(lane.HighWater) && row.State == models.Ready {
			if !s.HighWater { // once: the tasks of a body stand side by side
				s.EstimatedStart = max(e.startOf(row, &placements[i].task.Class), e.now)
			}
			s.HighWater = true
		}
	}
}
