package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Times of the writer's connection.
const (
	connectTimeout = 2 * time.Second
	joinTimeout    = 5 * time.Second // a new connection with all statements prepared
	brainTimeout   = 8 * time.Second // to become the brain: two waits for its row and the end of a session
	loadTimeout    = time.Minute
)

// writerSettings hold for the writer's connection. The planner's are against one trap: on a fresh table a partial index
// looks empty, and a scan of everything looks cheaper than 500 look-ups by key.
var writerSettings = map[string]string{
	"application_name":              "nightshift brain",
	"plan_cache_mode":               "force_generic_plan",
	"enable_seqscan":                "off",
	"enable_hashjoin":               "off",
	"enable_mergejoin":              "off",
	"enable_bitmapscan":             "off",
	"enable_material":               "off",
	"enable_memoize":                "off",
	"jit":                           "off",
	"lock_timeout":                  "1s",
	"statement_timeout":             "5s",
	"default_transaction_isolation": "read committed",
}

// hasty are the limits of a batch's statements. They hold once the connection is ready: a server counts all statements
// that one round trip prepares as one, and on a busy machine a hundred of them take longer than any may on its own.
func (db *DB) hasty() string {
	ms := db.options.BatchTimeout.Milliseconds()
	return fmt.Sprintf(`SET lock_timeout = %d; SET statement_timeout = %d`, ms*5/10, ms*7/10)
}

// link is the writer's one connection, direct and with every statement prepared.
type link struct {
	conn     *pgx.Conn
	prepared map[string]*pgconn.StatementDescription
	types    wireTypes
	started  int64 // when the session began, in microseconds: its pid alone may be used again
}

// dial connects as the login. Only become makes it the role that sees all.
func (db *DB) dial(ctx context.Context) (*link, error) {
	config, err := pgx.ParseConfig(db.options.DirectURL)
	if err != nil {
		return nil, errors.New("the direct address of the database is not a URL of PostgreSQL")
	}
	config.ConnectTimeout = db.options.ConnectTimeout
	Queued(&config.Config)
	maps.Copy(config.RuntimeParams, writerSettings)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, classify(err)
	}
	l := &link{conn: conn}
	const began = `SELECT (extract(epoch FROM backend_start) * 1000000)::bigint FROM pg_stat_activity WHERE pid = pg_backend_pid()`
	if err := conn.QueryRow(ctx, began).Scan(&l.started); err != nil { // only the login may see it, not the role it sets
		l.close()
		return nil, classify(err)
	}
	return l, nil
}

func (l *link) session() session { return session{int32(l.conn.PgConn().PID()), l.started} }

// become sets the role and prepares the statements.
func (l *link) become(ctx context.Context, role string) error {
	if _, err := l.conn.Exec(ctx, `SELECT set_config('role', $1, false)`, role); err != nil {
		return classify(err)
	}
	var err error
	if l.types, err = readWireTypes(ctx, l.conn); err != nil {
		return err
	}
	return l.prepare(ctx)
}

// wireTypes are the OIDs of the composite types, by name.
type wireTypes map[string]uint32

func readWireTypes(ctx context.Context, conn *pgx.Conn) (wireTypes, error) {
	types := wireTypes{}
	found, err := conn.Query(ctx, `SELECT typname, oid FROM pg_type WHERE typname LIKE '%\_wire' AND typnamespace = 'public'::regnamespace`)
	if err != nil {
		return nil, classify(err)
	}
	var name string
	var oid uint32
	_, err = pgx.ForEachRow(found, []any{&name, &oid}, func() error { types[name] = oid; return nil })
	return types, classify(err)
}

// prepare prepares every statement in one round trip.
func (l *link) prepare(ctx context.Context) error {
	pipe := l.conn.PgConn().StartPipeline(ctx)
	names := slices.Sorted(maps.Keys(statements))
	for _, name := range names {
		pipe.SendPrepare(name, statements[name], nil)
	}
	if err := pipe.Sync(); err != nil {
		return classify(err)
	}
	l.prepared = make(map[string]*pgconn.StatementDescription, len(names))
	for _, name := range names {
		got, err := pipe.GetResults()
		if err != nil {
			pipe.Close()
			return fmt.Errorf("preparing %s: %w", name, classify(err))
		}
		description, ok := got.(*pgconn.StatementDescription)
		if !ok {
			pipe.Close()
			return fmt.Errorf("preparing %s: got %T", name, got)
		}
		description.Name = name
		l.prepared[name] = description
	}
	return classify(pipe.Close())
}

// hasten sets the limits of a batch.
func (l *link) hasten(ctx context.Context, limits string) error {
	_, err := l.conn.Exec(ctx, limits)
	return classify(err)
}

func (l *link) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	l.conn.Close(ctx)
}

// call is one statement of a pipeline. read is called for each row it returns.
type call struct {
	name   string
	params [][]byte
	read   func(*columns)
}

var binaryFormat = []int16{1}

// flushBytes is how much gathers before it is sent on: the server works while the rest is still being written.
const flushBytes = 32 << 10

// pipeline sends statements without waiting for what they answer.
type pipeline struct {
	link    *link
	pipe    *pgconn.Pipeline
	sent    []call // without their parameters, which are copied
	waiting int    // bytes not yet sent on
	err     error
}

func (l *link) pipeline(ctx context.Context) *pipeline {
	p := &pipeline{link: l, pipe: l.conn.PgConn().StartPipeline(ctx)}
	if p.err = ctx.Err(); p.err == nil && l.conn.IsClosed() {
		p.err = errors.New("the connection is closed")
	}
	return p
}

// send queues a statement. After a failure it does nothing: finish tells.
func (p *pipeline) send(c call) {
	if p.err != nil {
		return
	}
	p.pipe.SendQueryStatement(p.link.prepared[c.name], c.params, binaryFormat, binaryFormat)
	p.sent = append(p.sent, call{name: c.name, read: c.read})
	for _, param := range c.params {
		p.waiting += len(param)
	}
	if p.waiting > flushBytes {
		p.err, p.waiting = p.pipe.Flush(), 0
	}
}

// finish waits for all answers. It says how many statements were answered before the first failure.
func (p *pipeline) finish() (answered int, err error) {
	if p.err == nil {
		p.err = p.pipe.Sync()
	}
	if p.err != nil {
		p.pipe.Close()
		return 0, p.err
	}
	for i := range p.sent {
		if err = answer(p.pipe, &p.sent[i]); err != nil {
			p.pipe.Close() // reads on to the end, so that the connection can be used again
			return i, fmt.Errorf("%s: %w", p.sent[i].name, err)
		}
	}
	return len(p.sent), p.pipe.Close()
}

// run sends all calls in one round trip and reads what they answer.
func (l *link) run(ctx context.Context, calls ...call) error {
	p := l.pipeline(ctx)
	for i := range calls {
		p.send(calls[i])
	}
	_, err := p.finish()
	return err
}

// answer reads the rows of one statement.
func answer(pipe *pgconn.Pipeline, c *call) error {
	got, err := pipe.GetResults()
	if err != nil {
		return err
	}
	rows, ok := got.(*pgconn.ResultReader)
	if !ok {
		return fmt.Errorf("got %T", got)
	}
	var row columns
	for rows.NextRow() {
		if c.read != nil {
			row = columns{values: rows.Values()}
			c.read(&row)
		}
	}
	tag, err := rows.Close()
	if err == nil && c.name == "commit" && tag.String() != "COMMIT" {
		err = &pgconn.PgError{Severity: "ERROR", Code: "25P02", Message: "the COMMIT did " + tag.String()}
	}
	return err
}
