package api

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/dag"
	"nightshift/scheduler/engine"
)

// GrowInput describes tasks that are added to a workflow.
type GrowInput struct {
	Tasks []FlowTask `json:"tasks" required:"true" doc:"depends_on may name tasks that are there; with them a workflow has at most 100,000"`
}

// growth is a workflow that a body adds tasks to. What speaks against that as things stand is kept until it is known that the
// call had not come before: then its first answer holds.
type growth struct {
	row     models.Workflow
	there   map[models.ID]bool // its tasks when it was looked at
	places  map[string]int     // of the body's tasks, by their keys
	refused error
}

// keep keeps why the body is refused, where it is for a workflow that is there.
func (g *growth) keep(err error) error {
	if g == nil || err == nil {
		return err
	}
	if g.refused == nil {
		g.refused = err
	}
	return nil
}

// refuses says, and keeps, that the workflow does not take so many tasks: nothing of the body is written from then on.
func (g *growth) refuses(tasks int) bool {
	if g == nil {
		return false
	}
	_ = g.keep(engine.Grows(&g.row, int64(tasks)))
	return g.refused != nil
}

// grow adds tasks to a workflow that runs.
func (w *Work) grow(d *handlers.Deps, c *fiber.Ctx) error {
	minimal, dry, err := howMade(c)
	if err != nil {
		return err
	}
	id, err := flowID(c)
	if err != nil {
		return err
	}
	f, err := w.readGrowth(d, c, id, dry)
	if err != nil {
		return err
	}
	if dry {
		return w.dryGrowth(d, c, f)
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) { return w.makeGrowth(d, c, f, once, minimal) })
}

// dryGrowth says what would happen to tasks that are to be added.
func (w *Work) dryGrowth(d *handlers.Deps, c *fiber.Ctx, f *flowReader) error {
	if f.grown.refused != nil {
		return f.grown.refused
	}
	return w.dryFlow(d, c, f.pending, f.grown.row.ID, f.read, engine.Grows(&f.grown.row, int64(f.read)))
}

// readGrowth reads the tasks that are to be added; many are written to the side as they come.
func (w *Work) readGrowth(d *handlers.Deps, c *fiber.Ctx, id models.ID, dry bool) (*flowReader, error) {
	row, members, err := w.lookAt(c, id)
	if err != nil {
		return nil, err
	}
	from, read, err := stream(c)
	if err != nil {
		return nil, err
	}
	f := &flowReader{tasks: reader(d, c), at: "body", id: id, outside: -1, dry: dry, known: len(members)}
	f.grown = &growth{row: row, there: make(map[models.ID]bool, len(members)), places: map[string]int{}}
	_ = json.Unmarshal(row.Input, &f.input) // written by submit alone
	f.tasks.graph, f.tasks.lane, f.tasks.priority = dag.New(), f.input.Lane, row.Priority
	f.stager = w.newStager(d, c, id)
	f.stager.staging.ID = d.Mint() // a workflow grows more than once
	f.stager.inside = f.inside()
	for _, m := range members {
		f.tasks.graph.Declare(m.Key)
		f.tasks.ids = append(f.tasks.ids, m.ID)
		f.grown.there[m.ID], f.stager.vouched[m.ID] = true, true
	}
	err = body.Stream(from, "body", "tasks", f.tasks.problem, func(_ string, v body.Value) error {
		v.Wrong("there is no such field")
		return nil
	}, f.task)
	read()
	if err != nil {
		return nil, err
	}
	f.enters()
	if f.read == 0 && !f.tasks.problem.Any() {
		f.tasks.problem.Addf("body.tasks", "is required, with at least one task")
	}
	if err := f.tasks.err(); err != nil {
		return nil, err
	}
	return f, f.grown.keep(f.sound())
}

// lookAt reads a workflow and the keys of its tasks.
func (w *Work) lookAt(c *fiber.Ctx, id models.ID) (models.Workflow, []postgres.Member, error) {
	caller := handlers.CallerOf(c)
	row, err := w.Reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, id) // before its keys: what comes between is noticed
	if err != nil {
		return row, nil, err
	}
	members, err := w.Reads.Members(c.UserContext(), caller.Scope(), caller.Env, id)
	return row, members, err
}

