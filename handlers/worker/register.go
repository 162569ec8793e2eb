package worker

import (
	"math"
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
	"nightshift/workers/protocol"
)

const (
	maxText    = 255
	maxEntries = 1_000
	maxSlots   = 100_000
	maxMB      = 1 << 30
	maxCards   = 64
)

// registration is the body of POST /v1/workers while it is read.
type registration struct {
	worker models.Worker
	leases []models.ID
	p      *body.Problems
	gpu    struct {
		count, vram int64
		vramAt      body.Value
		listed      bool
	}
}

var registerMembers = map[string]func(*registration, body.Value){
	"name":        func(r *registration, v body.Value) { r.worker.Name = v.String(1, maxText) },
	"instance_id": func(r *registration, v body.Value) { r.worker.Instance = v.String(1, maxText) },
	"version":     func(r *registration, v body.Value) { r.worker.Version = v.String(0, maxText) },
	"task_types":  func(r *registration, v body.Value) { r.worker.TaskTypes = patterns(v) },
	"lanes":       func(r *registration, v body.Value) { r.worker.Lanes = nameList(v) },
	"kinds":       (*registration).kinds,
	"pool":        func(r *registration, v body.Value) { r.worker.Pool = v.Name() },
	"resources":   (*registration).resources,
	"slots":       (*registration).slots,
	"models":      func(r *registration, v body.Value) { r.worker.Models, r.worker.AnyModel = nameList(v), false },
	"permissions": func(r *registration, v body.Value) { r.worker.Permissions, r.worker.AnyPermit = nameList(v), false },
	"labels":      func(r *registration, v body.Value) { r.worker.Labels = v.Words(maxEntries, maxText, maxText) },
	"leases":      (*registration).held,
	"lease_seconds": func(r *registration, v body.Value) {
		r.worker.LeaseSeconds = int32(v.Int(protocol.MinLeaseSeconds, protocol.MaxLeaseSeconds))
	},
}

func readRegistration(c *fiber.Ctx) (*registration, error) {
	text, err := handlers.ReadBody(c)
	if err != nil {
		return nil, err
	}
	r := &registration{p: &body.Problems{}, worker: models.Worker{LeaseSeconds: protocol.DefaultLeaseSeconds, AnyModel: true, AnyPermit: true}}
	v, err := body.Open(text, "body", r.p)
	if err != nil {
		return nil, err
	}
	v.Members(func(name string, m body.Value) {
		read, known := registerMembers[name]
		switch {
		case !known:
			m.Wrong("there is no such field")
		case !m.Null():
			read(r, m)
		}
	})
	r.finish()
	return r, r.p.Err(models.ValidationFailed)
}

func (r *registration) finish() {
	w := &r.worker
	if w.Name == "" && !r.p.Any() {
		r.p.Addf("body.name", "is required")
	}
	if w.Instance == "" && !r.p.Any() {
		r.p.Addf("body.instance_id", "is required: it tells a process that comes again from another one")
	}
	if len(w.Lanes) > 0 && len(w.Kinds) > 0 {
		r.p.Addf("body.kinds", "stands beside lanes; give one of the two")
	}
	if w.Slots == 0 && w.KindSlots == nil {
		w.Slots = 1
	}
	if w.Pool == "" {
		w.Pool = "cpu"
		if len(w.GPUs) > 0 {
			w.Pool = "gpu"
		}
	}
}

// patterns are exact names or end in *.
func patterns(v body.Value) []string {
	list := []string{}
	n := v.Elements(func(i int, e body.Value) {
		if i >= maxEntries {
			return
		}
		text := e.String(1, maxText)
		bare := text
		if len(text) > 0 && text[len(text)-1] == '*' {
			bare = text[:len(text)-1]
		}
		if text != "" && bare != "" && !body.IsName(bare) {
			e.Wrong("must be a name, perhaps with * at its end")
		}
		list = append(list, text)
	})
	if n > maxEntries {
		v.Wrong("must have at most %d entries", maxEntries)
	}
	return list
}

func nameList(v body.Value) []string {
	list := []string{}
	n := v.Elements(func(i int, e body.Value) {
		if i < maxEntries {
			list = append(list, e.Name())
		}
	})
	if n > maxEntries {
		v.Wrong("must have at most %d entries", maxEntries)
	}
	return list
}

func (r *registration) kinds(v body.Value) {
	v.Elements(func(_ int, e body.Value) {
		if kind, ok := models.ParseKind(e.OneOf("realtime", "io", "compute", "batch")); ok && !slices.Contains(r.worker.Kinds, kind) {
			r.worker.Kinds = append(r.worker.Kinds, kind)
		}
	})
}

