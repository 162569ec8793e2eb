package postgres

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// HotStatements are the names of the statements whose plans are held.
func HotStatements() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(statements)), func(name string) bool {
		return name == "begin" || name == "commit" || name == "clock" || strings.HasPrefix(name, "save_") || strings.HasPrefix(name, "brain_")
	})
}

// Setting is one of the writer's session.
func (w *Writer) Setting(ctx context.Context, name string) (value string, err error) {
	err = w.link.conn.QueryRow(ctx, `SELECT current_setting($1)`, name).Scan(&value)
	return value, err
}

// MayRenew lets the pool give up its connections again at once.
func (db *DB) MayRenew() { db.renewed.Store(0) }

var parameter = regexp.MustCompile(`\$\d+`)

// Explain is the plan of a statement as the writer's connection has it.
func (w *Writer) Explain(ctx context.Context, name string) (string, error) {
	conn := w.link.conn
	params := map[string]bool{}
	for _, p := range parameter.FindAllString(withoutComments(statements[name]), -1) {
		params[p] = true
	}
	arguments := ""
	if len(params) > 0 {
		arguments = "(" + strings.TrimSuffix(strings.Repeat("NULL,", len(params)), ",") + ")"
	}
	if _, err := conn.Exec(ctx, "PREPARE explained AS "+statements[name]); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	defer conn.Exec(ctx, "DEALLOCATE explained")
	found, err := conn.Query(ctx, "EXPLAIN (COSTS OFF) EXECUTE explained"+arguments, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	lines, err := pgx.CollectRows(found, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}

func withoutComments(sql string) string {
	var out []string
	for line := range strings.Lines(sql) {
		if !strings.HasPrefix(line, "--") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}
