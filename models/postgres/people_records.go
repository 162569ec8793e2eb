package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// AuditRow is one recorded change.
type AuditRow struct {
	ID int64
	models.Audit
}

// AuditList asks for a tenant's record; Tenant 0 is the platform's own.
type AuditList struct {
	Tenant int32
	Action string
	Object string
	Actor  string
	RowList
}

// Audit lists what people and keys changed.
func (w *World) Audit(ctx context.Context, ask AuditList) ([]AuditRow, int64, error) {
	where := `tenant = $1 AND ($2 = '' OR action = $2) AND ($3 = '' OR object = $3) AND ($4 = '' OR actor_id = $4)`
	return page(ctx, w.db.Platform(), ask.RowList, readAudit, `audit`,
		`id, tenant, env, at, actor_kind, actor_id, ip, request_id, action, object, reason, before, after`, `id`, where,
		ask.Tenant, ask.Action, ask.Object, ask.Actor)
}

func readAudit(row pgx.CollectableRow) (a AuditRow, err error) {
	var before, after *string
	err = row.Scan(&a.ID, &a.Tenant, &a.Env, &a.At, &a.Actor.Kind, &a.Actor.ID, &a.Actor.IP, &a.Actor.RequestID, &a.Action,
		&a.Object, &a.Reason, &before, &after)
	if before != nil {
		a.Before = json.RawMessage(*before)
	}
	if after != nil {
		a.After = json.RawMessage(*after)
	}
	return a, err
}

// Replica is a process that serves.
type Replica struct {
	ID        models.ID
	Address   string
	PID       int32
	Version   string
	StartedAt time.Time
	LastSeen  time.Time
}

// SeeReplica notes that a replica lives, and forgets those silent for an hour.
func (p *People) SeeReplica(ctx context.Context, r Replica) error {
	return peopleError(p.as(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO replicas (id, address, pid, version, started_at, last_seen)
			VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp())
			ON CONFLICT (id) DO UPDATE SET last_seen = clock_timestamp(), address = excluded.address`,
			[16]byte(r.ID), r.Address, r.PID, r.Version)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM replicas WHERE last_seen < clock_timestamp() - interval '1 hour'`)
		return err
	}))
}

// ForgetReplica takes a replica that ends off the list.
func (p *People) ForgetReplica(ctx context.Context, id models.ID) error {
	return peopleError(p.as(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM replicas WHERE id = $1`, [16]byte(id))
		return err
	}))
}

// Replicas lists those seen within half a minute.
func (w *World) Replicas(ctx context.Context) (out []Replica, err error) {
	err = w.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id, address, pid, version, started_at, last_seen FROM replicas
			WHERE last_seen > clock_timestamp() - interval '30 seconds' ORDER BY started_at, id`)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Replica, err error) {
			err = row.Scan((*[16]byte)(&r.ID), &r.Address, &r.PID, &r.Version, &r.StartedAt, &r.LastSeen)
			return r, err
		})
		return err
	})
	return out, peopleError(err)
}

// BrainRow says who decides, for people: RenewedAgo by the database's clock, and the last batch.
type BrainRow struct {
	Epoch      int64
	Batch      int64
	Address    string
	RenewedAgo time.Duration // a year when nobody decides
	Newer      bool          // it knows a schema that this program does not
}

// Brain reads the row of the brain.
func (w *World) Brain(ctx context.Context) (b BrainRow, err error) {
	var micros, schema int64
	err = w.db.Platform().Read(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT epoch, address, coalesce((SELECT max(batch) FROM batches WHERE cell = 1), 0),
			CASE WHEN isfinite(renewed_at) THEN (extract(epoch FROM clock_timestamp() - renewed_at) * 1000000)::bigint
			ELSE 31536000000000 END, schema FROM brain WHERE cell = 1`).Scan(&b.Epoch, &b.Address, &b.Batch, &micros, &schema)
	})
	b.Newer = schema > w.db.known
	b.RenewedAgo = time.Duration(micros) * time.Microsecond
	return b, peopleError(err)
}

// CheckSecretKey seals a word at the first start and opens it at each later one: ErrSealed when the secret key is not
// the one this database was made with.
func (p *People) CheckSecretKey(ctx context.Context) error {
	const name, word = "check", "nightshift"
	var sealed []byte
	err := p.as(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO vault (name, sealed) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`,
			name, p.vault.Seal(name, []byte(word), nil))
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT sealed FROM vault WHERE name = $1`, name).Scan(&sealed)
	})
	if err != nil {
		return peopleError(err)
	}
	_, err = p.vault.Open(name, sealed, nil)
	return err
}
