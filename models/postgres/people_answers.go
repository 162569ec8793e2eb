package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// KeptAnswer is the first answer to a call with an Idempotency-Key; it is sealed at rest.
type KeptAnswer struct {
	Scope   string    `json:"-"`
	Key     string    `json:"-"`
	Request models.ID `json:"-"` // digest of the request
	// Status is 0 while the call is known and its answer is not.
	Status   int             `json:"-"`
	Location string          `json:"location,omitempty"`
	Body     json.RawMessage `json:"body"`
}

const answerUse = "answer"

// KeptAnswer finds an earlier call, nil when there was none.
func (p *People) KeptAnswer(ctx context.Context, scope, key string) (*KeptAnswer, error) {
	kept := &KeptAnswer{Scope: scope, Key: key}
	var sealed []byte
	err := p.as(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT request, coalesce(status, 0), body FROM once WHERE scope = $1 AND key = $2`, scope, key).
			Scan((*[16]byte)(&kept.Request), &kept.Status, &sealed)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, peopleError(err)
	}
	if sealed == nil {
		kept.Status = 0
		return kept, nil
	}
	text, err := p.vault.Open(answerUse, sealed, answerBound(kept))
	if err == nil {
		err = json.Unmarshal(text, kept)
	}
	if err != nil {
		return nil, models.Errorf(models.Internal, "a stored answer can't be opened: %w", err)
	}
	return kept, nil
}

// KeepAnswer stores an answer; the first one stands.
func (p *People) KeepAnswer(ctx context.Context, kept *KeptAnswer) error {
	row, err := p.answerRow(kept)
	if err != nil {
		return err
	}
	return peopleError(p.as(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO once (scope, key, request, at, status, body)
			VALUES ($1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $4, $5)
			ON CONFLICT (scope, key) DO UPDATE SET status = excluded.status, body = excluded.body
			WHERE once.body IS NULL AND once.request = excluded.request`, row...)
		return err
	}))
}

// claimAnswer stores the answer in the transaction of what it answers; state_conflict when the key is taken.
func (p *People) claimAnswer(ctx context.Context, tx pgx.Tx, kept *KeptAnswer) error {
	row, err := p.answerRow(kept)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `INSERT INTO once (scope, key, request, at, status, body)
		VALUES ($1, $2, $3, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $4, $5)
		ON CONFLICT (scope, key) DO NOTHING`, row...)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrKeyTaken
	}
	return err
}

// ErrKeyTaken says that another call with the same Idempotency-Key was quicker; nothing was written.
var ErrKeyTaken = errors.New("the Idempotency-Key is taken")

func (p *People) answerRow(kept *KeptAnswer) ([]any, error) {
	text, err := json.Marshal(kept)
	if err != nil {
		return nil, models.Errorf(models.Internal, "an answer can't be written: %w", err)
	}
	sealed := p.vault.Seal(answerUse, text, answerBound(kept))
	return []any{kept.Scope, kept.Key, [16]byte(kept.Request), kept.Status, sealed}, nil
}

func answerBound(kept *KeptAnswer) []byte { return []byte(kept.Scope + "\x00" + kept.Key) }

// SweepAnswers forgets calls older than an age, some thousands at a time, and says how many there were.
func (p *People) SweepAnswers(ctx context.Context, age time.Duration) (n int64, err error) {
	err = p.as(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM once WHERE (scope, key) IN (SELECT scope, key FROM once
			WHERE at < (extract(epoch FROM clock_timestamp() - $1::interval) * 1000000)::bigint ORDER BY at LIMIT 5000)`, age)
		n = tag.RowsAffected()
		return err
	})
	return n, peopleError(err)
}
