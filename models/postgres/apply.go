package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"nightshift/models"
)

// buffers are the parameters of the hot statements, kept from batch to batch.
type buffers struct {
	births, moves, tasks, changes, specs, labels, edges, attempts, ends, events, messages rows
	packed                                                                                []byte
}

// Apply commits the plan whole or not at all, in one round trip, and tells what that set free.
func (w *Writer) Apply(ctx context.Context, p *models.Plan) (*models.Effects, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := lawful(p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout+w.db.options.BatchTimeout)
	defer cancel()
	l, err := w.connected(ctx, p.Epoch)
	if err != nil {
		return nil, err
	}
	batch, cancel := context.WithTimeout(ctx, w.db.options.BatchTimeout)
	defer cancel()
	effects := &models.Effects{}
	pipe := l.pipeline(batch)
	bad := w.batch(pipe, p, effects)
	if bad == nil {
		pipe.send(call{name: "commit"})
	}
	committing := bad == nil && pipe.err == nil
	answered, err := pipe.finish()
	switch {
	case bad == nil && (err == nil || committing && answered == len(pipe.sent)):
		return effects, nil
	case err == nil:
		err = bad
	}
	return nil, w.failed(ctx, l, committing, err)
}

// failed says what became of a batch that got no COMMIT answered. Without COMMIT on its way it did not happen.
func (w *Writer) failed(ctx context.Context, l *link, committing bool, err error) error {
	var pg *pgconn.PgError
	lost := !errors.As(err, &pg) && models.CodeOf(err) != models.BadData ||
		pg != nil && (strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P"))
	switch {
	case lost && committing:
		w.drop()
		w.unclear = true
		return models.Errorf(models.Unclear, "the commit got no answer: %w", err)
	case lost:
		w.drop()
		return models.Errorf(models.Rollback, "the connection was lost before the commit: %w", err)
	}
	// The failed statement left the COMMIT behind it undone.
	if _, rollback := l.conn.Exec(ctx, "ROLLBACK"); rollback != nil || outdated(err) {
		w.drop()
	}
	return classify(err)
}

// batch sends the statements of a plan in the order that is fixed: fence, configuration, inserts, changes, edges fired
// with their counters, then what is told and remembered. An error is of a value that can't be written at all.
func (w *Writer) batch(pipe *pipeline, p *models.Plan, effects *models.Effects) error {
	pipe.send(call{name: "begin"})
	pipe.send(call{name: "fence", params: [][]byte{int8Param(p.Epoch), int8Param(p.Batch), int8Param(int64(p.At))}})
	if err := configure(pipe, p); err != nil {
		return err
	}
	b, t := &w.buffers, pipe.link.types
	if len(p.Tasks) > 0 {
		b.insertTasks(pipe, p.Tasks)
	}
	if len(p.LabelsGone) > 0 {
		pipe.send(call{name: "delete_labels", params: [][]byte{b.labelRows(t, p.LabelsGone)}})
	}
	b.beside(pipe.send, t, p.Specs, p.Labels, p.Edges)
	if len(p.Linked) > 0 {
		b.links(pipe, p.Linked)
	}
	b.feeds(pipe, &p.Feeds)
	if err := unusual(pipe, p); err != nil {
		return err
	}
	if len(p.Changes) > 0 {
		b.changeTasks(pipe, p.Changes)
	}
	if len(p.Attempts) > 0 {
		rows, err := b.ended(t, p.Attempts)
		if err != nil {
			return err
		}
		pipe.send(call{name: "insert_attempts", params: [][]byte{rows}})
	}
	if len(p.Ends) > 0 {
		b.fire(pipe, p, effects)
	}
	return w.note(pipe, p)
}

// newTasks are rows to insert that carry their staging.
func (b *buffers) newTasks(t wireTypes, tasks []models.Task, staging models.ID) []byte {
	b.tasks.begin(t["task_wire_4"])
	for i := range tasks {
		b.tasks.task(&tasks[i], staging, 0)
	}
	return b.tasks.param()
}

// beside sends what is written once with new tasks.
func (b *buffers) beside(send func(call), t wireTypes, specs []models.Spec, labels []models.Label, edges []models.Edge) {
	if len(specs) > 0 {
		b.specs.begin(t["spec_wire"])
		for i := range specs {
			b.specs.spec(&specs[i])
		}
		send(call{name: "insert_specs", params: [][]byte{b.specs.param()}})
	}
	if len(labels) > 0 {
		send(call{name: "insert_labels", params: [][]byte{b.labelRows(t, labels)}})
	}
	if len(edges) > 0 {
		b.edges.begin(t["edge_wire"])
		for i := range edges {
			b.edges.edge(&edges[i])
		}
		send(call{name: "insert_edges", params: [][]byte{b.edges.param()}})
	}
}

// links sends what became of edges of rows that enter.
func (b *buffers) links(pipe *pipeline, edges []models.Edge) {
	b.edges.begin(pipe.link.types["edge_wire"])
	for i := range edges {
		b.edges.edge(&edges[i])
	}
	pipe.send(call{name: "link_edges", params: [][]byte{b.edges.param(), int8Param(int64(len(edges)))}})
}

func (b *buffers) labelRows(t wireTypes, labels []models.Label) []byte {
	b.labels.begin(t["label_wire"])
	for i := range labels {
		b.labels.label(&labels[i])
	}
	return b.labels.param()
}

func (b *buffers) ended(t wireTypes, attempts []models.Attempt) ([]byte, error) {
	b.attempts.begin(t["attempt_wire"])
	for i := range attempts {
		if err := b.attempts.attempt(&attempts[i]); err != nil {
			return nil, err
		}
	}
	return b.attempts.param(), nil
}

// fire moves the open edges of tasks that ended, all of them or as many as the plan wants moved.
func (b *buffers) fire(pipe *pipeline, p *models.Plan, effects *models.Effects) {
	ends := b.fired(pipe.link.types, p.Ends)
	freed := func(c *columns) { effects.Freed = append(effects.Freed, c.task()) }
	if p.MostEdges == 0 {
		pipe.send(call{name: "fire_edges", params: [][]byte{ends}, read: freed})
		return
	}
	pipe.send(call{name: "fire_some", params: [][]byte{ends, int8Param(int64(p.MostEdges))}, read: freed})
	pipe.send(call{name: "keep_unfired", params: [][]byte{ends}, read: func(c *columns) {
		effects.Unfired = append(effects.Unfired, c.end())
	}})
}

func (b *buffers) fired(t wireTypes, ends []models.End) []byte {
	b.ends.begin(t["end_wire"])
	for i := range ends {
		b.ends.end(&ends[i])
	}
	return b.ends.param()
}