func (w *Work) makeGrowth(d *handlers.Deps, c *fiber.Ctx, f *flowReader, once *engine.Once, minimal bool) (*handlers.Made, error) {
	if len(f.stager.ids) > 0 || heavy(f.pending) {
		if err := f.flush(); err != nil {
			return nil, err
		}
	}
	answer, err := w.addGrowth(d, c, f, once)
	for tries, more := edits(0), true; more; {
		if more, err = tries.again(c.UserContext(), err); more {
			if err = w.lookAgain(c, f); err == nil {
				answer, err = w.addGrowth(d, c, f, once)
			}
		}
	}
	switch {
	case f.grown.refused != nil && (err != nil || !answer.Replay):
		return nil, f.grown.refused
	case err != nil:
		return nil, err
	case answer.Replay:
		return w.flowBefore(d, c, answer.Made, minimal), nil
	}
	v := viewFlow(answer.Submitted.Workflow, nil, d.Now())
	if !minimal {
		v.Tasks = map[string]string{}
		for n := f.known; n < f.tasks.graph.Len(); n++ {
			v.Tasks[f.tasks.graph.Key(dag.Node(n))] = f.tasks.ids[n].Text(models.TaskPrefix)
		}
	}
	return &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/workflows/" + v.ID, Body: v}, nil
}

// addGrowth adds what was read. Of a body that is refused the brain is asked all the same whether the call had come before:
// about a staging that there is not, for what was written of the body is never to be seen.
func (w *Work) addGrowth(d *handlers.Deps, c *fiber.Ctx, f *flowReader, once *engine.Once) (*engine.Answer, error) {
	if f.grown.refused != nil {
		f.stager.staging = models.Staging{ID: d.Mint()}
	}
	if len(f.stager.ids) > 0 || f.grown.refused != nil {
		return f.stager.extend(f.grown.row.Grown, once)
	}
	return ask(d, c, func(cmd *engine.Command) {
		cmd.Submit = &engine.Submit{Env: handlers.CallerOf(c).Env, Tasks: f.pending, Into: f.id, Grown: f.grown.row.Grown, Once: once}
	})
}

// lookAgain reads a workflow that somebody else has added tasks to meanwhile: their keys may be the body's.
func (w *Work) lookAgain(c *fiber.Ctx, f *flowReader) error {
	row, members, err := w.lookAt(c, f.id)
	if err != nil {
		return err
	}
	f.grown.row = row
	p := &body.Problems{}
	for _, m := range members {
		if place, taken := f.grown.places[m.Key]; taken && !f.grown.there[m.ID] {
			p.Addf(body.Dot(body.At("body.tasks", place), "key"), "the key %q stands twice", m.Key)
		}
	}
	return p.Err(models.InvalidDAG)
}

// RerunInput is the body of a rerun.
type RerunInput struct {
	From   string `json:"from" required:"true" doc:"the key of the task to begin with"`
	Reason string `json:"reason"`
}

// rerun makes a new workflow of a task and all behind it; what lies before is handed over as it ended.
func (w *Work) rerun(d *handlers.Deps, c *fiber.Ctx) error {
	dry, err := handlers.DryRun(c)
	if err != nil {
		return err
	}
	id, err := flowID(c)
	if err != nil {
		return err
	}
	var in RerunInput
	if err := handlers.Bind(c, &in); err != nil {
		return err
	}
	if err := checkReason(in.Reason, false); err != nil {
		return err
	}
	if dry {
		old, tasks, err := w.toRerun(d, c, id, in.From)
		if err != nil {
			return err
		}
		return w.dryFlow(d, c, tasks[:min(len(tasks), stageAbove)], models.ID{}, len(tasks), overBudget(&old.Budget, len(tasks)))
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		old, tasks, err := w.toRerun(d, c, id, in.From)
		if err != nil {
			return nil, err
		}
		flow := &engine.NewWorkflow{ID: d.Mint(), Name: old.Name, Priority: old.Priority, Input: old.Input, Stops: old.Stops, Budget: old.Budget, RerunOf: id, Schedule: madeBy(old.Input)}
		answer, err := w.makeAnew(d, c, flow, tasks, once)
		if err != nil {
			return nil, err
		}
		if answer.Replay {
			return w.flowBefore(d, c, answer.Made, false), nil
		}
		v := viewFlow(answer.Submitted.Workflow, nil, d.Now())
		v.Tasks = map[string]string{}
		for i := range tasks {
			v.Tasks[tasks[i].Key] = tasks[i].ID.Text(models.TaskPrefix)
		}
		return &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/workflows/" + v.ID, Body: v}, nil
	})
}

// madeBy is the schedule whose run made a workflow, zero when none did.
func madeBy(input json.RawMessage) models.ID {
	var in FlowInput
	if json.Unmarshal(input, &in) != nil {
		return models.ID{}
	}
	return scheduleOf(&Input{ScheduleID: in.ScheduleID})
}

// toRerun reads a workflow and makes tasks like the one of a key and all behind it.
func (w *Work) toRerun(d *handlers.Deps, c *fiber.Ctx, id models.ID, from string) (old models.Workflow, tasks []engine.NewTask, err error) {
	caller := handlers.CallerOf(c)
	if old, err = w.Reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, id); err != nil {
		return old, nil, err
	}
	rows, edges, err := w.behind(c, id, from)
	if err != nil {
		return old, nil, err
	}
	if tasks, err = anew(d, caller, rows, edges); err == nil {
		err = w.refed(c, rows, tasks)
	}
	return old, tasks, err
}

