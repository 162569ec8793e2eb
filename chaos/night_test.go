package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models/postgres/local"
)

// The demo is killed in the middle of its night and started again on the same data: the night is finished, what was
// acknowledged is there, and no task has two accepted outcomes.
func TestDemoKilledInTheNight(t *testing.T) {
	asked(t)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(scratch(), "night")
	docs := filepath.Join(scratch(), "docs")
	writeDocuments(t, docs, 240)
	env := environment("NIGHTSHIFT_DATA="+data, "NIGHTSHIFT_LISTEN="+freePort(t))
	args := []string{"demo", "--once", "--docs", docs, "--docs-limit", "100"}
	t.Cleanup(func() { endFleet(data) })
	kills := 0
	for kills < 2 {
		demo := spawn(t, "demo", env, path, args...)
		inTheNight(t, demo, data, kills)
		demo.Kill()
		kills++
	}
	endFleet(data) // its workers too: a machine that lost power
	began := time.Now()
	demo := spawn(t, "demo", env, path, args...)
	select {
	case <-demo.done:
	case <-time.After(5 * time.Minute):
		t.Fatalf("the night does not end:\n%s", demo.tail(4000))
	}
	said := string(demo.said())
	if code := demo.cmd.ProcessState.ExitCode(); code != 0 || !strings.Contains(said, "Continuing the unfinished night") {
		t.Fatalf("exit code %d:\n%s", code, demo.tail(4000))
	}
	t.Logf("killed %d times; the last start finished the night in %s", kills, time.Since(began).Round(time.Millisecond))
	theNight(t, filepath.Join(data, "postgres"), data)
}

// writeDocuments makes documents of a few paragraphs, each unlike the others.
func writeDocuments(t testing.TB, folder string, n int) {
	t.Helper()
	words := strings.Fields("night harbour lantern ledger river winter engine letter garden window copper tailor bridge orchard signal market")
	for i := range n {
		var text strings.Builder
		fmt.Fprintf(&text, "# Document %d\n\n", i)
		for j := range 12 {
			a, b, c := words[(i+j)%16], words[(i*7+j*3)%16], words[(i*5+j*11)%16]
			fmt.Fprintf(&text, "The %s of number %d stands near the %s. Nobody saw the %s before day %d.\n\n", a, i, b, c, j)
		}
		path := filepath.Join(folder, fmt.Sprintf("d%03d.md", i))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// inTheNight waits until tasks have succeeded and others have not.
func inTheNight(t testing.TB, demo *Process, data string, kills int) {
	t.Helper()
	root := filepath.Join(data, "postgres")
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if !demo.Alive() {
			t.Fatalf("the demo ended before it was killed:\n%s", demo.tail(4000))
		}
		conn, err := connect(root)
		if err != nil {
			continue
		}
		var done, open int
		err = conn.QueryRow(context.Background(), `SELECT count(*) FILTER (WHERE state = 8), count(*) FILTER (WHERE state < 7) FROM tasks`).Scan(&done, &open)
		_ = conn.Close(context.Background())
		if err == nil && done >= 15*(kills+1) && open > 10 {
			t.Logf("kill %d: %d tasks succeeded, %d open", kills+1, done, open)
			return
		}
	}
	t.Fatalf("no night to be in the middle of:\n%s", demo.tail(4000))
}

// connect reaches a folder's database as its administrator, with what the folder holds.
func connect(root string) (*pgx.Conn, error) {
	password, err := os.ReadFile(filepath.Join(root, "password"))
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=5432 user=%s dbname=%s sslmode=disable", filepath.Join(root, "run"), local.Superuser, local.Database))
	if err != nil {
		return nil, err
	}
	config.Password = strings.TrimSpace(string(password))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return pgx.ConnectConfig(ctx, config)
}

// endFleet ends the night's workers, which outlive their demo.
func endFleet(data string) {
	files, _ := filepath.Glob(filepath.Join(data, "fleet", "*.json")) // the pattern is good
	for _, file := range files {
		var p struct {
			PID int `json:"pid"`
		}
		raw, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(raw, &p) != nil || p.PID <= 1 {
			continue
		}
		said, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if strings.Contains(string(said), data) {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}

// theNight reads the finished night's database.
func theNight(t testing.TB, root, data string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server, err := local.Start(ctx, local.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Stop() }()
	conn, err := connect(root)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	number := func(sql string) (n int) {
		if err := conn.QueryRow(ctx, sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	all, dead := number(`SELECT count(*) FROM tasks`), number(`SELECT count(*) FROM tasks WHERE state = 7`)
	t.Logf("%d tasks, %d succeeded, %d dead letters, %d leases lost on the way", all, number(`SELECT count(*) FROM tasks WHERE state = 8`),
		dead, number(`SELECT count(*) FROM attempts WHERE outcome = 6`))
	if n := number(`SELECT count(*) FROM (SELECT 1 FROM attempts WHERE outcome = 1 GROUP BY env, task HAVING count(*) > 1) twice`); n > 0 {
		t.Errorf("I2: %d tasks succeeded more than once", n)
	}
	if n := number(`SELECT count(*) FROM tasks WHERE state IN (1, 3, 4, 5, 6)`); n > 0 {
		t.Errorf("I1: %d tasks could still move when the night was over", n)
	}
	if n := number(`SELECT count(*) FROM tasks WHERE state = 7 AND error_class = 'worker_lost'`); n > 0 {
		t.Errorf("%d tasks died of their workers' deaths", n)
	}
	if n := number(`SELECT count(*) FROM workflows`); n != 2 {
		t.Errorf("I4: %d workflows for two tenants", n)
	}
	planned := 0
	bodies, _ := filepath.Glob(filepath.Join(data, "nights", "*", "*", "workflow.json")) // the pattern is good
	for _, body := range bodies {
		var w struct {
			Tasks []json.RawMessage `json:"tasks"`
		}
		raw, err := os.ReadFile(body)
		if err != nil || json.Unmarshal(raw, &w) != nil {
			t.Fatalf("%s can't be read: %v", body, err)
		}
		planned += len(w.Tasks)
	}
	if n := number(`SELECT count(*) FROM tasks WHERE workflow IS NOT NULL AND parent IS NULL`); n != planned {
		t.Errorf("I1: %d tasks of the %d that the two workflows were planned with", n, planned)
	}
}
