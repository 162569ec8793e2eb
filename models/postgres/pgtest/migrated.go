package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"nightshift/migrations"
	"nightshift/models/postgres"
)

// Migrated is New with the schema already there: a copy of a database that was migrated once for all tests, a third of what
// migrating takes. Its tables belong to its own login and its rights and policies to its own roles, as if it had been migrated
// itself. On a cluster that is not the tests' own (TEST_DATABASE_URL) it is New: nothing is left behind there.
func Migrated(t testing.TB) string {
	t.Helper()
	a, err := admin()
	if err != nil {
		t.Fatal(err)
	}
	if !a.private {
		return New(t)
	}
	model, err := template()
	if err != nil {
		t.Fatalf("making the database that others are copied from: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	name := newName()
	dsn, err := a.create(ctx, name, model)
	t.Cleanup(func() { drop(t, a, name) })
	if err == nil {
		err = a.own(ctx, name, model)
	}
	if err != nil {
		t.Fatalf("copying the test's database: %v", err)
	}
	return dsn
}

// template is the name of the database with this program's schema and no row of anybody's. The first that needs it makes it.
var template = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), start)
	defer cancel()
	a, err := admin()
	if err != nil {
		return "", err
	}
	steps, err := digest(migrations.FS)
	if err != nil {
		return "", err
	}
	name := "template_" + steps
	conn, err := a.pool.Acquire(ctx) // its session holds the lock, and ends with it
	if err != nil {
		return "", err
	}
	lock := conn.Hijack()
	defer lock.Close(context.Background())
	if _, err := lock.Exec(ctx, `SELECT pg_advisory_lock(hashtext('pgtest.template'))`); err != nil {
		return "", err
	}
	var there, done bool
	if err := lock.QueryRow(ctx, `SELECT count(*) > 0, coalesce(bool_or(datistemplate), false) FROM pg_database WHERE datname = '`+name+`'`).Scan(&there, &done); err != nil || done {
		return name, err
	}
	if there { // whoever began it was ended
		for _, sql := range dropping(name) {
			if _, err := lock.Exec(ctx, sql); err != nil {
				return "", err
			}
		}
	}
	dsn, err := a.create(ctx, name, "template1")
	if err != nil {
		return "", err
	}
	db, err := postgres.Open(ctx, postgres.Options{URL: dsn, PoolSize: 1, ConnectTimeout: patience, BatchTimeout: patience})
	if err != nil {
		return "", err
	}
	err = db.Migrate(ctx)
	db.Close()
	if err != nil {
		return "", err
	}
	// It stays with the administrator: a copy takes over what the template's login owns, and that would be the template too.
	if _, err := lock.Exec(ctx, `ALTER DATABASE `+name+` OWNER TO CURRENT_USER`); err != nil {
		return "", err
	}
	_, err = lock.Exec(ctx, `ALTER DATABASE `+name+` WITH ALLOW_CONNECTIONS false IS_TEMPLATE true`)
	return name, err
})

// digest tells one set of migrations from another.
func digest(files fs.FS) (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		fmt.Fprintf(hash, "%s %d\n%s", path, len(text), text)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil))[:16], err
}

// owning gives what stands in a copy to the roles of the copy: %[1]s is its name and %[2]s that of what it was copied from.
const owning = `
SET SESSION AUTHORIZATION %[1]s_login;
CREATE ROLE %[1]s_app NOLOGIN;
CREATE ROLE %[1]s_engine NOLOGIN;
RESET SESSION AUTHORIZATION;
REASSIGN OWNED BY %[2]s_login TO %[1]s_login;
DO $$
DECLARE
    x    record;
    mine CONSTANT jsonb := '{"%[2]s_login": "%[1]s_login", "%[2]s_app": "%[1]s_app", "%[2]s_engine": "%[1]s_engine"}';
BEGIN
    FOR x IN
        SELECT coalesce(mine ->> giver.rolname, giver.rolname) AS giver,
               format('GRANT %%s ON %%s %%s TO %%I', string_agg(a.privilege_type, ', '), o.kind, o.name, mine ->> r.rolname) ||
               CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END AS gives
        FROM (SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, oid::regclass::text AS name, relacl AS acl
              FROM pg_class WHERE relacl IS NOT NULL AND relnamespace = 'public'::regnamespace
              UNION ALL SELECT 'SCHEMA', nspname, nspacl FROM pg_namespace WHERE nspname = 'public') o
        CROSS JOIN aclexplode(o.acl) a
        JOIN pg_roles r ON r.oid = a.grantee AND mine ? r.rolname
        JOIN pg_roles giver ON giver.oid = a.grantor
        GROUP BY o.kind, o.name, r.rolname, giver.rolname, a.is_grantable
        ORDER BY a.is_grantable DESC -- first those who give on
    LOOP
        PERFORM set_config('role', x.giver, true);
        EXECUTE x.gives;
    END LOOP;
    PERFORM set_config('role', 'none', true);
    FOR x IN
        SELECT format('ALTER POLICY %%I ON %%I TO %%I', policyname, tablename, mine ->> roles[1]::text) AS alters
        FROM pg_policies WHERE mine ? roles[1]::text
    LOOP
        EXECUTE x.alters;
    END LOOP;
END $$;
DROP OWNED BY %[2]s_app, %[2]s_engine, %[2]s_login CASCADE`

// own makes a copy belong to its own login and roles.
func (c *cluster) own(ctx context.Context, name, model string) error {
	config, err := pgx.ParseConfig(c.dsn(name, c.url.User))
	if err != nil {
		return err
	}
	postgres.Queued(&config.Config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.PgConn().Exec(ctx, fmt.Sprintf(owning, name, model)).ReadAll()
	return err
}

func dropping(name string) []string {
	return []string{
		fmt.Sprintf(`DROP DATABASE IF EXISTS %s WITH (FORCE)`, name),
		fmt.Sprintf(`DROP ROLE IF EXISTS %s_app, %s_engine`, name, name),
		fmt.Sprintf(`DROP ROLE IF EXISTS %s_login`, name),
	}
}
