package worker

import (
	"encoding/binary"
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// View is a worker as people see it.
type View struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	InstanceID   string            `json:"instance_id"`
	Version      *string           `json:"version"`
	State        string            `json:"state" enum:"active,draining,gone"`
	Shared       bool              `json:"shared" doc:"it serves every tenant"`
	Pool         string            `json:"pool"`
	TaskTypes    []string          `json:"task_types" doc:"empty: all"`
	Lanes        []string          `json:"lanes" doc:"empty: all"`
	Kinds        []string          `json:"kinds" doc:"empty: all"`
	Resources    ResourcesView     `json:"resources"`
	Slots        json.RawMessage   `json:"slots" doc:"a number, or a number a kind"`
	Models       []string          `json:"models" doc:"null: all"`
	Permissions  []string          `json:"permissions" doc:"null: all"`
	Labels       map[string]string `json:"labels"`
	LeaseSeconds int32             `json:"lease_seconds"`
	Leases       int32             `json:"leases" doc:"attempts it runs now"`
	InUse        InUseView         `json:"in_use"`
	Waiting      *bool             `json:"waiting" doc:"it waits for work; null: not known now"`
	Utilization  json.RawMessage   `json:"utilization"`
	LastSeenAt   handlers.Time     `json:"last_seen_at"`
	CreatedAt    handlers.Time     `json:"created_at"`
	UpdatedAt    handlers.Time     `json:"updated_at"`
}

// ResourcesView is what a worker has to give.
type ResourcesView struct {
	CPU      float64          `json:"cpu"`
	MemoryMB int64            `json:"memory_mb"`
	DiskMB   int64            `json:"disk_mb"`
	GPUs     []models.GPUCard `json:"gpus"`
}

// InUseView is what its leases take; null where no brain answers.
type InUseView struct {
	CPU      *float64 `json:"cpu"`
	MemoryMB *int64   `json:"memory_mb"`
	VRAMMB   []int64  `json:"vram_mb" doc:"a card"`
}

func viewWorker(w *models.Worker, live *engine.WorkerStats) View {
	v := View{
		ID: w.ID.Text(models.WorkerPrefix), Name: w.Name, InstanceID: w.Instance, Version: handlers.Null(w.Version), State: w.State.String(),
		Shared: w.Tenant == 0, Pool: w.Pool, TaskTypes: handlers.List(w.TaskTypes), Lanes: handlers.List(w.Lanes), Kinds: []string{},
		Resources: ResourcesView{float64(w.CPUMilli) / 1000, w.MemoryMB, w.DiskMB, handlers.List(w.GPUs)}, Models: handlers.List(w.Models),
		Permissions: handlers.List(w.Permissions), Labels: w.Labels, LeaseSeconds: w.LeaseSeconds, Utilization: w.Utilization,
		LastSeenAt: handlers.Time(w.LastSeen), CreatedAt: handlers.Time(w.CreatedAt), UpdatedAt: handlers.Time(w.UpdatedAt),
	}
	if w.AnyModel {
		v.Models = nil
	}
	if w.AnyPermit {
		v.Permissions = nil
	}
	for _, k := range w.Kinds {
		v.Kinds = append(v.Kinds, k.String())
	}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	if len(v.Utilization) == 0 {
		v.Utilization = json.RawMessage("null")
	}
	var slots any = w.Slots
	if len(w.KindSlots) > 0 { // read again, none is an empty map
		slots = w.KindSlots
	}
	v.Slots, _ = json.Marshal(slots) // numbers always encode
	if live != nil {
		cpu := float64(live.CPUMilli) / 1000
		v.Leases, v.Waiting = live.Leases, &live.Parked
		v.InUse = InUseView{&cpu, &live.MemoryMB, handlers.List(live.VRAMMB)}
		v.LastSeenAt = max(v.LastSeenAt, handlers.Time(live.LastSeen))
	}
	return v
}

// stats asks the brain what the workers do now; without a brain their leases are counted from the rows.
func (f *Floor) stats(d *handlers.Deps, c *fiber.Ctx, rows []models.Worker) (map[models.ID]*engine.WorkerStats, map[models.ID]int32, error) {
	answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Look = &engine.Look{Workers: true} })
	if err == nil && answer.Looked != nil {
		live := map[models.ID]*engine.WorkerStats{}
		for i := range answer.Looked.Workers {
			live[answer.Looked.Workers[i].Worker] = &answer.Looked.Workers[i]
		}
		return live, nil, nil
	}
	ids := make([]models.ID, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	counts, err := f.reads.LeaseCounts(c.UserContext(), ids)
	return nil, counts, err
}

// sight is whose workers a caller sees: the platform all, unless it acts on a tenant.
func sight(c *fiber.Ctx) (tenant int32, all bool) {
	caller := handlers.CallerOf(c)
	return caller.Tenant, caller.Platform && caller.Tenant == 0
}

