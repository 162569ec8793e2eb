package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// bootstrap makes the login and its database where they are missing. Row level security binds neither a superuser nor a
// BYPASSRLS role, so the application gets one that is neither; it may create the two roles it sets itself to.
func (s *Server) bootstrap(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.dsn(Superuser, "password", "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var hasLogin, hasDatabase bool
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1), EXISTS (SELECT FROM pg_database WHERE datname = $2)`,
		Login, Database).Scan(&hasLogin, &hasDatabase)
	if err != nil {
		return err
	}
	if !hasLogin {
		password, err := os.ReadFile(filepath.Join(s.root.path, "login.password"))
		if err != nil {
			return err
		}
		create := fmt.Sprintf(`CREATE ROLE %s LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS PASSWORD '%s'`,
			Login, strings.ReplaceAll(string(password), "'", "''"))
		if _, err := conn.Exec(ctx, create); err != nil {
			return err
		}
	}
	if !hasDatabase {
		if _, err := conn.Exec(ctx, fmt.Sprintf(`CREATE DATABASE %s OWNER %s`, Database, Login)); err != nil {
			return err
		}
	}
	return nil
}
