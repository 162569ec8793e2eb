package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"nightshift/models"
)

// APIKey reads a key by its client id, nil when there is none.
func (p *People) APIKey(ctx context.Context, id string) (*APIKey, error) {
	var keys []APIKey
	err := p.gorm(ctx, func(tx *gorm.DB) error {
		if err := tx.Where("id = ?", id).Limit(1).Find(&keys).Error; err != nil {
			return err
		}
		return closedOf(tx, keys)
	})
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	return &keys[0], nil
}

// closedOf finds which environments of keys were deleted since the keys were made: those they were made for, whatever is named so
// now. A clock says nothing of that: a replica's may be off, and the brain's stands still for as long as a batch takes.
func closedOf(tx *gorm.DB, keys []APIKey) error {
	var ids []string
	for i := range keys {
		if len(keys[i].Environments) > 0 {
			ids = append(ids, keys[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var found []struct{ ID, Name string }
	err := tx.Raw(`SELECT k.id, n.name FROM api_keys k, unnest(k.environments) n (name) WHERE k.id IN ? AND CASE WHEN k.envs IS NOT NULL
			THEN NOT EXISTS (SELECT FROM environments e WHERE e.env = ANY (k.envs) AND e.name = n.name AND e.closed_at = 0)
			ELSE EXISTS (SELECT FROM environments e WHERE e.tenant = k.tenant AND e.name = n.name
				AND e.closed_at > extract(epoch FROM k.created_at) * 1000000) END`, ids).Scan(&found).Error
	for _, f := range found {
		i := slices.IndexFunc(keys, func(k APIKey) bool { return k.ID == f.ID })
		keys[i].Closed = append(keys[i].Closed, f.Name)
	}
	return err
}

// KeyList asks for keys of one owner, by id.
type KeyList struct {
	Tenant int32 // 0: the platform's
	After  string
	Desc   bool
	Limit  int
}

func owner(tx *gorm.DB, tenant int32) *gorm.DB {
	if tenant == 0 {
		return tx.Where("tenant IS NULL")
	}
	return tx.Where("tenant = ?", tenant)
}

// APIKeys lists the keys that are not revoked, and counts them.
func (p *People) APIKeys(ctx context.Context, ask KeyList) (keys []APIKey, total int64, err error) {
	err = p.gorm(ctx, func(tx *gorm.DB) error {
		all := owner(tx.Model(&APIKey{}), ask.Tenant).Where("revoked_at IS NULL")
		if err := all.Session(&gorm.Session{}).Count(&total).Error; err != nil {
			return err
		}
		rows := all.Session(&gorm.Session{}).Order(clause.OrderByColumn{Column: clause.Column{Name: "id"}, Desc: ask.Desc}).Limit(ask.Limit)
		switch {
		case ask.After != "" && ask.Desc:
			rows = rows.Where("id < ?", ask.After)
		case ask.After != "":
			rows = rows.Where("id > ?", ask.After)
		}
		if err := rows.Find(&keys).Error; err != nil {
			return err
		}
		return closedOf(tx, keys)
	})
	return keys, total, err
}

// MakeAPIKey stores a key, its audit row and, for a call with an Idempotency-Key, the answer, in one transaction.
func (p *People) MakeAPIKey(ctx context.Context, key *APIKey, audit *models.Audit, kept *KeptAnswer) error {
	return peopleError(p.as(ctx, func(tx pgx.Tx) error {
		if kept != nil {
			if err := p.claimAnswer(ctx, tx, kept); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `INSERT INTO api_keys
			(id, tenant, name, secret_sha256, scopes, environments, lanes, permissions, created_by, expires_at, created_at, updated_at, envs)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, coalesce(array_agg(e.env), '{}')
			FROM environments e WHERE e.tenant = $2 AND e.name = ANY ($6) AND e.closed_at = 0`,
			key.ID, key.Tenant, key.Name, key.SecretSHA256, texts(key.Scopes), texts(key.Environments), texts(key.Lanes),
			texts(key.Permissions), key.CreatedBy, key.ExpiresAt, key.CreatedAt)
		if err != nil {
			return err
		}
		return writeAudit(ctx, tx, audit)
	}))
}

func texts(t Texts) []string {
	if t == nil {
		return []string{}
	}
	return t
}

// ReplaceSecret rotates a key: the secret before stays good until a moment. The key as it stands then is answered; nil
// when the owner has no such live key.
func (p *People) ReplaceSecret(ctx context.Context, tenant int32, id string, as *time.Time, secret []byte, until time.Time, audit *models.Audit, keep func(*APIKey) (*KeptAnswer, error)) (*APIKey, error) {
	var key *APIKey
	err := p.as(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `UPDATE api_keys SET previous_sha256 = secret_sha256, previous_until = $4, secret_sha256 = $3,
			updated_at = clock_timestamp() WHERE id = $1 AND coalesce(tenant, 0) = $2 AND revoked_at IS NULL
			AND ($5::timestamptz IS NULL OR updated_at = $5) RETURNING `+keyColumns, id, tenant, secret, until, as)
		if err != nil {
			return err
		}
		if key, err = pgx.CollectExactlyOneRow(rows, readKey); err != nil {
			return err
		}
		kept, err := keep(key)
		if err == nil && kept != nil {
			err = p.claimAnswer(ctx, tx, kept)
		}
		if err != nil {
			return err
		}
		return writeAudit(ctx, tx, audit)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return key, peopleError(err)
}

// RevokeAPIKey ends a key; false when the owner has no such live key, or none that was last changed at the moment given.
func (p *People) RevokeAPIKey(ctx context.Context, tenant int32, id string, as *time.Time, audit *models.Audit) (bool, error) {
	found := false
	err := p.as(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE api_keys SET revoked_at = clock_timestamp(), updated_at = clock_timestamp()
			WHERE id = $1 AND coalesce(tenant, 0) = $2 AND revoked_at IS NULL AND ($3::timestamptz IS NULL OR updated_at = $3)`, id, tenant, as)
		if found = err == nil && tag.RowsAffected() > 0; !found {
			return err
		}
		return writeAudit(ctx, tx, audit)
	})
	return found, peopleError(err)
}

// BootstrapKey stores the first platform key as the configuration names it; a key of that id keeps being revoked.
func (p *People) BootstrapKey(ctx context.Context, id string, secret []byte) error {
	return peopleError(p.as(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO api_keys (id, tenant, name, secret_sha256, scopes, created_by, created_at, updated_at)
			VALUES ($1, NULL, 'bootstrap', $2, '{platform}', 'configuration', clock_timestamp(), clock_timestamp())
			ON CONFLICT (id) DO UPDATE SET secret_sha256 = excluded.secret_sha256, scopes = excluded.scopes,
			previous_sha256 = NULL, updated_at = excluded.updated_at
			WHERE api_keys.tenant IS NULL AND api_keys.secret_sha256 <> excluded.secret_sha256`, id, secret)
		return err
	}))
}

// KeyUsed notes when a key was last used; it need not be exact.
func (p *People) KeyUsed(ctx context.Context, id string) error {
	return peopleError(p.as(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE api_keys SET last_used_at = clock_timestamp()
			WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')`, id)
		return err
	}))
}

