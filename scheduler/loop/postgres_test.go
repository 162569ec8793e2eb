package loop

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
	"nightshift/scheduler/engine"
)

// house is a migrated database and what replicas of it share.
type house struct {
	world
	dsn string
	db  *postgres.DB
}

func newHouse(t *testing.T) *house {
	if testing.Short() {
		t.Skip("it needs PostgreSQL and some seconds")
	}
	h := &house{dsn: pgtest.Migrated(t)}
	h.T = t
	h.db = openDB(t, h.dsn)
	if err := h.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

func openDB(t testing.TB, dsn string) *postgres.DB {
	db, err := postgres.Open(context.Background(), postgres.Options{URL: dsn, ConnectTimeout: patience, BatchTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// replica starts a loop on the database as seen through dsn. What it logs is shown when the test fails.
func (h *house) replica(dsn, address string, o Options) (*Loop, func()) {
	o.Address = address
	o.Logger = slog.New(slog.NewTextHandler(h.Output(), nil)).With("replica", address)
	store := openDB(h.T, dsn).Writer()
	h.Cleanup(store.Close)
	return runs(h.T, store, o)
}

// state is what the database says of a task.
func (h *house) state(submit *engine.Command) string {
	h.Helper()
	var state int16
	id := submit.Submit.Tasks[0].ID
	err := h.db.Platform().Read(h.Context(), func(tx pgx.Tx) error {
		return tx.QueryRow(h.Context(), `SELECT coalesce(max(state), -1) FROM tasks WHERE env = $1 AND id = $2`, h.env, id[:]).Scan(&state)
	})
	if err != nil {
		h.Fatal(err)
	}
	if state < 0 {
		return "absent"
	}
	return models.State(state).String()
}

// patience is what a test waits for anything that must come, however slow the machine. How soon it must come is measured on the
// bubble's clock, in brain_test.go; here it is printed.
const patience = time.Minute

// until waits, by asking the loop again and again, until it decides.
func (h *house) until(l *Loop) time.Duration {
	h.Helper()
	began := time.Now()
	h.await("a brain", func() bool { return l.Role().Brain })
	return time.Since(began)
}

// await asks again until it is so.
func (h *house) await(what string, so func() bool) {
	h.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			h.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestPostgresHandOverAndKill(t *testing.T) {
	h := newHouse(t)
	one, stopOne := h.replica(h.dsn, "https://one", Options{})
	h.loop = one
	h.furnish(one)
	link, through := proxied(t, h.dsn)
	two, _ := h.replica(through, "https://two", Options{})
	kept := h.task(payloadOf(1))
	h.must(one, kept)

	began := time.Now()
	stopOne()
	h.until(two)
	t.Logf("handed over: the next brain after %v", time.Since(began).Round(time.Millisecond))
	if got := h.must(two, h.claim(1, 0)); len(got.Claimed.Leases) != 1 || h.state(kept) != "running" {
		t.Errorf("the next brain gave %+v", got.Claimed)
	}

	three, _ := h.replica(h.dsn, "https://three", Options{})
	h.await("the standby to see the brain alive", func() bool { return three.Role().Address == "https://two" })
	link.die(true)
	t.Logf("killed: the next brain after %v", h.until(three).Round(time.Millisecond))
	lost := h.task(payloadOf(2))
	if _, err := h.do(two, lost); models.CodeOf(err) != models.Unavailable || h.state(lost) != "absent" {
		t.Errorf("the cut-off brain told %v, the task is %s", err, h.state(lost))
	}
	h.must(three, h.task(payloadOf(3)))
}

// A commit cut on the wire: whether the server had done it or not, every caller is told the truth and nothing is doubled.
func TestPostgresCommitCutOnTheWire(t *testing.T) {
	h := newHouse(t)
	link, through := proxied(t, h.dsn)
	h.loop, _ = h.replica(through, "https://one", Options{})
	h.furnish(h.loop)
	made := 0
	for round := range 6 {
		happens := round%2 == 0
		var wg sync.WaitGroup
		cmds := make([]*engine.Command, 40)
		h.must(h.loop, h.look()) // the board is rebuilt by then, in a transaction that is not to be cut
		link.cutNextCommit(happens)
		for i := range cmds {
			cmds[i] = h.task(payloadOf(round*100 + i))
			wg.Go(func() {
				answer, err := h.do(h.loop, cmds[i])
				state := h.state(cmds[i])
				if err != nil || state != "ready" || len(answer.Made) != 1 {
					t.Errorf("round %d, happens %v: told %v, the task is %s", round, happens, err, state)
				}
			})
		}
		wg.Wait()
		made += len(cmds)
	}
	f := h.loop.Figures()
	if f.Unclear != 6 || !f.Brain || f.Epoch < 7 {
		t.Errorf("figures %+v", f)
	}
	var rows int
	err := h.db.Platform().Read(t.Context(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT count(*) FROM tasks`).Scan(&rows)
	})
	if err != nil || rows != made {
		t.Errorf("%d tasks stand for %d submits: %v", rows, made, err)
	}
}

func TestPostgresRefusesOneOfFiveHundred(t *testing.T) {
	h := newHouse(t)
	const forced = `{"panic":true}`
	h.loop, _ = h.replica(h.dsn, "https://one", Options{failpoint: func(cmds []*engine.Command) {
		for _, cmd := range cmds {
			if cmd.Submit != nil && string(cmd.Submit.Tasks[0].Payload) == forced {
				panic("forced")
			}
		}
	}})
	h.furnish(h.loop)
	long := make([]byte, 6000)
	_, _ = rand.Read(long)
	for _, c := range []struct {
		name  string
		spoil func(*engine.NewTask)
		told  models.Code
	}{
		{"NUL", func(n *engine.NewTask) { n.Payload = json.RawMessage("{\"x\":\"a\x00b\"}") }, models.ValidationFailed},
		{"bad UTF-8", func(n *engine.NewTask) { n.Payload = json.RawMessage("{\"x\":\"\xff\"}") }, models.ValidationFailed},
		{"overflow", func(n *engine.NewTask) { n.IdemKey = fmt.Sprintf("%x", long) }, models.ValidationFailed},
		{"a NUL in a key the facts ask for", func(n *engine.NewTask) { n.IdemKey = "a\x00b" }, models.ValidationFailed},
		{"panic", func(n *engine.NewTask) { n.Payload = json.RawMessage(forced) }, models.Internal},
	} {
		t.Run(c.name, func(t *testing.T) {
			var wg sync.WaitGroup
			before := h.loop.Figures()
			for i := range 500 {
				cmd, want, stands := h.task(payloadOf(i)), models.Code(""), "ready"
				if i == 250 {
					c.spoil(&cmd.Submit.Tasks[0])
					want, stands = c.told, "absent"
				}
				wg.Go(func() {
					_, err := h.do(h.loop, cmd)
					if state := h.state(cmd); models.CodeOf(err) != want || state != stands {
						t.Errorf("told %v, the task is %s", err, state)
					}
				})
			}
			wg.Wait()
			if n := h.loop.Figures().Culprits - before.Culprits; n != 1 {
				t.Errorf("%d culprits", n)
			}
		})
	}
}

// The database ends the brain's session: it goes on with another, and callers hear nothing of it but a pause.
func TestPostgresSessionEnded(t *testing.T) {
	h := newHouse(t)
	h.loop, _ = h.replica(h.dsn, "https://one", Options{})
	h.furnish(h.loop)
	admin, err := pgx.Connect(t.Context(), pgtest.Admin(t, h.dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	for i := range 5 {
		tag, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'nightshift brain'`)
		if err != nil || tag.RowsAffected() == 0 {
			t.Fatalf("ended %d sessions: %v", tag.RowsAffected(), err)
		}
		began := time.Now()
		cmd := h.task(payloadOf(i))
		for {
			_, err := h.do(h.loop, cmd)
			if err == nil {
				break
			}
			if models.CodeOf(err) != models.Unavailable || time.Since(began) > patience {
				t.Fatalf("told %v after %v", err, time.Since(began))
			}
			cmd.Resent = true
		}
		if h.state(cmd) != "ready" {
			t.Errorf("the task is %s", h.state(cmd))
		}
	}
}

const childDSN = "LOOP_TEST_CHILD_DSN"

// TestMain lets the test binary be a replica in a process of its own.
func TestMain(m *testing.M) {
	if dsn := os.Getenv(childDSN); dsn != "" {
		child(dsn)
		return
	}
	os.Exit(m.Run())
}

// child decides, submits the command it reads from its input and prints what it was told.
func child(dsn string) {
	db, err := postgres.Open(context.Background(), postgres.Options{URL: dsn})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	l := New(db.Writer(), Options{Address: "https://child", Logger: quiet()})
	go func() { _ = l.Run(context.Background()) }()
	for !l.Role().Brain {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("brain")
	var cmd engine.Command
	if err := json.NewDecoder(os.Stdin).Decode(&cmd); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	_, err = l.Do(context.Background(), &cmd)
	fmt.Println("told", told(err))
}

// The brain's process is frozen inside a transaction, with the row locked. The next brain comes nevertheless, and when the old
// one wakes, it tells its caller the truth.
func TestPostgresFrozenInsideATransaction(t *testing.T) {
	h := newHouse(t)
	one, stopOne := h.replica(h.dsn, "https://one", Options{})
	h.loop = one
	h.furnish(one)
	stopOne()

	link, through := proxied(t, h.dsn)
	life, enough := context.WithTimeout(t.Context(), 2*patience) // it says nothing more then
	defer enough()
	process := exec.CommandContext(life, os.Args[0])
	process.Env = append(os.Environ(), childDSN+"="+through)
	in, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = process.Process.Kill(); _ = process.Wait() }()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "brain" {
		t.Fatalf("the child says %q", lines.Text())
	}
	next, _ := h.replica(h.dsn, "https://next", Options{})
	h.await("the next one to know the child", func() bool { return next.Role().Address == "https://child" })

	frozen, woken := make(chan time.Time, 1), make(chan struct{})
	link.mu.Lock()
	link.cut = func(func(), <-chan struct{}) { // the COMMIT never arrives, and the connection stays
		_ = process.Process.Signal(syscall.SIGSTOP)
		frozen <- time.Now()
		<-woken
	}
	link.mu.Unlock()
	cmd := h.task(payloadOf(1))
	if err := json.NewEncoder(in).Encode(cmd); err != nil {
		t.Fatal(err)
	}
	var began time.Time
	select {
	case began = <-frozen:
	case <-time.After(patience):
		t.Fatal("the child commits nothing")
	}
	h.until(next)
	t.Logf("frozen inside a transaction: the next brain after %v", time.Since(began).Round(time.Millisecond))
	h.must(next, h.task(payloadOf(2)))
	_ = process.Process.Signal(syscall.SIGCONT)
	close(woken)
	if !lines.Scan() || strings.TrimSpace(lines.Text()) != "told unavailable" || h.state(cmd) != "absent" {
		t.Errorf("the child says %q, its task is %s", lines.Text(), h.state(cmd))
	}
}
