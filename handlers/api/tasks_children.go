package api

import (
	"maps"
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/dag"
	"nightshift/scheduler/engine"
)

const leaseHeader = "Nightshift-Lease"

// childRoutes are those of a running task that spawns.
func (w *Work) childRoutes() []handlers.Route {
	return []handlers.Route{{
		Method: "POST", Path: "/v1/tasks/:id/children", Scopes: []string{handlers.WorkersRegister}, MaxBody: handlers.BulkLimit, Handler: w.spawn, Doc: docSpawn,
	}}
}

// ChildInput is one task that a running one spawns.
type ChildInput struct {
	TaskInput
	Key    string `json:"key" required:"true" doc:"unique below its parent: spawned again, it answers the first"` // without a priority it has its parent's
	Detach bool   `json:"detach" doc:"it is on its own: nobody waits for it, and a cancel of its parent does not reach it"`
}

// ChildrenInput is the body of a spawn.
type ChildrenInput struct {
	Tasks []ChildInput `json:"tasks" required:"true" doc:"depends_on names siblings by their keys, of the same body or spawned before; or any task by its id that does not wait for the parent"`
}

// ChildRow is a child as it stands.
type ChildRow struct {
	Key   string `json:"key"`
	ID    string `json:"id"`
	State string `json:"state"`
}

// ChildrenAnswer has a row a child, in order.
type ChildrenAnswer struct {
	Data []ChildRow `json:"data"`
}

var docSpawn = handlers.Doc{
	Tag: "workers", Summary: "Spawn children of a running task", Body: ChildrenInput{}, Headers: []handlers.Param{{Name: leaseHeader, Type: "string", About: "the lease_token of the claim"}},
	Detail:  "201 when one of them is new, 200 when all keys exist.",
	Replies: map[int]any{200: ChildrenAnswer{}, 201: ChildrenAnswer{}},
}

// spawn makes children of the task whose lease the caller holds.
func (w *Work) spawn(d *handlers.Deps, c *fiber.Ctx) error {
	ref, token, err := w.leaseOf(c)
	if err != nil {
		return err
	}
	tasks, err := w.readChildren(d, c, ref)
	if err != nil {
		return err
	}
	session, err := handlers.SentSession(c)
	if err != nil {
		return err
	}
	answer, err := ask(d, c, func(cmd *engine.Command) {
		cmd.Spawn = &engine.Spawn{Env: ref.Env, Task: ref.ID, Token: token, Session: session, Tasks: tasks}
	})
	if err != nil {
		return err
	}
	out := ChildrenAnswer{Data: make([]ChildRow, 0, len(tasks))}
	status := fiber.StatusOK
	for _, t := range answer.Submitted.Tasks {
		out.Data = append(out.Data, ChildRow{t.Row.Key, t.Row.ID.Text(models.TaskPrefix), t.Row.State.String()})
		if !t.Deduplicated {
			status = fiber.StatusCreated
		}
	}
	return handlers.Answer(c, status, out)
}

// leaseOf reads the task of the path and the lease of the header. One that opens nothing is a lost lease of a task that
// the caller can see, else the task is not there.
func (w *Work) leaseOf(c *fiber.Ctx) (ref models.TaskRef, token models.ID, err error) {
	id, err := taskID(c)
	if err != nil {
		return ref, token, err
	}
	wire := c.Get(leaseHeader)
	if wire == "" {
		return ref, token, models.Invalid("header."+leaseHeader, "is required: the lease_token of the claim")
	}
	caller := handlers.CallerOf(c)
	ref, token, ok := models.ParseWireToken(wire)
	if ok = ok && ref.ID == id; ok && !caller.Platform && caller.Env != ref.Env {
		owner, err := w.Reads.TenantOf(c.UserContext(), ref.Env)
		if err != nil {
			return ref, token, err
		}
		ok = owner != 0 && owner == caller.Tenant
	}
	if ok {
		return ref, token, nil
	}
	if !caller.Platform {
		if _, err := w.Reads.State(c.UserContext(), caller.Scope(), caller.Env, id); err != nil {
			return ref, token, err
		}
	}
	return ref, token, models.Errorf(models.LeaseLost, "the lease of %s has passed on: stop working on it", id.Text(models.TaskPrefix))
}

// readChildren reads the body: tasks with keys, which may wait for each other.
func (w *Work) readChildren(d *handlers.Deps, c *fiber.Ctx, parent models.TaskRef) ([]engine.NewTask, error) {
	text, err := handlers.ReadBody(c)
	if err != nil {
		return nil, err
	}
	f := &flowReader{tasks: reader(d, c), at: "body"}
	f.tasks.env, f.tasks.graph, f.tasks.children, f.tasks.lanes = parent.Env, dag.New(), true, nil
	f.tasks.priority = engine.ParentsPriority
	tasks, err := readList(f, text)
	if err == nil {
		err = w.siblings(c, f, parent, tasks)
	}
	if err == nil {
		err = f.sound()
	}
	if err == nil {
		err = w.endsSomeday(c, parent, tasks)
	}
	return tasks, err
}

