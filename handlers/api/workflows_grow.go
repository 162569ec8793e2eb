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
	Tasks []FlowTask `json:"tasks" required:"true" doc:"at most 1,000; depends_on may name tasks that are there"`
}

// grow adds tasks to a workflow that runs.
func (w *Work) grow(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
		return err
	}
	id, err := flowID(c)
	if err != nil {
		return err
	}
	text, err := handlers.ReadBody(c)
	if err != nil {
		return err
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		for try := 0; ; try++ {
			made, err := w.growOnce(d, c, id, text, once)
			if models.CodeOf(err) != models.Stale || try == 5 {
				return made, err
			}
		}
	})
}

// growOnce looks at the keys that are there and adds the tasks, unless somebody else has added some meanwhile.
func (w *Work) growOnce(d *handlers.Deps, c *fiber.Ctx, id models.ID, text []byte, once *engine.Once) (*handlers.Made, error) {
	caller := handlers.CallerOf(c)
	row, err := w.Reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, id)
	if err != nil {
		return nil, err
	}
	known, err := w.Reads.Members(c.UserContext(), caller.Scope(), caller.Env, id)
	if err != nil {
		return nil, err
	}
	f := &flowReader{tasks: reader(d, c)}
	_ = json.Unmarshal(row.Input, &f.input) // written by submit alone
	f.tasks.graph, f.tasks.lane, f.tasks.priority, f.known = dag.New(), f.input.Lane, row.Priority, len(known)
	for _, m := range known {
		f.tasks.graph.Declare(m.Key)
		f.tasks.ids = append(f.tasks.ids, m.ID)
	}
	tasks, err := readGrowth(f, text)
	if err != nil {
		return nil, err
	}
	answer, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Submit = &engine.Submit{Env: caller.Env, Tasks: tasks, Into: id, Grown: row.Grown, Once: once}
	})
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
}

func readGrowth(f *flowReader, text []byte) ([]engine.NewTask, error) {
	p := f.tasks.problem
	v, err := body.Open(text, "body", p)
	if err != nil {
		return nil, err
	}
	var tasks []engine.NewTask
	given := false
	v.Members(func(name string, m body.Value) {
		if name != "tasks" {
			m.Wrong("there is no such field")
			return
		}
		given = true
		n := m.Elements(func(i int, e body.Value) {
			if i < stageAbove {
				tasks = append(tasks, f.tasks.task(e))
			}
		})
		if n > stageAbove || n == 0 && m.IsArray() {
			m.Wrong("must have 1 to %d entries", stageAbove)
		}
	})
	if !given {
		p.Addf("body.tasks", "is required, with at least one task")
	}
	if err := f.tasks.err(); err != nil {
		return nil, err
	}
	return tasks, f.sound()
}

// RerunInput is the body of a rerun.
type RerunInput struct {
	From   string `json:"from" required:"true" doc:"the key of the task to begin with"`
	Reason string `json:"reason"`
}

// rerun makes a new workflow of a task and all behind it; what lies before is handed over as it ended.
func (w *Work) rerun(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.NoQuery(c); err != nil {
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
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) {
		caller := handlers.CallerOf(c)
		old, err := w.Reads.Workflow(c.UserContext(), caller.Scope(), caller.Env, id)
		if err != nil {
			return nil, err
		}
		rows, edges, before, err := w.behind(c, id, in.From)
		if err != nil {
			return nil, err
		}
		tasks, err := anew(d, caller, rows, edges)
		if err != nil {
			return nil, err
		}
		flow := &engine.NewWorkflow{ID: d.Mint(), Name: old.Name, Priority: old.Priority, Input: old.Input, Stops: old.Stops, Budget: old.Budget, RerunOf: id}
		answer, err := w.makeAnew(d, c, flow, tasks, before, once)
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

// makeAnew submits the tasks of a rerun; many are written to the side first, and then what lies before must have ended.
func (w *Work) makeAnew(d *handlers.Deps, c *fiber.Ctx, flow *engine.NewWorkflow, tasks []engine.NewTask, before map[models.ID]models.State, once *engine.Once) (*engine.Answer, error) {
	if len(tasks) <= stageAbove {
		return ask(d, c, func(cmd *engine.Command) {
			cmd.Submit = &engine.Submit{Env: handlers.CallerOf(c).Env, Tasks: tasks, Workflow: flow, Once: once}
		})
	}
	inside := make(map[models.ID]bool, len(tasks))
	for i := range tasks {
		inside[tasks[i].ID] = true
	}
	s := w.newStager(d, c, flow.ID)
	s.settled = map[models.ID]models.State{}
	for i := range tasks {
		for _, dep := range tasks[i].DependsOn {
			if inside[dep.Task] {
				continue
			}
			if state, known := before[dep.Task]; !known || dep.On.After(state) == models.EdgeOpen {
				return nil, models.Errorf(models.StateConflict, "%s lies before the rerun and has not ended: more than %d tasks are rerun only when it has", dep.Task.Text(models.TaskPrefix), stageAbove)
			}
			s.settled[dep.Task] = before[dep.Task]
		}
	}
	for first := 0; first < len(tasks); first += stageAbove {
		if err := s.part(tasks[first:min(first+stageAbove, len(tasks))], first); err != nil {
			return nil, err
		}
	}
	return s.flip(flow, once)
}

// behind reads the task of a key and all that wait for it, however far, in their order, with the edges between tasks of the
// workflow and into it, and what the others of the workflow ended as.
func (w *Work) behind(c *fiber.Ctx, flow models.ID, from string) ([]postgres.TaskRow, []models.Edge, map[models.ID]models.State, error) {
	caller := handlers.CallerOf(c)
	nodes, edges, _, err := w.Reads.Graph(c.UserContext(), caller.Scope(), caller.Env, flow, handlers.WorkflowMost)
	if err != nil {
		return nil, nil, nil, err
	}
	members, err := w.Reads.Members(c.UserContext(), caller.Scope(), caller.Env, flow)
	if err != nil {
		return nil, nil, nil, err
	}
	wanted := map[models.ID]bool{}
	for _, m := range members {
		if m.Key == from {
			wanted[m.ID] = true
		}
	}
	if len(wanted) == 0 {
		return nil, nil, nil, models.Invalid("body.from", "there is no task with the key %q", handlers.Shorten(from, 80))
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
	before := make(map[models.ID]models.State, len(nodes))
	for _, n := range nodes {
		if !wanted[n.ID] {
			before[n.ID] = n.EndState
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
			return nil, nil, nil, err
		}
		rows = append(rows, some...)
	}
	rows = slices.DeleteFunc(rows, func(r postgres.TaskRow) bool { return !of[r.ID] || !r.Parent.IsZero() })
	slices.SortFunc(rows, func(a, b postgres.TaskRow) int { return a.ID.Compare(b.ID) })
	return rows, edges, before, nil
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
