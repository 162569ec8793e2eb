package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

const modelColumns = `tenant, name, provider, task_types, input_micro, output_micro, cached_micro, context_tokens, quality::text, latency_ms, vram_mb,
	batch_discount, off_peak::text, fallbacks, max_concurrent, tokens_per_minute, enabled, created_at, updated_at, version`

func readModel(row pgx.CollectableRow) (m models.Model, err error) {
	var quality, peaks string
	err = row.Scan(&m.Tenant, &m.Name, &m.Provider, &m.TaskTypes, &m.InputMicro, &m.OutputMicro, &m.CachedMicro, &m.ContextTokens, &quality,
		&m.LatencyMS, &m.VRAMMB, &m.BatchDiscount, &peaks, &m.Fallbacks, &m.MaxConcurrent, &m.TokensPerMinute, &m.Enabled, &m.CreatedAt, &m.UpdatedAt, &m.Version)
	if err != nil {
		return m, err
	}
	err = errors.Join(json.Unmarshal([]byte(quality), &m.Quality), json.Unmarshal([]byte(peaks), &m.OffPeak))
	return m.Whole(), err
}

// Models lists the models that a tenant sees by name, those beyond one: the platform's, and in their place its own of the same
// names. Tenant 0 sees the platform's.
func (w *World) Models(ctx context.Context, tenant int32, after string, desc bool, limit int) (list []models.Model, total int64, err error) {
	beyond, order := ">", "ASC"
	if desc {
		beyond, order = "<", "DESC"
	}
	where, args := `tenant = ANY ($1)`, []any{[]int32{0, tenant}}
	if after != "" {
		where, args = where+` AND name COLLATE "C" `+beyond+` $2`, append(args, after)
	}
	err = w.db.For(Scope{Tenant: tenant}).Read(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, `SELECT count(DISTINCT name) FROM models WHERE tenant = ANY ($1)`, args[0]).Scan(&total); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT DISTINCT ON (name COLLATE "C") `+modelColumns+` FROM models WHERE `+where+`
			ORDER BY name COLLATE "C" `+order+`, tenant DESC LIMIT `+strconv.Itoa(limit), args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, readModel)
		return err
	})
	return list, total, peopleError(err)
}

// Model is the one that a tenant sees under a name: its own, else the platform's; not_found when there is neither.
func (w *World) Model(ctx context.Context, tenant int32, name string) (models.Model, error) {
	return one(ctx, w.db.For(Scope{Tenant: tenant}), "model", name, readModel,
		`SELECT `+modelColumns+` FROM models WHERE tenant = ANY ($1) AND name = $2 ORDER BY tenant DESC LIMIT 1`, []int32{0, tenant}, name)
}

// OwnModel is a tenant's own, or without a tenant the platform's; not_found when it has none.
func (w *World) OwnModel(ctx context.Context, tenant int32, name string) (models.Model, error) {
	return one(ctx, w.db.For(Scope{Tenant: tenant}), "model", name, readModel, `SELECT `+modelColumns+` FROM models WHERE tenant = $1 AND name = $2`, tenant, name)
}
