package postgres

import (
	"embed"
	"regexp"
	"strings"
)

// The statements of the hot path, one a file, named like it. In them ":task(t)" stands for the columns of a task's row in
// the order of task_wire_4, taken from t.
//
//go:embed sql/*.sql
var sqlFiles embed.FS

const taskColumns = "env, lane, class, state, priority, flags, attempt, attempts_used, max_attempts, remaining, killed, " +
	"hard_seconds, age_key, created_at, updated_at, id, ready_at, wake_at, expires_at, deadline, latest_start, started_at, " +
	"finished_at, lease_until, cards, cancel_at, estimate_ms, leases_lost, key_limit, soft_seconds, delay_seconds, total_seconds, depth, total_until, tokens, cost_micro, workflow, parent, worker, attempt_id, token, " +
	"fingerprint, gate, key, idem_key, limit_key, error_class, order_key, more_keys"

var taskMacro = regexp.MustCompile(`:task\((\w+)\)`)

// statements are the texts by name, with the columns of a task spelled out.
var statements = func() map[string]string {
	files, err := sqlFiles.ReadDir("sql")
	if err != nil {
		panic(err) // the files are part of the program
	}
	texts := make(map[string]string, len(files)+2)
	for _, f := range files {
		text, err := sqlFiles.ReadFile("sql/" + f.Name())
		if err != nil {
			panic(err)
		}
		texts[strings.TrimSuffix(f.Name(), ".sql")] = taskMacro.ReplaceAllStringFunc(string(text), func(m string) string {
			of := taskMacro.FindStringSubmatch(m)[1] + "."
			return of + strings.ReplaceAll(taskColumns, ", ", ", "+of)
		})
	}
	texts["begin"], texts["commit"] = "BEGIN", "COMMIT"
	return texts
}()

// TaskColumns are the columns that a Task is read from, in order, taken from the table or alias named.
func TaskColumns(of string) string {
	return of + "." + strings.ReplaceAll(taskColumns, ", ", ", "+of+".")
}