// makeAnew submits the tasks of a rerun; many are written to the side first.
func (w *Work) makeAnew(d *handlers.Deps, c *fiber.Ctx, flow *engine.NewWorkflow, tasks []engine.NewTask, once *engine.Once) (*engine.Answer, error) {
	if !heavy(tasks) {
		return ask(d, c, func(cmd *engine.Command) {
			cmd.Submit = &engine.Submit{Env: handlers.CallerOf(c).Env, Tasks: tasks, Workflow: flow, Once: once}
		})
	}
	inside := make(map[models.ID]bool, len(tasks))
	for i := range tasks {
		inside[tasks[i].ID] = true
	}
	s := w.newStager(d, c, flow.ID)
	s.inside = func(id models.ID) bool { return inside[id] }
	if err := s.write(tasks, 0); err != nil {
		return nil, err
	}
	return s.flip(flow, once)
}

// behind reads the task of a key and all that wait for it, however far, in their order, with the edges between tasks of the
// workflow and into it.
func (w *Work) behind(c *fiber.Ctx, flow models.ID, from string) ([]postgres.TaskRow, []models.Edge, error) {
	caller := handlers.CallerOf(c)
	nodes, edges, _, err := w.Reads.Graph(c.UserContext(), caller.Scope(), caller.Env, flow, handlers.WorkflowMost)
	if err != nil {
		return nil, nil, err
	}
	members, err := w.Reads.Members(c.UserContext(), caller.Scope(), caller.Env, flow)
	if err != nil {
		return nil, nil, err
	}
	wanted := map[models.ID]bool{}
	for _, m := range members {
		if m.Key == from {
			wanted[m.ID] = true
		}
	}
	if len(wanted) == 0 {
		return nil, nil, models.Invalid("body.from", "there is no task with the key %q", handlers.Shorten(from, 80))
	}
	next := map[models.ID][]models.ID{}
	edges = slices.DeleteFunc(edges, func(e models.Edge) bool { return e.On > models.OnFinished })
	for _, e := range edges {
		next[e.From] = append(next[e.From], e.To)
	}
	var ids []models.ID
	for id := range wanted {
		ids = append(ids, id)
	}
	for i := 0; i < len(ids); i++ {
		for _, to := range next[ids[i]] {
			if !wanted[to] {
				wanted[to] = true
				ids = append(ids, to)
			}
		}
	}
	of := make(map[models.ID]bool, len(nodes))
	for _, n := range nodes {
		of[n.ID] = true
	}
	var rows []postgres.TaskRow
	for part := range slices.Chunk(ids, stageAbove) {
		some, err := w.Reads.TasksByID(c.UserContext(), caller.Scope(), caller.Env, part, postgres.Include{Payload: true})
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, some...)
	}
	rows = slices.DeleteFunc(rows, func(r postgres.TaskRow) bool { return !of[r.ID] || !r.Parent.IsZero() })
	slices.SortFunc(rows, func(a, b postgres.TaskRow) int { return a.ID.Compare(b.ID) })
	return rows, edges, nil
}

// anew makes tasks like the given ones. They wait for each other as those did, and for what lay before as it ended.
func anew(d *handlers.Deps, caller *handlers.Caller, rows []postgres.TaskRow, edges []models.Edge) ([]engine.NewTask, error) {
	mint := inOrder(d)
	at := make(map[models.ID]int, len(rows))
	tasks := make([]engine.NewTask, len(rows))
	for i := range rows {
		if len(caller.Lanes) > 0 && !slices.Contains(caller.Lanes, rows[i].LaneName) {
			return nil, models.Errorf(models.Forbidden, "this key submits to %s only, not to %s", strings.Join(caller.Lanes, ", "), rows[i].LaneName)
		}
		in := ParseInput(rows[i].Input)
		at[rows[i].ID] = i
		tasks[i] = again(&rows[i], mint())
		kept := ParseInput(tasks[i].Input)
		kept.RunIf, kept.DelaySeconds = in.RunIf, in.DelaySeconds
		tasks[i].Input, tasks[i].DelaySeconds = kept.text(), in.DelaySeconds
		tasks[i].Key, tasks[i].HasCondition, tasks[i].RedriveOf = rows[i].Key, in.RunIf != "", models.ID{}
	}
	for _, e := range edges {
		i, inside := at[e.To]
		if !inside {
			continue
		}
		dep := engine.Dependency{Task: e.From, On: e.On}
		if j, inside := at[e.From]; inside {
			dep.Task = tasks[j].ID
		}
		tasks[i].DependsOn = append(tasks[i].DependsOn, dep)
	}
	return tasks, nil
}
