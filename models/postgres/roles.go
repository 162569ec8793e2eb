package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// rolesLock is the advisory lock under which roles are made: roles belong to the cluster, not to a database.
const rolesLock = 0x6e69676874 // "night"

// ErrUnboundLogin refuses a login that row level security would not bind.
var ErrUnboundLogin = errors.New("the login of DATABASE_URL is a superuser or has BYPASSRLS, so tenants would not be kept apart: " +
	"use one that is neither")

// bootstrapRoles makes <db>_app and <db>_engine where they are missing and lets the login become either, without
// inheriting what they may: a transaction that forgot its role then reads nothing.
func (db *DB) bootstrapRoles(ctx context.Context, login string) error {
	ready, err := db.rolesReady(ctx)
	if err != nil || ready {
		return err
	}
	if err := db.makeRoles(ctx, login); err != nil {
		return fmt.Errorf("making the roles %s and %s: %w (the owner must be allowed to create roles)", db.app, db.engine, err)
	}
	if ready, err = db.rolesReady(ctx); err == nil && !ready {
		err = fmt.Errorf("the login %s can't become %s without inheriting it", login, db.engine)
	}
	return err
}

// rolesReady says whether the login may become both roles and inherits neither.
func (db *DB) rolesReady(ctx context.Context) (bool, error) {
	var unbound, ready bool
	err := db.pool.QueryRow(ctx, `
		SELECT (SELECT bool_or(rolsuper OR rolbypassrls) FROM pg_roles WHERE rolname IN (session_user, $1, $2)),
		       count(*) = 2 AND bool_and(pg_has_role(session_user, oid, 'MEMBER') AND NOT pg_has_role(session_user, oid, 'USAGE'))
		FROM pg_roles WHERE rolname IN ($1, $2)`, db.app, db.engine).Scan(&unbound, &ready)
	if err != nil {
		return false, classify(err)
	}
	if unbound {
		return false, ErrUnboundLogin
	}
	return ready, nil
}

func (db *DB) makeRoles(ctx context.Context, login string) error {
	lock, err := connectAny(ctx, db.options.OwnerURL)
	if err != nil {
		return err
	}
	defer lock.Close(ctx)
	if _, err := lock.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(rolesLock)); err != nil {
		return err
	}
	owner, err := connect(ctx, db.options.OwnerURL)
	if err != nil {
		return err
	}
	defer owner.Close(ctx)
	var version int
	if err := owner.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		return err
	}
	name := func(s string) string { return pgx.Identifier{s}.Sanitize() }
	for _, role := range []string{db.app, db.engine} {
		if err := tolerate(owner.Exec(ctx, `CREATE ROLE `+name(role)+` NOLOGIN`)); err != nil {
			return err
		}
		grant := fmt.Sprintf(`GRANT %s TO %s`, name(role), name(login))
		if version >= 160000 {
			grant += ` WITH INHERIT FALSE, SET TRUE`
		}
		if _, err := owner.Exec(ctx, grant); err != nil {
			return err
		}
	}
	if version >= 160000 {
		return nil
	}
	// Before 16 inheriting is a property of the login. One that owns the database also stops inheriting what its owner
	// may in the schema, so that is granted by name.
	if _, err := owner.Exec(ctx, `ALTER ROLE `+name(login)+` NOINHERIT`); err != nil {
		return err
	}
	return keepSchema(ctx, owner)
}

// keepSchema lets the database's owner go on making tables in the schema although it no longer inherits.
func keepSchema(ctx context.Context, owner *pgx.Conn) error {
	var may bool
	var who string
	err := owner.QueryRow(ctx, `SELECT has_schema_privilege(current_user, 'public', 'CREATE'), quote_ident(current_user)`).Scan(&may, &who)
	if err != nil || may {
		return err
	}
	return pgx.BeginFunc(ctx, owner, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SET LOCAL ROLE pg_database_owner; GRANT CREATE, USAGE ON SCHEMA public TO `+who+` WITH GRANT OPTION`)
		return err
	})
}

// connectAny prefers the database that every cluster has, so that one lock serves all databases.
func connectAny(ctx context.Context, dsn string) (*pgx.Conn, error) {
	common, err := withDatabase(dsn, "postgres")
	if err != nil {
		return nil, err
	}
	if conn, err := connect(ctx, common); err == nil {
		return conn, nil
	}
	return connect(ctx, dsn)
}

// tolerate lets a role be there already: duplicate_object, or unique_violation when two make it at once.
func tolerate(_ pgconn.CommandTag, err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42710" || pg.Code == "23505") {
		return nil
	}
	return err
}
