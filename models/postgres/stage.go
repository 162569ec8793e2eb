package postgres

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
)

// stageChunk is how many rows one statement of a staging writes.
const stageChunk = 1000

// Stage writes a part of a body too large for one command, in a transaction of its own through the pool: the writer's
// connection only flips it. COPY is no way in: PostgreSQL refuses it on tables with row level security.
func (w *Writer) Stage(ctx context.Context, body *models.StagedBody) error {
	return w.db.Stage(ctx, body)
}

// Stage is Writer.Stage for a replica that is not the brain.
func (db *DB) Stage(ctx context.Context, body *models.StagedBody) error {
	for i := range body.Tasks {
		if t := &body.Tasks[i]; t.State != models.Staged {
			return models.Errorf(models.BadData, "task %s is %s, not staged", t.ID.Text(models.TaskPrefix), t.State)
		}
	}
	return classify(db.Platform().Write(ctx, func(tx pgx.Tx) error {
		s := &body.Staging
		tag, err := tx.Exec(ctx, `INSERT INTO stagings (id, env, tasks, at, flipped) VALUES ($1, $2, $3, $4, false)
			ON CONFLICT (id) DO UPDATE SET tasks = stagings.tasks + EXCLUDED.tasks WHERE NOT stagings.flipped AND NOT stagings.dropped AND stagings.env = EXCLUDED.env`,
			[16]byte(s.ID), s.Env, int64(len(body.Tasks)), int64(s.At))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return models.Errorf(models.BadData, "staging %x takes nothing more", s.ID)
		}
		return stageRows(ctx, tx.Conn(), body)
	}))
}

func stageRows(ctx context.Context, conn *pgx.Conn, body *models.StagedBody) error {
	types, err := readWireTypes(ctx, conn)
	if err != nil {
		return err
	}
	var b buffers
	var failed error
	send := func(c call) {
		if failed == nil {
			failed = conn.PgConn().ExecParams(ctx, statements[c.name], c.params, nil, binaryFormat, binaryFormat).Read().Err
		}
	}
	for part := range slices.Chunk(body.Tasks, stageChunk) {
		send(call{name: "insert_tasks", params: [][]byte{b.newTasks(types, part, body.Staging.ID)}})
	}
	for part := range slices.Chunk(body.Specs, stageChunk) {
		b.beside(send, types, part, nil, nil)
	}
	for part := range slices.Chunk(body.Labels, stageChunk) {
		b.beside(send, types, nil, part, nil)
	}
	for part := range slices.Chunk(body.Edges, stageChunk) {
		b.beside(send, types, nil, nil, part)
	}
	for part := range slices.Chunk(body.Items, stageChunk) {
		text, err := json.Marshal(part)
		if err != nil {
			return models.Errorf(models.BadData, "items: %w", err)
		}
		send(call{name: "save_items", params: [][]byte{text}})
	}
	for part := range slices.Chunk(body.Choices, stageChunk) {
		text, err := json.Marshal(part)
		if err != nil {
			return models.Errorf(models.BadData, "choices: %w", err)
		}
		send(call{name: "insert_choices", params: [][]byte{text}})
	}
	for part := range slices.Chunk(body.Made, stageChunk) {
		send(madeBy(part))
	}
	return failed
}