func (r *registration) slots(v body.Value) {
	if !v.IsObject() {
		r.worker.Slots = int32(v.Int(1, maxSlots))
		return
	}
	r.worker.KindSlots = map[string]int32{}
	sum := int32(0)
	v.Members(func(kind string, m body.Value) {
		if _, ok := models.ParseKind(kind); !ok {
			m.Wrong("there is no such kind")
			return
		}
		r.worker.KindSlots[kind] = int32(m.Int(0, maxSlots))
		sum += r.worker.KindSlots[kind]
	})
	if sum == 0 && !r.p.Any() {
		v.Wrong("must leave room for one task")
	}
}

func (r *registration) resources(v body.Value) {
	w := &r.worker
	v.Members(func(name string, m body.Value) {
		if m.Null() {
			return
		}
		switch name {
		case "cpu":
			w.CPUMilli = int64(math.Floor(m.Number(0, 10_000) * 1000))
		case "memory_mb":
			w.MemoryMB = m.Int(0, maxMB)
		case "disk_mb":
			w.DiskMB = m.Int(0, maxMB)
		case "gpus":
			r.gpu.listed = true
			r.cards(m)
		case "gpu":
			r.gpu.count = m.Int(0, maxCards)
		case "vram_mb":
			r.gpu.vram, r.gpu.vramAt = m.Int(0, maxMB), m
		default:
			m.Wrong("there is no such field")
		}
	})
	switch {
	case r.gpu.listed && (r.gpu.count > 0 || r.gpu.vram > 0):
		r.p.Addf(body.Dot(v.At, "gpus"), "stands beside gpu or vram_mb; give one of the two")
	case r.gpu.vram > 0 && r.gpu.count == 0:
		r.gpu.vramAt.Wrong("needs gpu, the number of cards that share it")
	}
	for range r.gpu.count {
		w.GPUs = append(w.GPUs, models.GPUCard{VRAMMB: r.gpu.vram / r.gpu.count})
	}
}

func (r *registration) cards(v body.Value) {
	n := v.Elements(func(i int, e body.Value) {
		if i >= maxCards {
			return
		}
		card := models.GPUCard{}
		e.Members(func(name string, m body.Value) {
			if name != "vram_mb" {
				m.Wrong("there is no such field")
				return
			}
			card.VRAMMB = m.Int(0, maxMB)
		})
		r.worker.GPUs = append(r.worker.GPUs, card)
	})
	if n > maxCards {
		v.Wrong("must have at most %d entries", maxCards)
	}
}

// held are the leases that the process still works on; what is no lease's token names nothing.
func (r *registration) held(v body.Value) {
	v.Elements(func(_ int, e body.Value) {
		if _, token, ok := models.ParseWireToken(e.String(1, maxText)); ok {
			r.leases = append(r.leases, token)
		}
	})
}

func (f *Floor) register(d *handlers.Deps, c *fiber.Ctx) error {
	r, err := readRegistration(c)
	if err != nil {
		return err
	}
	caller := handlers.CallerOf(c)
	w := &r.worker
	w.ID, w.Session, w.KeyID, w.Tenant, w.Env = d.Mint(), d.Mint(), caller.KeyID, caller.Tenant, envOf(c, caller)
	if err := within(caller, w); err != nil {
		return err
	}
	answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Register = &engine.Register{Worker: *w, Leases: r.leases} })
	if err != nil {
		return err
	}
	made := answer.Worker
	f.known.Store(made.ID, identity{made.Tenant, made.KeyID})
	id := made.ID.Text(models.WorkerPrefix)
	c.Set(fiber.HeaderLocation, "/v1/workers/"+id)
	return handlers.Answer(c, fiber.StatusCreated, protocol.RegisterAnswer{
		WorkerID: id, Session: made.Session.Text(handlers.SessionPrefix), HeartbeatSeconds: float64(made.LeaseSeconds) / 3,
		LeaseSeconds: int(made.LeaseSeconds), ServerTime: protocol.At(d.Now().Time()),
	})
}

// envOf is the environment a worker serves alone: one that its key or the request names; else all of its tenant's.
func envOf(c *fiber.Ctx, caller *handlers.Caller) int32 {
	if len(caller.Environments) > 0 || c.Get("Nightshift-Environment") != "" {
		return caller.Env
	}
	return 0
}

// within holds a worker to the lanes that its key may claim from, and to the permissions that it may act under.
func within(caller *handlers.Caller, w *models.Worker) error {
	if len(caller.Lanes) > 0 && len(w.Lanes) == 0 {
		w.Lanes = caller.Lanes
	}
	if len(caller.Permissions) > 0 && w.AnyPermit {
		w.Permissions, w.AnyPermit = caller.Permissions, false
	}
	for _, lane := range w.Lanes {
		if len(caller.Lanes) > 0 && !slices.Contains(caller.Lanes, lane) {
			return models.Errorf(models.Forbidden, "the key does not claim from the lane %s", lane)
		}
	}
	for _, permission := range w.Permissions {
		if len(caller.Permissions) > 0 && !slices.Contains(caller.Permissions, permission) {
			return models.Errorf(models.PermissionNotAllowed, "the key does not act under the permission %s", permission)
		}
	}
	return nil
}
