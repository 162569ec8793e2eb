package api

import (
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

type whoamiAnswer struct {
	Sub          string   `json:"sub"`
	Kind         string   `json:"kind" enum:"key,user"`
	Tenant       *string  `json:"tenant" doc:"its id; null for a platform token that names none"`
	TenantSlug   *string  `json:"tenant_slug"`
	Environment  *string  `json:"environment" doc:"the one that calls act on"`
	Environments []string `json:"environments" doc:"those the token is good for"`
	Scopes       []string `json:"scopes"`
}

func whoami(d *handlers.Deps, c *fiber.Ctx) error {
	caller := handlers.CallerOf(c)
	out := whoamiAnswer{
		Sub: caller.Sub, Kind: caller.Kind, Tenant: handlers.Null(caller.TenantID.Text(models.TenantPrefix)), TenantSlug: handlers.Null(caller.TenantSlug),
		Environment: handlers.Null(caller.Environment), Environments: handlers.List(caller.Environments), Scopes: handlers.List(caller.Scopes),
	}
	if caller.Tenant != 0 && len(caller.Environments) == 0 { // good for all there are
		envs, _, err := d.World.Environments(c.UserContext(), caller.Tenant, postgres.RowList{Limit: handlers.PageMost})
		if err != nil {
			return err
		}
		for _, e := range envs {
			out.Environments = append(out.Environments, e.Name)
		}
	}
	return handlers.Answer(c, fiber.StatusOK, out)
}

func limits(_ *handlers.Deps, c *fiber.Ctx) error {
	return handlers.Answer(c, fiber.StatusOK, handlers.AllLimits())
}

type replica struct {
	ID         string        `json:"id"`
	Address    string        `json:"address"`
	PID        int32         `json:"pid"`
	Version    string        `json:"version"`
	Brain      bool          `json:"brain"`
	StartedAt  handlers.Time `json:"started_at"`
	LastSeenAt handlers.Time `json:"last_seen_at"`
}

type schedulerAnswer struct {
	Brain              *string   `json:"brain" doc:"address of the replica that decides; null while none does"`
	Epoch              int64     `json:"epoch"`
	Batch              int64     `json:"batch"`
	Replicas           []replica `json:"replicas"`
	Depth              *int64    `json:"depth" doc:"ready tasks; null while no brain answers"`
	DecisionsPerSecond *float64  `json:"decisions_per_second"`
	Sweeps             []sweep   `json:"sweeps" doc:"what looks after the rows, and what it found"`
}

type sweep struct {
	Name         string        `json:"name"`
	EverySeconds int32         `json:"every_seconds"`
	LastRunAt    handlers.Time `json:"last_run_at"`
	Found        int64         `json:"found" doc:"in the last run"`
	Total        int64         `json:"total" doc:"ever"`
}

// brainSilence is how long a brain may go unrenewed and still be called one.
const brainSilence = 10 * time.Second

func schedulerState(d *handlers.Deps, c *fiber.Ctx) error {
	brain, err := d.World.Brain(c.UserContext())
	if err != nil {
		return err
	}
	replicas, err := d.World.Replicas(c.UserContext())
	if err != nil {
		return err
	}
	out := schedulerAnswer{Epoch: brain.Epoch, Batch: brain.Batch, Replicas: []replica{}}
	decides := brain.Epoch > 0 && brain.RenewedAgo < brainSilence
	if decides {
		out.Brain = &brain.Address
	}
	for _, r := range replicas {
		out.Replicas = append(out.Replicas, replica{
			ID: r.ID.Text("rep"), Address: r.Address, PID: r.PID, Version: r.Version, Brain: decides && r.Address == brain.Address,
			StartedAt: handlers.Time(models.InstantOf(r.StartedAt)), LastSeenAt: handlers.Time(models.InstantOf(r.LastSeen)),
		})
	}
	sweeps, err := postgres.NewReads(d.DB).Sweeps(c.UserContext())
	if err != nil {
		return err
	}
	out.Sweeps = []sweep{}
	for _, s := range sweeps {
		out.Sweeps = append(out.Sweeps, sweep{s.Name, s.EverySeconds, handlers.Time(s.LastRun), s.Found, s.Total})
	}
	cmd := d.Command(handlers.CallerOf(c))
	cmd.Look = &engine.Look{Stats: true}
	if answer, err := d.Door.Do(c.UserContext(), cmd); err == nil && answer.Looked.Stats != nil {
		depth, rate := int64(0), d.Decisions.Sample(time.Now(), answer.Looked.Stats.Decisions)
		for _, n := range answer.Looked.Stats.Ready { // any order: a sum
			depth += n
		}
		out.Depth, out.DecisionsPerSecond = &depth, &rate
	}
	return handlers.Answer(c, fiber.StatusOK, out)
}

type auditActor struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

type auditRow struct {
	ID        int64           `json:"id"`
	At        handlers.Time   `json:"at"`
	Actor     auditActor      `json:"actor"`
	Action    string          `json:"action"`
	Object    string          `json:"object"`
	Before    json.RawMessage `json:"before"`
	After     json.RawMessage `json:"after"`
	Reason    *string         `json:"reason"`
	RequestID *string         `json:"request_id"`
	IP        *string         `json:"ip"`
}

func showAudit(a postgres.AuditRow) auditRow {
	return auditRow{
		ID: a.ID, At: handlers.Time(a.At), Actor: auditActor{a.Actor.Kind, a.Actor.ID}, Action: a.Action, Object: a.Object, Before: a.Before,
		After: a.After, Reason: handlers.Null(a.Reason), RequestID: handlers.Null(a.Actor.RequestID), IP: handlers.Null(a.Actor.IP),
	}
}

func listAudit(d *handlers.Deps, c *fiber.Ctx) error {
	q, rows, err := rowList(d, c, "=action", "=object", "=actor")
	if err != nil {
		return err
	}
	ask := postgres.AuditList{Tenant: handlers.CallerOf(c).Tenant, Action: q.One("action"), Object: q.One("object"), Actor: q.One("actor"), RowList: rows}
	found, total, err := d.World.Audit(c.UserContext(), ask)
	if err != nil {
		return err
	}
	return answerRows(c, q, found, total, showAudit, func(a postgres.AuditRow) int64 { return a.ID })
}
