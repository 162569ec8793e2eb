package storetest

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
	"nightshift/models/memory"
)

// compareSaid compares labels, watermarks, dedupe keys, signals, judgements, messages, and how far these were taken. Spans
// of traces are no part of a plan: the replica that receives them writes them, to PostgreSQL alone.
func (m *Mirror) compareSaid(ctx context.Context) {
	if d := m.saidDiffers(ctx); d != "" {
		m.t.Errorf("what stands beside tasks and runs differs at %s", d)
	}
}

func (m *Mirror) saidDiffers(ctx context.Context) string {
	got, err := m.said(ctx)
	if err != nil {
		m.t.Fatal(err)
	}
	return difference(m.Store.Said(), got)
}

// said reads from PostgreSQL what Store.Said tells of the reference store.
func (m *Mirror) said(ctx context.Context) (out memory.Said, err error) {
	err = m.db.Platform().Read(ctx, func(tx pgx.Tx) (err error) {
		out, err = read(ctx, tx)
		return err
	})
	return out, err
}

func read(ctx context.Context, tx pgx.Tx) (out memory.Said, err error) {
	err = func() error {
		var l models.Label
		if err := rows(ctx, tx, `SELECT env, task, key, value FROM labels`, &out.Labels, &l, &l.Env, uuid(&l.Task), &l.Key, &l.Value); err != nil {
			return err
		}
		var w models.Watermark
		if err := rows(ctx, tx, `SELECT env, name, value, version, at FROM watermarks`, &out.Watermarks, &w, &w.Env, &w.Name, (*column)(&w.Value), &w.Version, &w.At); err != nil {
			return err
		}
		var d models.Dedupe
		if err := rows(ctx, tx, `SELECT env, key, task, while, ttl_seconds FROM dedupes`, &out.Dedupes, &d, &d.Env, &d.Key, uuid(&d.Task), &d.While, &d.TTLSeconds); err != nil {
			return err
		}
		var s models.Signal
		if err := rows(ctx, tx, `SELECT id, env, task, name, data FROM signals`, &out.Signals, &s, uuid(&s.ID), &s.Env, uuid(&s.Task), &s.Name, (*column)(&s.Data)); err != nil {
			return err
		}
		var q models.Quality
		if err := rows(ctx, tx, `SELECT env, task, source, score, at FROM qualities`, &out.Qualities, &q, &q.Env, uuid(&q.Task), &q.Source, &q.Score, &q.At); err != nil {
			return err
		}
		var g models.Message
		if err := rows(ctx, tx, `SELECT env, source, name, seq, id, at, coalesce(key, ''), data, size, matched FROM messages`, &out.Messages, &g,
			&g.Env, &g.Source, &g.Name, &g.Seq, uuid(&g.ID), &g.At, &g.Key, (*column)(&g.Data), &g.Size, &g.Matched); err != nil {
			return err
		}
		var k models.FeedMark
		if err := rows(ctx, tx, `SELECT env, source, name, schedule, after, at FROM feed_marks`, &out.Marks, &k,
			&k.Env, &k.Source, &k.Name, uuid(&k.Schedule), &k.After, &k.At); err != nil {
			return err
		}
		var t models.Take
		return rows(ctx, tx, `SELECT env, run, n, source, name, first, last, count, bytes, coalesce(task, '00000000-0000-0000-0000-000000000000') FROM takes`, &out.Takes, &t,
			&t.Env, uuid(&t.Run), &t.N, &t.Source, &t.Name, &t.First, &t.Last, &t.Count, &t.Bytes, uuid(&t.Task))
	}()
	out.Sort()
	return out, err
}

// rows reads all rows of a table through one, into a list.
func rows[T any](ctx context.Context, tx pgx.Tx, query string, list *[]T, row *T, targets ...any) error {
	found, err := tx.Query(ctx, query)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(found, targets, func() error { *list = append(*list, *row); return nil })
	return err
}

func uuid(id *models.ID) *[16]byte { return (*[16]byte)(id) }

// column is a JSON text in a column of type text, each row's a copy of its own.
type column json.RawMessage

// Scan takes a text, or nothing.
func (w *column) Scan(value any) error {
	*w = nil
	if text, is := value.(string); is {
		*w = column(text)
	}
	return nil
}