const keyColumns = `id, tenant, name, secret_sha256, previous_sha256, previous_until, scopes, environments, lanes,
	permissions, created_by, expires_at, revoked_at, created_at, updated_at, last_used_at`

func readKey(row pgx.CollectableRow) (*APIKey, error) {
	var k APIKey
	err := row.Scan(&k.ID, &k.Tenant, &k.Name, &k.SecretSHA256, &k.PreviousSHA256, &k.PreviousUntil, (*[]string)(&k.Scopes),
		(*[]string)(&k.Environments), (*[]string)(&k.Lanes), (*[]string)(&k.Permissions), &k.CreatedBy, &k.ExpiresAt,
		&k.RevokedAt, &k.CreatedAt, &k.UpdatedAt, &k.LastUsedAt)
	return &k, err
}

// gorm runs plain reads and writes of people's tables.
func (p *People) gorm(ctx context.Context, do func(*gorm.DB) error) error {
	return peopleError(p.db.Platform().Gorm(ctx, do))
}

func writeAudit(ctx context.Context, tx pgx.Tx, a *models.Audit) error {
	_, err := tx.Exec(ctx, `INSERT INTO audit (tenant, env, at, actor_kind, actor_id, ip, request_id, action, object, reason, before, after)
		VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		a.Tenant, a.Env, a.Actor.Kind, a.Actor.ID, a.Actor.IP, a.Actor.RequestID, a.Action, a.Object, a.Reason, optional(a.Before), optional(a.After))
	return err
}

func optional(text json.RawMessage) *string {
	if len(text) == 0 {
		return nil
	}
	s := string(text)
	return &s
}
