package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/models/postgres/pgtest"
)

func TestOneBrainAtATime(t *testing.T) {
	w := newWorld(t)
	second := w.db.Writer()
	t.Cleanup(second.Close)
	seen, err := second.Brain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if seen.Epoch != w.epoch || seen.Batch != w.batch || seen.Address != "127.0.0.1:1" || seen.RenewedAt == 0 {
		t.Errorf("the row says %+v", seen)
	}
	if err := w.store.Renew(t.Context(), w.epoch); err != nil {
		t.Fatal(err)
	}
	// The row changed since it was seen: whoever saw the old one is too late.
	if _, err := second.TakeOver(t.Context(), seen, "b"); models.CodeOf(err) != models.FenceLost {
		t.Fatalf("a takeover on an old sight: %v", err)
	}
	renewed, err := second.Brain(t.Context())
	if err != nil || renewed.Beat == seen.Beat {
		t.Fatalf("a renewal did not change the beat: %v", err)
	}
	epoch := takeOver(t, second)
	task := w.ready()
	w.refused(models.FenceLost, &models.Plan{Tasks: []models.Task{task}})
	if err := w.store.Renew(t.Context(), w.epoch); models.CodeOf(err) != models.FenceLost {
		t.Errorf("the old brain renewed: %v", err)
	}
	if err := w.store.HandOver(t.Context(), w.epoch); models.CodeOf(err) != models.FenceLost {
		t.Errorf("the old brain handed over: %v", err)
	}
	if err := second.HandOver(t.Context(), epoch); err != nil {
		t.Fatal(err)
	}
	if given, err := w.store.Brain(t.Context()); err != nil || given.RenewedAt != 0 {
		t.Errorf("after the hand-over: %+v, %v", given, err)
	}
}

func TestManyStandbysOneWins(t *testing.T) {
	db, _ := open(t)
	seen, err := db.Writer().Brain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var won atomic.Int32
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			store := db.Writer()
			defer store.Close()
			switch _, err := store.TakeOver(t.Context(), seen, "x"); models.CodeOf(err) {
			case "":
				won.Add(1)
			case models.FenceLost:
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d took over", won.Load())
	}
}

// TestFrozenInsideATransaction: the brain stands still between its fence and its commit, holding the row.
func TestFrozenInsideATransaction(t *testing.T) {
	w := newWorld(t)
	task := w.ready()
	plan := w.plan(&models.Plan{Tasks: []models.Task{task}})
	link := newProxy(t, w.dsn)
	first := connectThrough(t, w.dsn, link)
	seen, err := w.store.Brain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if plan.Epoch, err = first.TakeOver(t.Context(), seen, "frozen"); err != nil {
		t.Fatal(err)
	}
	// Everything but the COMMIT arrives; then nothing more does, and the session stays open.
	link.hold("commit")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answer := make(chan error, 1)
	go func() { _, err := first.Apply(ctx, plan); answer <- err }()
	link.waitHeld(t)
	waitForLock(t, w.dsn)
	second := w.db.Writer()
	t.Cleanup(second.Close)
	epoch := takeOver(t, second) // within the time that a takeover has
	select {
	case err := <-answer:
		if code := models.CodeOf(err); code != models.Unclear {
			t.Errorf("the frozen brain was told %q", code)
		}
	case <-time.After(patience):
		t.Fatal("the frozen brain was told nothing")
	}
	if n := one[int](t, w.db, `SELECT count(*) FROM tasks WHERE id = $1`, [16]byte(task.ID)); n != 0 {
		t.Error("the frozen brain's transaction was committed after the takeover")
	}
	w.store, w.epoch, w.batch = second, epoch, w.batch-1
	w.apply(&models.Plan{Tasks: []models.Task{task}})
}

