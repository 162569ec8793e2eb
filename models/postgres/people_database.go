package postgres

import "context"

// Database is how the database itself is doing.
type Database struct {
	Version                  string
	SizeBytes                int64
	OldestTransactionSeconds float64 // of those that the login may see; an old one keeps dead rows from being removed
	Connections              int64   // to this database, of everybody
	MostConnections          int64   // that the server takes in all
	DeadRows                 int64   // an estimate: rows that vacuum will remove
}

// Database asks the server about itself. It asks as the login: only that role may see what its sessions do.
func (w *World) Database(ctx context.Context) (d Database, err error) {
	err = w.db.pool.QueryRow(ctx, `SELECT current_setting('server_version'), pg_database_size(current_database()),
		coalesce((SELECT extract(epoch FROM max(clock_timestamp() - xact_start)) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()), 0)::float8,
		(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()), current_setting('max_connections')::bigint,
		coalesce((SELECT sum(n_dead_tup) FROM pg_stat_user_tables), 0)::bigint`).
		Scan(&d.Version, &d.SizeBytes, &d.OldestTransactionSeconds, &d.Connections, &d.MostConnections, &d.DeadRows)
	return d, peopleError(err)
}