// siblings finds what the children of a body wait for by keys that stand in none of its tasks: children that were spawned before.
func (w *Work) siblings(c *fiber.Ctx, f *flowReader, parent models.TaskRef, tasks []engine.NewTask) error {
	g := f.tasks.graph
	nodes := g.Undeclared()
	if len(nodes) == 0 {
		return nil
	}
	keys := make([]string, len(nodes))
	for i, n := range nodes {
		keys[i] = g.Key(n)
	}
	found, err := w.Reads.Siblings(c.UserContext(), parent, keys)
	if err != nil {
		return err
	}
	known := map[models.ID]models.ID{}
	for i, n := range nodes {
		if id, there := found[keys[i]]; there {
			g.Stands(n)
			known[f.tasks.idOf(n)] = id
		}
	}
	for i := range tasks {
		for j, d := range tasks[i].DependsOn {
			if id, there := known[d.Task]; there {
				tasks[i].DependsOn[j].Task = id
			}
		}
	}
	return nil
}

// endsSomeday refuses children whose parent would wait for them while they wait, however far, for their parent.
func (w *Work) endsSomeday(c *fiber.Ctx, parent models.TaskRef, tasks []engine.NewTask) error {
	at := make(map[models.ID]int, len(tasks))
	awaited, next := map[int]bool{}, []int{}
	for i := range tasks {
		if at[tasks[i].ID] = i; !tasks[i].Detach {
			awaited[i], next = true, append(next, i)
		}
	}
	outside := map[models.ID]int{} // with the first that waits for it
	for len(next) > 0 {
		i := next[0]
		next = next[1:]
		for _, d := range tasks[i].DependsOn {
			j, inside := at[d.Task]
			switch _, seen := outside[d.Task]; {
			case inside && !awaited[j]:
				awaited[j], next = true, append(next, j)
			case !inside && !seen:
				outside[d.Task] = i
			}
		}
	}
	ids := slices.SortedFunc(maps.Keys(outside), models.ID.Compare)
	if len(ids) == 0 {
		return nil
	}
	if waits, err := w.Reads.WaitsFor(c.UserContext(), ids, parent); err != nil || !waits {
		return err
	}
	for _, id := range ids {
		waits, err := w.Reads.WaitsFor(c.UserContext(), []models.ID{id}, parent)
		if err != nil {
			return err
		}
		if waits {
			p := &body.Problems{}
			p.Addf(body.Dot(body.At("body.tasks", outside[id]), "depends_on"), "%s waits for the task that spawns it, which would wait for this one: neither would ever end", id.Text(models.TaskPrefix))
			return p.Err(models.InvalidDAG)
		}
	}
	return nil
}

// readList reads a body that is a list of few tasks.
func readList(f *flowReader, text []byte) ([]engine.NewTask, error) {
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
	return tasks, fits(tasks)
}

// children lists what a task spawned.
func (w *Work) children(d *handlers.Deps, c *fiber.Ctx) error {
	q, err := handlers.ReadList(d, c, "state", "include")
	if err != nil {
		return err
	}
	id, err := taskID(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	if _, err := w.Reads.State(c.UserContext(), caller.Scope(), caller.Env, id); err != nil {
		return err
	}
	f, err := taskFilter(q)
	if err != nil {
		return err
	}
	f.Parents = []models.ID{id}
	rows, err := w.Reads.Tasks(c.UserContext(), caller.Scope(), caller.Env, f)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, rows, func(row postgres.TaskRow) *TaskView { return viewTask(&row, caller.Environment, f.Include, nil) },
		func(row postgres.TaskRow) any { return row.ID })
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

// LineageView is a task with its kin.
type LineageView struct {
	Nodes []RelativeView `json:"nodes"`
	Edges []RelationView `json:"edges"`
}

// RelativeView is one task of a lineage.
type RelativeView struct {
	ID    string  `json:"id"`
	Key   *string `json:"key"`
	Type  string  `json:"type"`
	State string  `json:"state"`
}

// RelationView says how two tasks belong together.
type RelationView struct {
	From string `json:"from"`
	To   string `json:"to"`
	Kind string `json:"kind" enum:"child,dependency,redrive"`
}

// lineage shows whom a task comes from and what came of it.
func (w *Work) lineage(_ *handlers.Deps, c *fiber.Ctx) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	nodes, edges, err := w.Reads.Lineage(c.UserContext(), caller.Scope(), caller.Env, id)
	if err != nil {
		return err
	}
	v := LineageView{Nodes: []RelativeView{}, Edges: []RelationView{}}
	there := false
	for _, n := range nodes {
		there = there || n.ID == id
		v.Nodes = append(v.Nodes, RelativeView{n.ID.Text(models.TaskPrefix), handlers.Null(n.Key), n.Type, n.State.String()})
	}
	if !there {
		return models.Errorf(models.NotFound, "there is no %q here", id.Text(models.TaskPrefix))
	}
	for _, e := range edges {
		v.Edges = append(v.Edges, RelationView{e.From.Text(models.TaskPrefix), e.To.Text(models.TaskPrefix), e.Kind})
	}
	return handlers.Answer(c, fiber.StatusOK, v)
}
