package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

const signingUse = "signing key"

// signingLock keeps two replicas from making a key at the same time.
const signingLock = 0x6e73_7369_676e

// SigningKeys reads the keys whose tokens are still good, newest first, with their private halves opened. Where the
// newest is older than the age, make is asked for a new one and the others retire after the overlap.
func (p *People) SigningKeys(ctx context.Context, age, overlap time.Duration, make func() *SigningKey) ([]SigningKey, error) {
	var keys []SigningKey
	err := p.as(ctx, func(tx pgx.Tx) (err error) {
		var young bool
		if keys, young, err = liveSigningKeys(ctx, tx, age); err != nil || young {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(signingLock)); err != nil {
			return err
		}
		if keys, young, err = liveSigningKeys(ctx, tx, age); err != nil || young {
			return err // another replica was quicker
		}
		fresh := make()
		if _, err := tx.Exec(ctx, `UPDATE signing_keys SET retire_at = clock_timestamp() + $1 WHERE retire_at IS NULL`, overlap); err != nil {
			return err
		}
		sealed := p.vault.Seal(signingUse, fresh.PrivateKey, []byte(fresh.KID))
		_, err = tx.Exec(ctx, `INSERT INTO signing_keys (kid, private_key, public_key, created_at) VALUES ($1, $2, $3, clock_timestamp())`,
			fresh.KID, sealed, fresh.PublicKey)
		if err != nil {
			return err
		}
		keys, _, err = liveSigningKeys(ctx, tx, age)
		return err
	})
	if err != nil {
		return nil, peopleError(err)
	}
	for i := range keys {
		if keys[i].PrivateKey, err = p.vault.Open(signingUse, keys[i].PrivateKey, []byte(keys[i].KID)); err != nil {
			return nil, models.Errorf(models.Internal, "the signing key %s can't be opened: %w", keys[i].KID, err)
		}
	}
	return keys, nil
}

// liveSigningKeys reads the keys and says whether the newest is younger than the age.
func liveSigningKeys(ctx context.Context, tx pgx.Tx, age time.Duration) (keys []SigningKey, young bool, err error) {
	rows, err := tx.Query(ctx, `SELECT kid, private_key, public_key, created_at, retire_at, created_at > clock_timestamp() - $1::interval
		FROM signing_keys WHERE retire_at IS NULL OR retire_at > clock_timestamp() ORDER BY created_at DESC, kid`, age)
	if err != nil {
		return nil, false, err
	}
	keys, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (SigningKey, error) {
		var k SigningKey
		var fresh bool
		err := row.Scan(&k.KID, &k.PrivateKey, &k.PublicKey, &k.CreatedAt, &k.RetireAt, &fresh)
		young = young || fresh
		return k, err
	})
	return keys, young, err
}