// TestCommitCutOnTheWire: the link dies right after the COMMIT was sent, before or after it reached the server.
func TestCommitCutOnTheWire(t *testing.T) {
	for name, arrives := range map[string]bool{"it had happened": true, "it had not": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			link := newProxy(t, w.dsn)
			store := connectThrough(t, w.dsn, link)
			seen, err := store.Brain(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if w.epoch, err = store.TakeOver(t.Context(), seen, "cut"); err != nil {
				t.Fatal(err)
			}
			w.store = store
			task := w.ready()
			if arrives {
				link.cutAnswerAfter("commit")
			} else {
				link.cutBefore("commit")
			}
			plan := w.plan(&models.Plan{Tasks: []models.Task{task}})
			if _, err := store.Apply(t.Context(), plan); models.CodeOf(err) != models.Unclear {
				t.Fatalf("a cut commit answered %v", err)
			}
			link.pass()
			if _, err := store.Apply(t.Context(), plan); models.CodeOf(err) != models.Unclear {
				t.Errorf("an unclear store went on: %v", err)
			}
			happened, next, err := store.Recover(t.Context(), plan.Epoch, plan.Batch)
			if err != nil || happened != arrives || next != plan.Epoch+1 {
				t.Fatalf("recovered: happened %v, epoch %d, %v", happened, next, err)
			}
			w.epoch = next
			if f := w.facts(&models.Need{Tasks: []models.TaskRef{refOf(task)}}); (len(f.Tasks) == 1) != arrives {
				t.Errorf("the row: %+v", f.Tasks)
			}
			if !arrives {
				w.batch--
			}
			w.apply(&models.Plan{Tasks: []models.Task{w.ready()}})
		})
	}
}

