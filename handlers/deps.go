package handlers

import (
	"crypto/rand"
	"log/slog"

	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// Deps is what handlers work with. It is filled once, at the start, and never changed.
type Deps struct {
	Door   engine.Door
	DB     *postgres.DB
	People *postgres.People
	Vault  *postgres.Vault
	// Now is the database's clock as this replica knows it.
	Now    func() models.Instant
	Logger *slog.Logger
}

// Mint makes the id of something new.
func (d *Deps) Mint() models.ID {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // never fails: it ends the process instead
	return models.NewID(d.Now(), entropy)
}

// Command begins a command of this caller; the handler sets its verb.
func (d *Deps) Command(caller *Caller) *engine.Command {
	return &engine.Command{ID: d.Mint(), Tenant: caller.Tenant, Actor: caller.Actor()}
}
