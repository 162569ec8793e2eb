package api

import (
	"encoding/json"
	"fmt"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/dag"
	"nightshift/scheduler/engine"
)

// FlowInput is what is kept of a submitted workflow beside its row.
type FlowInput struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Lane        string            `json:"lane,omitempty"`
	FinishFirst bool              `json:"finish_first,omitempty"`
	BatchSize   int               `json:"batch_size,omitempty"` // of a batch of items
	ScheduleID  string            `json:"schedule_id,omitempty"`
	RunID       string            `json:"run_id,omitempty"`
}

// flowReader reads the body of a workflow as it arrives.
type flowReader struct {
	tasks  *taskReader
	stager *stager
	id     models.ID
	name   string
	input  FlowInput
	at     string // where it stands in the body
	stops  bool   // on_failure: stop
	budget models.FlowBudget
	known  int     // tasks that stood in the graph before the body's
	grown  *growth // the workflow that the tasks are added to; nil: a new one

	pending []engine.NewTask // read and neither submitted nor staged
	open    []openTask       // those of pending that take what the workflow says
	read    int
	outside int    // the first task that waits for one outside the body; -1: none
	unnamed string // where the first task stands that names no lane; empty: all do
	dry     bool
	given   struct{ name, tasks bool }
}

// openTask names a task that gave no lane or no priority of its own.
type openTask struct {
	index          int
	lane, priority bool
}

func (w *Work) submitFlow(d *handlers.Deps, c *fiber.Ctx) error {
	minimal, dry, err := howMade(c)
	if err != nil {
		return err
	}
	f, err := w.readFlow(d, c, dry)
	if err != nil {
		return err
	}
	if dry {
		return w.dryFlow(d, c, f.pending, models.ID{}, f.read, overBudget(&f.budget, f.read))
	}
	return handlers.Create(d, c, func(once *engine.Once) (*handlers.Made, error) { return w.makeFlow(d, c, f, once, minimal) })
}

func (w *Work) readFlow(d *handlers.Deps, c *fiber.Ctx, dry bool) (*flowReader, error) {
	from, read, err := stream(c)
	if err != nil {
		return nil, err
	}
	f := &flowReader{tasks: reader(d, c), at: "body", id: d.Mint(), outside: -1, dry: dry}
	f.tasks.graph = dag.New()
	f.stager = w.newStager(d, c, f.id)
	f.stager.inside = f.inside()
	err = body.Stream(from, "body", "tasks", f.tasks.problem, f.member, f.task)
	read()
	if err != nil {
		return nil, err
	}
	f.close()
	if err := f.tasks.err(); err != nil {
		return nil, err
	}
	return f, f.sound()
}

// inside says whether a task is of the body, as far as it has been read.
func (f *flowReader) inside() func(models.ID) bool {
	own, seen := map[models.ID]bool{}, f.known
	return func(id models.ID) bool {
		for ; seen < len(f.tasks.ids); seen++ {
			own[f.tasks.ids[seen]] = true
		}
		return own[id]
	}
}

// member reads what stands beside the tasks.
func (f *flowReader) member(name string, v body.Value) error {
	switch name {
	case "name":
		f.given.name = true
		f.name = v.String(1, maxKeyBytes)
	case "budget":
		if !v.Null() {
			f.budget = readBudget(v)
		}
	case "finish_first":
		f.input.FinishFirst = !v.Null() && v.Bool()
	case "on_failure":
		f.stops = !v.Null() && v.OneOf("continue", "stop") == "stop"
	case "labels", "lane", "priority":
		if !v.Null() {
			f.shared(name, v)
		}
	default:
		v.Wrong("there is no such field")
	}
	return nil
}

// shared reads what tasks take from their workflow. It may follow the tasks as long as none has been written yet.
func (f *flowReader) shared(name string, v body.Value) {
	if name == "labels" {
		f.input.Labels = v.Words(handlers.LabelsMost, maxKeyBytes, maxKeyBytes)
		return
	}
	if f.stager != nil && len(f.stager.ids) > 0 { // a schedule's workflow is never staged
		v.Wrong("must stand before the tasks in a body of more than %d tasks", stageAbove)
		return
	}
	if name == "lane" {
		f.input.Lane = v.Name()
		f.tasks.lane = f.input.Lane
	} else {
		f.tasks.priority = int16(v.Int(0, 100))
	}
	for _, o := range f.open {
		if o.lane {
			f.pending[o.index].Lane = f.tasks.lane
		}
		if o.priority {
			f.pending[o.index].Priority = f.tasks.priority
		}
	}
}

func (f *flowReader) task(i int, v body.Value) error {
	f.given.tasks = true
	if f.known+i >= handlers.WorkflowMost {
		most := models.Invalid("body.tasks", "a workflow has at most %d tasks, this one would have more", handlers.WorkflowMost)
		if err := f.grown.keep(most); err != nil || i >= handlers.WorkflowMost {
			return most
		}
	}
	if f.tasks.problem.Full() {
		return f.tasks.problem.Err(models.ValidationFailed)
	}
	if len(f.pending) == stageAbove && !f.dry && !f.tasks.problem.Any() {
		if err := f.flush(); err != nil {
			return err
		}
	}
	t := f.tasks.draft(v)
	f.read = i + 1
	if f.tasks.problem.Any() {
		return nil // nothing of this body will be written any more
	}
	if f.dry && len(f.pending) == stageAbove {
		return nil // it was read for what may be wrong with it
	}
	if !t.given.lane || !t.given.priority {
		f.open = append(f.open, openTask{len(f.pending), !t.given.lane, !t.given.priority})
	}
	if t.outside && f.outside < 0 {
		f.outside = i
	}
	if !t.given.lane && f.unnamed == "" {
		f.unnamed = v.At
	}
	f.pending = append(f.pending, t.task)
	if f.grown != nil {
		f.grown.places[t.task.Key] = i
	}
	return nil
}

