package api

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// Work holds what the endpoints of tasks, workflows and dead letters need beside the common dependencies.
type Work struct {
	Reads *postgres.Reads
	// Follow gives a channel on which something arrives whenever an event of the task was committed, until ctx ends; nil:
	// waiters look for themselves.
	Follow func(ctx context.Context, env int32, task models.ID) <-chan struct{}

	db    *postgres.DB
	lanes sync.Map // number → laneName
}

// laneName is what never changes of a lane.
type laneName struct {
	name string
	kind models.KindName
}

// NewWork works on the database.
func NewWork(db *postgres.DB) *Work { return &Work{Reads: postgres.NewReads(db), db: db} }

// Routes are the endpoints of tasks, workflows and dead letters.
func (w *Work) Routes() []handlers.Route {
	return slices.Concat(w.taskRoutes(), w.childRoutes(), w.lockRoutes(), w.markRoutes(), w.rateRoutes(), w.usageRoutes(), w.messageRoutes(), w.workflowRoutes(), w.batchRoutes(), w.deadLetterRoutes())
}

func (w *Work) taskRoutes() []handlers.Route {
	read, write := []string{handlers.TasksRead}, []string{handlers.TasksWrite}
	return tenantRoutes(
		handlers.Route{Method: "POST", Path: "/v1/tasks", Scopes: write, Handler: w.submit, Doc: docSubmit},
		handlers.Route{Method: "POST", Path: "/v1/tasks/batch", Scopes: write, Handler: w.batch, MaxBody: handlers.BulkLimit, Bulk: true, Doc: docBatch},
		handlers.Route{Method: "GET", Path: "/v1/tasks", Scopes: read, Handler: w.list, Doc: docTasks},
		handlers.Route{Method: "GET", Path: "/v1/tasks/:id", Scopes: read, Handler: w.get, Doc: docTask},
		handlers.Route{Method: "GET", Path: "/v1/tasks/:id/attempts", Scopes: read, Handler: w.attempts, Doc: docAttempts},
		handlers.Route{Method: "GET", Path: "/v1/tasks/:id/wait", Scopes: read, Handler: w.wait, Long: true, Doc: docWait},
		handlers.Route{Method: "GET", Path: "/v1/tasks/:id/explain", Scopes: read, Handler: w.explain, Doc: docExplain},
		handlers.Route{Method: "POST", Path: "/v1/tasks/:id/cancel", Scopes: write, Handler: w.cancel, Doc: docCancel},
		handlers.Route{Method: "POST", Path: "/v1/tasks/:id/retry", Scopes: write, Handler: w.retry, Doc: docRetry},
		handlers.Route{Method: "PATCH", Path: "/v1/tasks/:id", Scopes: write, Handler: w.edit, Doc: docEdit},
		handlers.Route{Method: "POST", Path: "/v1/tasks/:id/approve", Scopes: write, Handler: w.approve, Doc: docApprove},
		handlers.Route{Method: "POST", Path: "/v1/tasks/:id/reject", Scopes: write, Handler: w.reject, Doc: docReject},
		handlers.Route{Method: "POST", Path: "/v1/tasks/:id/signal", Scopes: write, Handler: w.signal, Doc: docSignal},
		handlers.Route{Method: "POST", Path: "/v1/tasks/:id/quality", Scopes: write, Handler: w.judge, Doc: docJudge},
		handlers.Route{Method: "GET", Path: "/v1/tasks/:id/quality", Scopes: read, Handler: w.qualities, Doc: docQualities},
		handlers.Route{Method: "GET", Path: "/v1/tasks/:id/logs", Scopes: read, Handler: w.logs, Doc: docLogs},
		handlers.Route{Method: "GET", Path: "/v1/tasks/:id/trace", Scopes: read, Handler: w.trace, Doc: docTrace},
		handlers.Route{Method: "GET", Path: "/v1/tasks/:id/children", Scopes: read, Handler: w.children, Doc: docChildren},
		handlers.Route{Method: "GET", Path: "/v1/tasks/:id/lineage", Scopes: read, Handler: w.lineage, Doc: docLineage},
		handlers.Route{Method: "POST", Path: "/v1/tasks/:id/discard", Scopes: write, Handler: w.discard, Doc: docDiscard},
	)
}

