package api

import (
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// LockView is a concurrency key that running tasks hold.
type LockView struct {
	Key     string       `json:"key"`
	Limit   int32        `json:"limit"`
	Holders []HolderView `json:"holders"`
	Waiters int64        `json:"waiters" doc:"ready tasks that wait for it"`
}

// HolderView is a task that holds a key.
type HolderView struct {
	TaskID string        `json:"task_id"`
	Since  handlers.Time `json:"since"`
}

func (w *Work) lockRoutes() []handlers.Route {
	return tenantRoutes(
		handlers.Route{Method: "GET", Path: "/v1/locks", Scopes: []string{handlers.TasksRead}, Handler: w.locks, Doc: handlers.Doc{
			Tag: "tasks", Summary: "List the concurrency keys that are held", Query: handlers.ByNameParams(), Replies: map[int]any{200: handlers.Page[LockView]{}},
		}},
		handlers.Route{Method: "DELETE", Path: "/v1/locks/:key", Scopes: []string{handlers.TasksWrite}, Handler: w.unlock, Doc: handlers.Doc{
			Tag: "tasks", Summary: "End the leases of a key's holders", Detail: "Their tasks are ready again; their tokens are lost.", Replies: map[int]any{204: nil},
		}},
	)
}

// locks asks the brain who holds which key. They are listed by name.
func (w *Work) locks(d *handlers.Deps, c *fiber.Ctx) error {
	name := func(lock engine.Lock) string { return lock.Key }
	return byName(d, c, func(after string, desc bool, most int) ([]engine.Lock, int64, error) {
		answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Look = &engine.Look{Locks: handlers.CallerOf(c).Env} })
		if err != nil {
			return nil, 0, err
		}
		list := answer.Looked.Locks
		return following(list, after, desc, most, name), int64(len(list)), nil
	}, viewLock, name)
}

func viewLock(lock engine.Lock) LockView {
	v := LockView{Key: lock.Key, Limit: lock.Limit, Waiters: lock.Waiters, Holders: []HolderView{}}
	for _, h := range lock.Holders {
		v.Holders = append(v.Holders, HolderView{h.Task.Text(models.TaskPrefix), handlers.Time(h.Since)})
	}
	return v
}

// unlock ends the leases of whoever holds a key.
func (w *Work) unlock(d *handlers.Deps, c *fiber.Ctx) error {
	key, err := handlers.PathParam(c, "key")
	if err != nil {
		return err
	}
	if _, err := ask(d, c, func(cmd *engine.Command) { cmd.Unlock = &engine.Unlock{Env: handlers.CallerOf(c).Env, Key: key} }); err != nil {
		return err
	}
	return handlers.NoContent(c)
}