// flush writes what was read to the side.
func (f *flowReader) flush() error {
	f.enters()
	if f.tasks.problem.Any() || f.tasks.denied != nil || f.tasks.graph.Faulty() || f.grown.refuses(f.read) {
		f.pending, f.open = f.pending[:0], f.open[:0] // it is refused at the end, with all that is wrong
		return nil
	}
	first := f.read - len(f.pending)
	if err := f.grown.keep(f.stager.write(f.pending, first)); err != nil {
		return err
	}
	f.pending, f.open = f.pending[:0], f.open[:0]
	return nil
}

// enters judges the lane of tasks that name none, which is the workflow's: wherever that stands in the body.
func (f *flowReader) enters() {
	if f.unnamed != "" {
		f.tasks.enters(f.tasks.lane, f.unnamed)
	}
}

func (f *flowReader) close() {
	f.enters()
	p := f.tasks.problem
	if !f.given.name {
		p.Addf(body.Dot(f.at, "name"), "is required")
	}
	if !f.given.tasks {
		p.Addf(body.Dot(f.at, "tasks"), "is required, with at least one task")
	}
}

// mostRing is how many keys of a ring are named.
const mostRing = 20

// sound says whether the tasks wait for each other without a ring, by keys that stand once.
func (f *flowReader) sound() error {
	p := &body.Problems{}
	for _, fault := range f.tasks.graph.Check() {
		at := body.At(body.Dot(f.at, "tasks"), fault.Position-f.known)
		switch fault.Wrong {
		case dag.Double:
			p.Addf(body.Dot(at, "key"), "the key %q stands twice", fault.Keys[0])
		case dag.Unknown:
			p.Addf(body.Dot(at, "depends_on"), "there is no task with the key %q", fault.Keys[0])
		case dag.Cycle:
			keys, more := fault.Keys, ""
			if len(keys) > mostRing {
				keys, more = keys[:mostRing], fmt.Sprintf(" and %d more", len(keys)-mostRing)
			}
			p.Addf(body.Dot(at, "depends_on"), "these tasks wait for each other in a ring: %q%s", keys, more)
		}
	}
	return p.Err(models.InvalidDAG)
}

func (w *Work) makeFlow(d *handlers.Deps, c *fiber.Ctx, f *flowReader, once *engine.Once, minimal bool) (*handlers.Made, error) {
	input, err := json.Marshal(f.input)
	if err != nil {
		return nil, models.Errorf(models.Internal, "the workflow's input can't be written: %w", err)
	}
	flow := &engine.NewWorkflow{ID: f.id, Name: f.name, Priority: f.tasks.priority, Input: input, Stops: f.stops, Budget: f.budget}
	var answer *engine.Answer
	if len(f.stager.ids) > 0 || heavy(f.pending) {
		if err := f.flush(); err != nil {
			return nil, err
		}
		answer, err = f.stager.flip(flow, once)
	} else {
		lookAhead(f.pending)
		answer, err = ask(d, c, func(cmd *engine.Command) {
			cmd.Submit = &engine.Submit{Env: handlers.CallerOf(c).Env, Tasks: f.pending, Workflow: flow, Once: once}
		})
	}
	if err != nil {
		return nil, err
	}
	if answer.Replay {
		return w.flowBefore(d, c, answer.Made, minimal), nil
	}
	v := viewFlow(answer.Submitted.Workflow, nil, d.Now())
	v.foresee(answer.Submitted.Tasks)
	if !minimal {
		v.Tasks = map[string]string{}
		for n := range f.tasks.graph.Len() {
			v.Tasks[f.tasks.graph.Key(dag.Node(n))] = f.tasks.ids[n].Text(models.TaskPrefix)
		}
	}
	return &handlers.Made{Status: fiber.StatusCreated, Location: "/v1/workflows/" + v.ID, Body: v}, nil
}

// unknownMS stands for the run time of a task that names no estimate, where paths are compared.
const unknownMS = 1000

// lookAhead tells each task of a workflow how long the rest of its critical path is.
func lookAhead(tasks []engine.NewTask) {
	at := make(map[models.ID]dag.Node, len(tasks))
	weights := make([]int64, len(tasks))
	for i := range tasks {
		at[tasks[i].ID] = dag.Node(i)
		if weights[i] = tasks[i].EstimateMS; weights[i] == 0 {
			weights[i] = unknownMS
		}
	}
	var edges []dag.Edge
	for i := range tasks {
		for _, d := range tasks[i].DependsOn {
			if from, inside := at[d.Task]; inside {
				edges = append(edges, dag.Edge{From: from, To: dag.Node(i)})
			}
		}
	}
	for i, ms := range dag.Ahead(weights, edges) {
		tasks[i].AheadMS = ms
	}
}
