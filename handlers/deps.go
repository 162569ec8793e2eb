package handlers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"time"

	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
)

// Deps is what handlers work with. It is filled once, at the start, and never changed.
type Deps struct {
	Door      engine.Door
	DB        *postgres.DB
	People    *postgres.People
	World     *postgres.World
	Directory *Directory
	Schemas   *Schemas
	Vault     *postgres.Vault
	Signer    *Signer
	Keys      *Keys
	Sessions  *Sessions
	Clock     *Clock
	Follow    Follow // the events; nil until the front is built with a relay
	Inside    Inside // this replica's own API; nil until the front is built
	// TokenFailures counts wrong client secrets, Decisions how fast the brain decides.
	TokenFailures *Throttle
	Decisions     *Rate
	Replica       models.ID // this process
	Version       string
	Logger        *slog.Logger
}

// Settings are what Open needs.
type Settings struct {
	DB        *postgres.DB
	Door      engine.Door
	SecretKey []byte
	Version   string
	Logger    *slog.Logger

	BootstrapID, BootstrapSecret string // the first platform key; empty: none
	AdminEmail, AdminPassword    string // the first operator; empty: none
}

// Open fills the dependencies: clock, keys and signing keys are read, the bootstrap key and operator made. A secret key
// that does not open what is stored gives an error that is postgres.ErrSealed.
func Open(ctx context.Context, s Settings) (*Deps, error) {
	vault, err := postgres.NewVault(s.SecretKey)
	if err != nil {
		return nil, err
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Deps{
		Door: s.Door, DB: s.DB, People: postgres.NewPeople(s.DB, vault), World: postgres.NewWorld(s.DB), Vault: vault,
		Clock: NewClock(), TokenFailures: NewThrottle(20, 3*time.Second), Decisions: &Rate{}, Version: s.Version, Logger: s.Logger,
	}
	d.Schemas = NewSchemas(d.World)
	d.Directory, d.Keys, d.Signer = NewDirectory(d.World), NewKeys(d.People, d.Now), NewSigner(d.People, d.Now)
	if d.Sessions, err = NewSessions(d.People, d.Now); err != nil {
		return nil, err
	}
	if err := d.Clock.Set(ctx, d.People.Now); err != nil {
		return nil, err
	}
	if err := d.People.CheckSecretKey(ctx); err != nil {
		return nil, err
	}
	if err := d.Signer.Refresh(ctx); err != nil {
		return nil, err
	}
	d.Replica = d.Mint()
	return d, d.bootstrap(ctx, s)
}

func (d *Deps) bootstrap(ctx context.Context, s Settings) error {
	if s.BootstrapID != "" {
		sum := sha256.Sum256([]byte(s.BootstrapSecret))
		if err := d.People.BootstrapKey(ctx, s.BootstrapID, sum[:]); err != nil {
			return err
		}
	}
	if s.AdminEmail == "" {
		return nil
	}
	known, err := d.People.UserByEmail(ctx, s.AdminEmail)
	if err != nil {
		return err
	}
	if known != nil {
		if same, err := d.Sessions.compare(ctx, s.AdminPassword, known.PasswordHash); err == nil && same && known.Platform {
			return nil
		}
	}
	hash, err := HashPassword(s.AdminPassword)
	if err != nil {
		return err
	}
	return d.People.BootstrapOperator(ctx, d.Mint(), s.AdminEmail, hash)
}

// Now is the database's clock as this replica knows it.
func (d *Deps) Now() models.Instant { return d.Clock.Now() }

// Mint makes the id of something new. The microsecond takes the place of the first random bits, so that what one caller
// makes within a millisecond is listed in the order it was made.
func (d *Deps) Mint() models.ID {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // never fails: it ends the process instead
	now := d.Now()
	binary.BigEndian.PutUint16(entropy[:], uint16(now%1000*4096/1000))
	return models.NewID(now, entropy)
}

// Command begins a command of this caller; the handler sets its verb.
func (d *Deps) Command(caller *Caller) *engine.Command {
	return &engine.Command{ID: d.Mint(), Tenant: caller.Tenant, Actor: caller.Actor()}
}

// Scope is what row level security shows to this caller: its tenant and environment.
func (c *Caller) Scope() postgres.Scope {
	return postgres.Scope{Tenant: c.Tenant, Envs: []int32{c.Env}}
}

// answersKept is how long a call with an Idempotency-Key can be replayed.
const answersKept = 48 * time.Hour

// Tend keeps the clock and the signing keys fresh and shows this replica as living, until ctx ends.
func (d *Deps) Tend(ctx context.Context, replica postgres.Replica) {
	replica.ID, replica.Version = d.Replica, d.Version
	for turn := 0; ; turn++ {
		each := func(turns int, what string, do func(context.Context) error) {
			if turn%turns != 0 {
				return
			}
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if err := do(ctx); err != nil && ctx.Err() == nil {
				d.Logger.Warn("tending failed", "what", what, "error", err)
			}
		}
		each(1, "replica", func(ctx context.Context) error { return d.People.SeeReplica(ctx, replica) })
		each(2, "clock", func(ctx context.Context) error { return d.Clock.Set(ctx, d.People.Now) })
		each(6, "signing keys", d.Signer.Refresh)
		each(360, "sessions", func(ctx context.Context) error { _, err := d.People.SweepSessions(ctx); return err })
		each(6, "kept answers", func(ctx context.Context) error { _, err := d.People.SweepAnswers(ctx, answersKept); return err })
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			_ = d.People.ForgetReplica(ctx, d.Replica) // it is forgotten by silence too
			return
		case <-time.After(10 * time.Second):
		}
	}
}
