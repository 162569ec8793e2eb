package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	gormlogger "gorm.io/gorm/logger"

	"nightshift/migrations"
)

// Options say how to reach the database.
type Options struct {
	URL       string // the login of all replicas
	OwnerURL  string // who owns the schema and may create roles; empty: the login does
	DirectURL string // past any PgBouncer, for the writer's connection; empty: URL
	PoolSize  int    // connections of the pool; 0: 16
	// NoStatementCache is for a PgBouncer that knows nothing of prepared statements.
	NoStatementCache bool
	// ConnectTimeout is how long a new connection may take; 0: two seconds. Tests on a busy machine give more.
	ConnectTimeout time.Duration
	// BatchTimeout is how long a batch may take before it counts as unclear; 0: one second, which takeovers count on. Tests
	// that compare stores on a busy machine give more.
	BatchTimeout time.Duration
	Known        int64 // the last migration that this program claims to know; 0: the last it has
	Logger       *slog.Logger
	Pool         *pgxpool.Pool // connections of NewPool, kept beyond the DB by whoever made them; nil: Open makes them and Close ends them
}

// DB is the pool that everything but the writer's connection goes through.
type DB struct {
	pool     *pgxpool.Pool
	gorm     *gorm.DB
	options  Options
	app      string // the role that sees one tenant
	engine   string // the role that sees all
	log      *slog.Logger
	known    int64 // the last migration that this program knows
	retained retained
	renewed  atomic.Int64 // when the pool last gave up its connections, in nanoseconds
}

// Open connects, makes the two roles where they are missing and refuses a login that row level security does not bind.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OwnerURL == "" {
		o.OwnerURL = o.URL
	}
	if o.DirectURL == "" {
		o.DirectURL = o.URL
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = connectTimeout
	}
	if o.BatchTimeout == 0 {
		o.BatchTimeout = time.Second
	}
	pool, err := o.Pool, error(nil)
	if pool == nil {
		if pool, err = NewPool(ctx, o); err != nil {
			return nil, err
		}
	}
	login := pool.Config().ConnConfig
	db := &DB{pool: pool, options: o, app: login.Database + "_app", engine: login.Database + "_engine", log: o.Logger, known: cmp.Or(o.Known, migrations.Last())}
	if err := db.bootstrapRoles(ctx, login.User); err != nil {
		db.Close()
		return nil, err
	}
	if db.gorm, err = openGorm(pool); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// NewPool makes the connections that Open works with.
func NewPool(ctx context.Context, o Options) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, errors.New("DATABASE_URL is not a URL of PostgreSQL") // its text may hold the password
	}
	config.MaxConns = int32(o.PoolSize)
	if o.PoolSize <= 0 {
		config.MaxConns = 16
	}
	config.MaxConnIdleTime = 5 * time.Minute
	config.ConnConfig.ConnectTimeout = cmp.Or(o.ConnectTimeout, connectTimeout)
	Queued(&config.ConnConfig.Config)
	if o.NoStatementCache {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error { inUTC(conn); return nil }
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("opening the pool: %w", err)
	}
	return pool, nil
}

func openGorm(pool *pgxpool.Pool) (*gorm.DB, error) {
	return gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: stdlib.OpenDBFromPool(pool)}), &gorm.Config{
		SkipDefaultTransaction: true,
		QueryFields:            true, // SELECT * would break cached plans in a rolling migration
		TranslateError:         true,
		NowFunc:                func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) },
		Logger:                 gormlogger.Discard, // errors are returned, and logged once at the edge
	})
}

// inUTC makes timestamptz come back in UTC, whatever the session's zone is.
func inUTC(conn *pgx.Conn) {
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID,
		Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
}

// Close ends the pool; it waits for connections in use.
func (db *DB) Close() {
	if db.options.Pool == nil {
		db.pool.Close()
	}
}

// Ping says whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	if err := db.pool.Ping(ctx); err != nil {
		return classify(err)
	}
	return nil
}

// Scope is what a caller may see.
type Scope struct {
	Tenant int32
	Envs   []int32
}

// Scoped runs transactions in which row level security shows one scope.
type Scoped struct {
	db       *DB
	settings string
}

// For gives access as the role that sees the tenant and environments of scope alone.
func (db *DB) For(scope Scope) *Scoped {
	envs := make([]string, len(scope.Envs))
	for i, env := range scope.Envs {
		envs[i] = strconv.Itoa(int(env))
	}
	return &Scoped{db: db, settings: fmt.Sprintf(
		"SELECT set_config('role', %s, true), set_config('nightshift.tenant', '%d', true), set_config('nightshift.envs', '{%s}', true)",
		quoteLiteral(db.app), scope.Tenant, strings.Join(envs, ","))}
}

// Platform gives access as the role that sees every tenant: for the platform's own pages and for what has no tenant.
func (db *DB) Platform() *Scoped {
	return &Scoped{db: db, settings: fmt.Sprintf("SELECT set_config('role', %s, true)", quoteLiteral(db.engine))}
}

// Read runs fn in a read-only transaction. Role and settings travel with BEGIN, in one round trip.
func (s *Scoped) Read(ctx context.Context, fn func(tx pgx.Tx) error) error {
	err := s.run(ctx, "BEGIN READ ONLY", fn)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "0A000" { // a migration changed what a cached plan returns; it is gone now
		err = s.run(ctx, "BEGIN READ ONLY", fn)
	}
	return err
}

// Write runs fn in a transaction that commits when fn returns nil.
func (s *Scoped) Write(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return s.run(ctx, "BEGIN", fn)
}

func (s *Scoped) run(ctx context.Context, begin string, fn func(tx pgx.Tx) error) error {
	return s.db.begun(ctx, func(began func()) error {
		return pgx.BeginTxFunc(ctx, s.db.pool, pgx.TxOptions{BeginQuery: begin + "; " + s.settings}, func(tx pgx.Tx) error {
			began()
			return fn(tx)
		})
	})
}

// begun does a transaction, and once more on a new connection when the one it got was dead already: the sessions of a pool
// die together, with a failover or a restart, and nobody is to hear of it. What had begun is never done twice.
func (db *DB) begun(ctx context.Context, do func(began func()) error) error {
	begun := false
	err := do(func() { begun = true })
	if err == nil || begun || ctx.Err() != nil || !connectionLost(err) {
		return err
	}
	db.renew()
	return do(func() {})
}

// renewEvery is how often the pool gives up all its connections, at most.
const renewEvery = time.Second

// renew gives up the connections of the pool: those that are idle now, the others when they come back.
func (db *DB) renew() {
	now, last := time.Now().UnixNano(), db.renewed.Load()
	if now-last >= int64(renewEvery) && db.renewed.CompareAndSwap(last, now) {
		db.pool.Reset()
	}
}

// Gorm runs fn in a transaction over the same pool, for the plain tables of people.
func (s *Scoped) Gorm(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return s.db.begun(ctx, func(began func()) error {
		return s.db.gorm.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			began()
			if err := tx.Exec(s.settings).Error; err != nil {
				return err
			}
			return fn(tx)
		})
	})
}

func quoteLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// withDatabase is the URL with another database.
func withDatabase(dsn, database string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return "", errors.New("the database's address must be a URL, postgres://user:password@host/database")
	}
	u.Path = "/" + database
	return u.String(), nil
}