// tenantRoutes marks routes that act on a tenant's things.
func tenantRoutes(routes ...handlers.Route) []handlers.Route {
	for i := range routes {
		routes[i].TenantNeeded = true
	}
	return routes
}

// brainPatience is how long a command may take before its caller hears that nobody answered.
const brainPatience = 10 * time.Second

// lookPatience is the same for live facts, in whose place saved ones are shown.
const lookPatience = 2 * time.Second

// ask sends a command of the caller to the brain.
func ask(d *handlers.Deps, c *fiber.Ctx, fill func(*engine.Command)) (*engine.Answer, error) {
	cmd := d.Command(handlers.CallerOf(c))
	fill(cmd)
	patience := brainPatience
	if cmd.Look != nil {
		patience = lookPatience
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), patience)
	defer cancel()
	answer, err := d.Door.Do(ctx, cmd)
	if models.CodeOf(err) == models.SchemaChanged { // what was checked by is read again
		d.Schemas.Forget(cmd.Env())
	}
	return answer, err
}

// taskID reads the id in the path.
func taskID(c *fiber.Ctx) (models.ID, error) { return handlers.PathID(c, "id", models.TaskPrefix) }

// show reads a task whole and answers it.
func (w *Work) show(d *handlers.Deps, c *fiber.Ctx, status int, id models.ID) error {
	v, err := w.view(d, c, id)
	if err != nil {
		return err
	}
	handlers.SetETag(c, int64(v.UpdatedAt))
	return handlers.Answer(c, status, v)
}

func (w *Work) view(d *handlers.Deps, c *fiber.Ctx, id models.ID) (*TaskView, error) {
	caller := handlers.CallerOf(c)
	row, err := w.Reads.Task(c.UserContext(), caller.Scope(), caller.Env, id, postgres.Whole)
	if err != nil {
		return nil, err
	}
	return viewTask(row, caller.Environment, postgres.Whole, liveOf(d, c, row)), nil
}

// liveOf asks the brain for what is newer than the rows; without a brain the saved values are shown.
func liveOf(d *handlers.Deps, c *fiber.Ctx, row *postgres.TaskRow) *engine.LiveTask {
	if waits := row.State == models.Ready && row.Gate == ""; !waits && !row.State.Live() {
		return nil
	}
	ref := models.TaskRef{Env: row.Env, ID: row.ID}
	answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Look = &engine.Look{Live: []models.TaskRef{ref}} })
	if err != nil || answer.Looked == nil {
		return nil
	}
	for i := range answer.Looked.Live {
		if live := &answer.Looked.Live[i]; live.Ref == ref {
			return live
		}
	}
	return nil
}

// laneOf finds a lane's name and kind by its number, which stand as long as it does.
func (w *Work) laneOf(d *handlers.Deps, c *fiber.Ctx, number int32) laneName {
	if known, ok := w.lanes.Load(number); ok {
		return known.(laneName)
	}
	caller := handlers.CallerOf(c)
	lanes, _, err := d.World.Lanes(c.UserContext(), caller.Scope(), caller.Env, postgres.RowList{Limit: 10_000})
	if err != nil {
		return laneName{} // the task is made; its name in the answer is not worth an error
	}
	for _, l := range lanes {
		w.lanes.Store(l.Number, laneName{l.Name, l.Kind})
	}
	known, _ := w.lanes.Load(number)
	found, _ := known.(laneName)
	return found
}

// reason reads the optional body of an action: {reason}.
type reason struct {
	Reason string `json:"reason" doc:"kept with the change"`
}

const maxReasonBytes = 1_000

func readReason(c *fiber.Ctx, needed bool) (string, error) {
	var in reason
	if err := handlers.BindOptional(c, &in); err != nil {
		return "", err
	}
	return in.Reason, checkReason(in.Reason, needed)
}

func checkReason(text string, needed bool) error {
	switch {
	case needed && strings.TrimSpace(text) == "":
		return models.Invalid("body.reason", "is required")
	case len(text) > maxReasonBytes:
		return models.Invalid("body.reason", "must have at most %d bytes", maxReasonBytes)
	}
	return nil
}