func (f *Floor) list(d *handlers.Deps, c *fiber.Ctx) error {
	q, err := handlers.ReadList(d, c, "state", "pool")
	if err != nil {
		return err
	}
	filter := &postgres.WorkerFilter{Desc: q.Desc, Limit: q.Limit + 1, Pools: q.Values["pool"]}
	filter.Tenant, filter.Platform = sight(c)
	p := &body.Problems{}
	for _, word := range q.Values["state"] {
		state, ok := parseState(word)
		if !ok {
			p.Addf("query.state", "%q is none of active, draining, gone", handlers.Shorten(word, 40))
		}
		filter.States = append(filter.States, state)
	}
	if err := p.Err(models.ValidationFailed); err != nil {
		return err
	}
	if _, err := q.After(&filter.After); err != nil {
		return err
	}
	rows, err := f.reads.Workers(c.UserContext(), filter)
	if err != nil {
		return err
	}
	live, counts, err := f.stats(d, c, rows)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, rows, func(w models.Worker) View {
		v := viewWorker(&w, live[w.ID])
		v.Leases = max(v.Leases, counts[w.ID])
		return v
	}, func(w models.Worker) any { return w.ID })
	if err != nil {
		return err
	}
	if q.Count {
		n, err := f.reads.CountWorkers(c.UserContext(), filter)
		if err != nil {
			return err
		}
		page.Total = &handlers.Total{Value: n, Relation: "eq"}
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}

func parseState(word string) (models.WorkerState, bool) {
	for s := models.WorkerActive; s <= models.WorkerGone; s++ {
		if s.String() == word {
			return s, true
		}
	}
	return 0, false
}

func (f *Floor) get(d *handlers.Deps, c *fiber.Ctx) error {
	id, err := handlers.PathID(c, "id", models.WorkerPrefix)
	if err != nil {
		return err
	}
	return f.show(d, c, id)
}

// version tells a worker from what it was before it registered again or was drained; what it says of itself while it works
// changes nothing.
func version(w *models.Worker) int64 {
	return int64(binary.BigEndian.Uint64(w.Session[8:])<<4>>2) | int64(w.State) // 60 random bits and the state
}

func (f *Floor) show(d *handlers.Deps, c *fiber.Ctx, id models.ID) error {
	tenant, all := sight(c)
	row, err := f.reads.Worker(c.UserContext(), tenant, all, id)
	if err != nil {
		return err
	}
	live, counts, err := f.stats(d, c, []models.Worker{row})
	if err != nil {
		return err
	}
	v := viewWorker(&row, live[id])
	v.Leases = max(v.Leases, counts[id])
	handlers.SetETag(c, version(&row))
	return handlers.Answer(c, fiber.StatusOK, v)
}

// drain asks a worker to finish what it has: it gets nothing more.
func (f *Floor) drain(d *handlers.Deps, c *fiber.Ctx) error {
	if err := handlers.BindOptional(c, &struct {
		Reason string `json:"reason"`
	}{}); err != nil {
		return err
	}
	id, err := f.retire(d, c, false)
	if err != nil {
		return err
	}
	return f.show(d, c, id)
}

// remove ends a worker; its leases go back at once.
func (f *Floor) remove(d *handlers.Deps, c *fiber.Ctx) error {
	if _, err := f.retire(d, c, true); err != nil {
		return err
	}
	return handlers.NoContent(c)
}

// retire is for the worker's own key and for admins of its tenant; those of the platform may end any.
func (f *Floor) retire(d *handlers.Deps, c *fiber.Ctx, gone bool) (models.ID, error) {
	id, err := handlers.PathID(c, "id", models.WorkerPrefix)
	if err != nil {
		return id, err
	}
	caller := handlers.CallerOf(c)
	who, err := f.ours(c, id)
	if err != nil {
		return id, err
	}
	if !caller.Holds(handlers.AdminWrite) && who.keyID != caller.KeyID {
		return id, models.Errorf(models.Forbidden, "a worker is drained or deleted by its own key or with %s", handlers.AdminWrite)
	}
	session, err := handlers.SentSession(c)
	if err != nil {
		return id, err
	}
	insisted := handlers.IfMatch(c)
	if insisted.Sent {
		row, err := f.reads.Worker(c.UserContext(), caller.Tenant, caller.Platform, id)
		if err == nil {
			err = insisted.Fits(version(&row))
		}
		if err != nil {
			return id, err
		}
		if session.IsZero() {
			session = row.Session // so that it is refused too when it registers meanwhile
		}
	}
	_, err = ask(d, c, func(cmd *engine.Command) { cmd.Retire = &engine.Retire{Worker: id, Session: session, Gone: gone} })
	return id, err
}