// TestRecoverAskedAgain: the epoch was raised, but then the list of batches could not be read. That was this brain's own
// doing, so the next try must not take it for another's.
func TestRecoverAskedAgain(t *testing.T) {
	w := newWorld(t)
	holder, err := pgx.Connect(t.Context(), pgtest.Admin(t, w.dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	w.apply(&models.Plan{Tasks: []models.Task{w.ready()}})
	engine := pgx.Identifier{one[string](t, w.db, `SELECT current_database()`) + "_engine"}.Sanitize()
	if _, err := holder.Exec(t.Context(), `REVOKE SELECT ON batches FROM `+engine); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.store.Recover(t.Context(), w.epoch, w.batch); err == nil || models.CodeOf(err) == models.FenceLost {
		t.Fatalf("without the list, recovered: %v", err)
	}
	if _, err := holder.Exec(t.Context(), `GRANT SELECT ON batches TO `+engine); err != nil {
		t.Fatal(err)
	}
	happened, next, err := w.store.Recover(t.Context(), w.epoch, w.batch)
	if err != nil || !happened || next != w.epoch+2 {
		t.Fatalf("asked again: happened %v, epoch %d after %d, %v", happened, next, w.epoch, err)
	}
	w.epoch = next
	w.apply(&models.Plan{Tasks: []models.Task{w.ready()}})
}

// TestRecoverHeardNothing: the epoch was raised, but the answer got lost on the wire. The next try knows its own session
// in the row, and does not take itself for another brain.
func TestRecoverHeardNothing(t *testing.T) {
	w := newWorld(t)
	link := newProxy(t, w.dsn)
	store := connectThrough(t, w.dsn, link)
	seen, err := store.Brain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if w.epoch, err = store.TakeOver(t.Context(), seen, "deaf"); err != nil {
		t.Fatal(err)
	}
	w.store = store
	w.apply(&models.Plan{Tasks: []models.Task{w.ready()}})
	link.cutAnswerAfter("brain_take")
	if _, _, err := store.Recover(t.Context(), w.epoch, w.batch); err == nil || models.CodeOf(err) == models.FenceLost {
		t.Fatalf("without an answer, recovered: %v", err)
	}
	link.pass()
	if got := one[int64](t, w.db, `SELECT epoch FROM brain`); got != w.epoch+1 {
		t.Fatalf("the epoch is %d, not raised from %d: nothing was lost", got, w.epoch)
	}
	happened, next, err := store.Recover(t.Context(), w.epoch, w.batch)
	if err != nil || !happened || next != w.epoch+2 {
		t.Fatalf("asked again: happened %v, epoch %d after %d, %v", happened, next, w.epoch, err)
	}
	w.epoch = next
	w.apply(&models.Plan{Tasks: []models.Task{w.ready()}})
}

// TestTakeOverHeardNothing: a takeover whose answer got lost is known again as this replica's own; another's is not.
func TestTakeOverHeardNothing(t *testing.T) {
	w := newWorld(t)
	link := newProxy(t, w.dsn)
	store := connectThrough(t, w.dsn, link)
	seen, err := store.Brain(t.Context())
	if err != nil || seen.Own {
		t.Fatalf("%+v, %v", seen, err)
	}
	link.cutAnswerAfter("brain_take")
	if _, err := store.TakeOver(t.Context(), seen, "deaf"); err == nil || models.CodeOf(err) == models.FenceLost {
		t.Fatalf("without an answer, taken over: %v", err)
	}
	link.pass()
	if seen, err = store.Brain(t.Context()); err != nil || !seen.Own {
		t.Fatalf("not known as its own: %+v, %v", seen, err)
	}
	if other, err := w.db.Writer().Brain(t.Context()); err != nil || other.Own {
		t.Errorf("another replica's is taken for its own: %+v, %v", other, err)
	}
	if _, err := store.TakeOver(t.Context(), seen, "deaf"); err != nil {
		t.Fatal(err)
	}
	if seen, err = store.Brain(t.Context()); err != nil || seen.Own {
		t.Errorf("a brain that knows it is one: %+v, %v", seen, err)
	}
}

// TestPreparingHasItsOwnLimit: making a connection ready takes longer than a batch may, as on a busy machine. Here a
// migration holds a table until the writer has waited for it past both limits of a batch's statements, twice.
func TestPreparingHasItsOwnLimit(t *testing.T) {
	w := newWorld(t)
	db, err := postgres.Open(t.Context(), postgres.Options{URL: w.dsn, ConnectTimeout: patience, BatchTimeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	second := db.Writer()
	t.Cleanup(second.Close)
	// The time to prepare is short too, a second: a machine that stands still may miss it, but not again and again.
	for try := 1; !w.takenPatiently(second); try++ {
		if try == 5 {
			t.Fatal("the writer does not wait for a table")
		}
	}
	for name, want := range map[string]string{"lock_timeout": "50ms", "statement_timeout": "70ms"} {
		if got, err := second.Setting(t.Context(), name); err != nil || got != want {
			t.Errorf("a brain that is ready has %s %s, %v", name, got, err)
		}
	}
}

// takenPatiently takes over while two tables are held, one after the other. It answers no where the writer gave up.
func (w *world) takenPatiently(second *postgres.Writer) bool {
	t := w.t
	t.Helper()
	var holders [2]*pgx.Conn
	for i, table := range []string{"tasks", "workers"} {
		holder, err := pgx.Connect(t.Context(), pgtest.Admin(t, w.dsn))
		if err != nil {
			t.Fatal(err)
		}
		defer holder.Close(context.Background())
		if _, err := holder.Exec(t.Context(), `BEGIN; LOCK TABLE `+table+` IN ACCESS EXCLUSIVE MODE`); err != nil {
			t.Fatal(err)
		}
		holders[i] = holder
	}
	seen, err := second.Brain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan error, 1)
	go func() { _, err := second.TakeOver(t.Context(), seen, "patient"); taken <- err }()
	released := map[string]bool{}
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		select {
		case err := <-taken:
			switch code := models.CodeOf(err); {
			case code == models.Rollback:
				return false
			case err != nil || len(released) < 2:
				t.Fatalf("taken over after %d of 2 tables: %v", len(released), err)
			}
			return true
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("not taken over after %d of 2 tables", len(released))
		}
		var table string
		err := holders[0].QueryRow(t.Context(), `SELECT coalesce(min(relation::regclass::text), '') FROM pg_locks JOIN pg_stat_activity a USING (pid)
			WHERE NOT granted AND application_name = 'nightshift brain' AND a.datname = current_database()
			AND clock_timestamp() - waitstart > '100ms'`).Scan(&table)
		if err != nil {
			t.Fatal(err)
		}
		if holder := map[string]*pgx.Conn{"tasks": holders[0], "workers": holders[1]}[table]; holder != nil && !released[table] {
			if _, err := holder.Exec(t.Context(), `ROLLBACK`); err != nil {
				t.Fatal(err)
			}
			released[table] = true
		}
	}
}

func TestRecoverAfterAnotherTookOver(t *testing.T) {
	w := newWorld(t)
	second := w.db.Writer()
	t.Cleanup(second.Close)
	takeOver(t, second)
	for batch, want := range map[int64]bool{w.batch: true, w.batch + 1: false} {
		happened, _, err := w.store.Recover(t.Context(), w.epoch, batch)
		if models.CodeOf(err) != models.FenceLost || happened != want {
			t.Errorf("batch %d: happened %v, %v", batch, happened, err)
		}
	}
}

func TestCertainRollbacks(t *testing.T) {
	w := newWorldWithin(t, 4*time.Second) // half of it is waited for a lock
	task := w.ready()
	w.apply(&models.Plan{Tasks: []models.Task{task}})
	holder, err := pgx.Connect(t.Context(), pgtest.Admin(t, w.dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	if _, err := holder.Exec(t.Context(), `BEGIN; SELECT FROM tasks FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	change := &models.Plan{Changes: []models.Change{{From: models.Ready, After: w.started(task)}}}
	w.refused(models.Rollback, change) // 55P03 after lock_timeout
	if _, err := holder.Exec(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	w.apply(change)
}

// TestSessionLost: a session that ended between two batches is replaced; its pid is stored anew before it is used.
func TestSessionLost(t *testing.T) {
	w := newWorld(t)
	admin, err := pgx.Connect(t.Context(), pgtest.Admin(t, w.dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	before := one[int](t, w.db, `SELECT backend_pid FROM brain`)
	if _, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend($1, 60000)`, before); err != nil {
		t.Fatal(err)
	}
	task := w.ready()
	plan := w.plan(&models.Plan{Tasks: []models.Task{task}})
	_, err = w.store.Apply(t.Context(), plan)
	switch models.CodeOf(err) {
	case models.Unclear: // the writing side could not know that the session was gone
		happened, next, err := w.store.Recover(t.Context(), plan.Epoch, plan.Batch)
		if err != nil || happened {
			t.Fatalf("recovered: happened %v, %v", happened, err)
		}
		w.epoch = next
	case models.Rollback:
	default:
		t.Fatalf("a batch on a lost session: %v", err)
	}
	w.batch--
	w.apply(&models.Plan{Tasks: []models.Task{task}})
	if after := one[int](t, w.db, `SELECT backend_pid FROM brain`); after == before {
		t.Error("the new session is not in the row")
	}
}

// TestGivenUpInsideATransaction: the link stops carrying in the middle of a large message. The batch is given up, but the
// server waits for the rest of the message in a transaction that locks the brain's row: the same brain ends that session,
// instead of waiting for it.
func TestGivenUpInsideATransaction(t *testing.T) {
	w := newWorld(t)
	link := newProxy(t, w.dsn)
	w.store = connectThrough(t, w.dsn, link) // not the clock gives the batch up, but its caller
	seen, err := w.store.Brain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if w.epoch, err = w.store.TakeOver(t.Context(), seen, "slow"); err != nil {
		t.Fatal(err)
	}
	before := one[int](t, w.db, `SELECT backend_pid FROM brain`)
	large := &models.Plan{}
	for range 16 { // more than the sockets hold: they send at most 4 MB ahead, and the proxy's receive little
		task := w.ready()
		large.Tasks = append(large.Tasks, task)
		large.Specs = append(large.Specs, models.Spec{Env: task.Env, ID: task.ID, Input: []byte(`{}`), Payload: []byte(`"` + strings.Repeat("x", 1_000_000) + `"`)})
	}
	link.hold("insert_specs")
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	go func() {
		select {
		case <-link.held:
			time.Sleep(100 * time.Millisecond) // the sockets fill
		case <-time.After(patience):
			t.Error("nothing was held")
		}
		giveUp()
	}()
	if _, err := w.store.Apply(ctx, w.plan(large)); models.CodeOf(err) != models.Rollback {
		t.Fatalf("a batch that never arrived answered %v", err)
	}
	link.pass()
	waitForLock(t, w.dsn)
	ctx, enough := context.WithTimeout(t.Context(), patience)
	defer enough()
	if err := w.store.Renew(ctx, w.epoch); err != nil {
		t.Fatalf("the brain waits for the session it gave up: %v", err)
	}
	if after := one[int](t, w.db, `SELECT backend_pid FROM brain`); after == before {
		t.Error("the session in the row is the one that was given up")
	}
	w.batch--
	w.apply(&models.Plan{Tasks: large.Tasks[:1]})
}

// connectThrough gives a store whose writer's connection goes through a proxy. What happens on the link ends its batches, not
// the clock.
func connectThrough(t *testing.T, dsn string, link *proxy) *postgres.Writer {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: dsn, DirectURL: link.dsn, ConnectTimeout: patience, BatchTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	store := db.Writer()
	t.Cleanup(store.Close)
	return store
}

// waitForLock waits until a brain's transaction has begun to write: it holds the row by then.
func waitForLock(t *testing.T, dsn string) {
	t.Helper()
	admin, err := pgx.Connect(t.Context(), pgtest.Admin(t, dsn))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var holders int
		err := admin.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks JOIN pg_stat_activity a USING (pid)
			WHERE locktype = 'transactionid' AND granted AND a.datname = current_database() AND application_name = 'nightshift brain'`).Scan(&holders)
		if err != nil {
			t.Fatal(err)
		}
		if holders > 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatal("no brain's transaction has begun to write")
		}
	}
}

// proxy stands between a store and PostgreSQL, and can hold or cut what passes.
type proxy struct {
	dsn    string
	mu     sync.Mutex
	word   string
	mode   string // "": pass
	held   chan struct{}
	target func() (net.Conn, error)
}

func newProxy(t *testing.T, dsn string) *proxy {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	network, address := "tcp", net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	if strings.HasPrefix(config.Host, "/") {
		network, address = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", config.Host, config.Port)
	}
	p := &proxy{held: make(chan struct{}), target: func() (net.Conn, error) { return net.Dial(network, address) }}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = l.Addr().String()
	q := u.Query()
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	p.dsn = u.String()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			client.(*net.TCPConn).SetReadBuffer(64 << 10)
			go p.serve(client)
		}
	}()
	return p
}

func (p *proxy) set(mode, word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode, p.word = mode, word
}

func (p *proxy) pass()                      { p.set("", "") }
func (p *proxy) hold(word string)           { p.set("hold", word) }
func (p *proxy) cutBefore(word string)      { p.set("cut before", word) }
func (p *proxy) cutAnswerAfter(word string) { p.set("cut after", word) }

func (p *proxy) waitHeld(t *testing.T) {
	t.Helper()
	select {
	case <-p.held:
	case <-time.After(patience):
		t.Fatal("nothing was held")
	}
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := p.target()
	if err != nil {
		return
	}
	defer server.Close()
	var muted atomic.Bool // answers go nowhere
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			done := bytes.HasSuffix(buf[:n], []byte{'Z', 0, 0, 0, 5, 'I'}) // ready again, in no transaction: it was committed
			if err != nil || muted.Load() && done {
				client.Close()
				return
			}
			if !muted.Load() {
				client.Write(buf[:n])
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		chunk := buf[:n]
		p.mu.Lock()
		mode, word := p.mode, p.word
		p.mu.Unlock()
		at := bytes.Index(chunk, []byte("\x00"+word+"\x00")) // the statement's name in a Bind
		if mode == "" || at < 0 {
			server.Write(chunk)
			continue
		}
		bind := at - 5 // its type and length stand before the name of the portal
		switch mode {
		case "hold":
			server.Write(chunk[:bind])
			server.Write([]byte{'H', 0, 0, 0, 4}) // Flush: what came so far is done
			close(p.held)
			<-gone // whatever the client does, its session stays as it is
			return
		case "cut before":
			server.Write(chunk[:bind])
			return
		case "cut after":
			muted.Store(true)
			server.Write(chunk)
			<-gone
			return
		}
	}
}
