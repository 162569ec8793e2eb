package chaos

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"nightshift/workers/client"
)

// World is one running Nightshift: its database, replicas and customers.
type World struct {
	t   testing.TB
	DB  *Database
	Rng *mathrand.Rand

	secret   string // NIGHTSHIFT_SECRET_KEY
	platform identity
	tenant   identity // a customer with all it may hold
	workers  identity // the platform's key for workers
	Replicas []*Replica
	pullers  []*Puller
	last     int // number of the last thing that got a name
}

type identity struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

// Replica is one `nightshift serve` and the links to and from it.
type Replica struct {
	*Process
	URL      string // where it listens, with nothing in between
	Front    *Link  // from callers and workers
	Database *Link
	env      []string
	world    *World
}

// NewWorld starts a database and replicas, and provides a tenant and keys through the public API. It skips where chaos
// was not asked for.
func NewWorld(t testing.TB, replicas int) *World {
	t.Helper()
	asked(t)
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("NIGHTSHIFT_CHAOS_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("NIGHTSHIFT_CHAOS_SEED: %v", err)
		}
	}
	t.Logf("NIGHTSHIFT_CHAOS_SEED=%d", seed)
	w := &World{t: t, DB: newDatabase(t), Rng: mathrand.New(mathrand.NewPCG(seed, 1))}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	w.secret = base64.StdEncoding.EncodeToString(key)
	w.platform = identity{"chaos", rand.Text() + rand.Text()}
	for range replicas {
		w.Replicas = append(w.Replicas, w.newReplica())
	}
	for _, r := range w.Replicas {
		r.Ready(patience)
	}
	w.provide()
	return w
}

// asked skips what only `make chaos` runs.
func asked(t testing.TB) {
	t.Helper()
	if os.Getenv("NIGHTSHIFT_CHAOS") == "" {
		t.Skip("this breaks a running Nightshift for a while: make chaos runs it")
	}
}

// environment is what a program under test gets: nothing of this process's own settings.
func environment(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + scratch(), "TMPDIR=" + os.TempDir()}, more...)
}

// ports counts through addresses below those that the system gives to connections and to listeners without a wish: a replica
// that is killed finds its own free again.
var ports atomic.Int32

// freePort is an address that nothing listens at, given once in a process.
func freePort(t testing.TB) string {
	t.Helper()
	const lowest, all = 20_000, 10_000
	ports.CompareAndSwap(0, int32(os.Getpid()%all)+1)
	for range all {
		address := fmt.Sprintf("127.0.0.1:%d", lowest+ports.Add(1)%all)
		if listener, err := net.Listen("tcp", address); err == nil {
			listener.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (w *World) newReplica() *Replica {
	w.last++
	address := freePort(w.t)
	r := &Replica{URL: "http://" + address, world: w, Database: w.DB.link(w.t)}
	r.Front = newLink(w.t, func() (net.Conn, error) { return net.DialTimeout("tcp", address, 2*time.Second) })
	r.env = environment("NIGHTSHIFT_LISTEN="+address, "NIGHTSHIFT_ADVERTISE_URL="+r.URL, "NIGHTSHIFT_SECRET_KEY="+w.secret,
		"NIGHTSHIFT_DATA="+filepath.Join(scratch(), fmt.Sprintf("%s-%d", w.DB.name, w.last)), "DATABASE_URL="+w.DB.through(r.Database),
		"NIGHTSHIFT_BOOTSTRAP_CLIENT_ID="+w.platform.ClientID, "NIGHTSHIFT_BOOTSTRAP_CLIENT_SECRET="+w.platform.ClientSecret)
	r.Start()
	return r
}

// Start runs the replica, the first time or again.
func (r *Replica) Start() {
	r.world.t.Helper()
	r.Process = spawn(r.world.t, "serve", r.env, r.world.binary(), "serve")
}

func (w *World) binary() string {
	path, err := binary()
	if err != nil {
		w.t.Fatal(err)
	}
	return path
}

// Ready waits until the replica knows a brain.
func (r *Replica) Ready(within time.Duration) {
	r.world.t.Helper()
	r.world.eventually(within, r.URL+" is ready", func() bool {
		if !r.Alive() {
			r.world.t.Fatalf("%s has ended:\n%s", r.URL, r.tail(3000))
		}
		status, err := get(r.URL + "/readyz")
		return err == nil && status == 200
	})
}

// eventually polls something that has no way to tell.
func (w *World) eventually(within time.Duration, what string, holds func() bool) time.Duration {
	w.t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > within {
			w.t.Fatalf("not within %s: %s", within, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(began)
}

// provide makes a tenant, its key and the workers' key.
func (w *World) provide() {
	w.t.Helper()
	w.must(w.caller(w.Replicas[0].URL, w.platform), "POST", "/v1/tenants", map[string]any{"name": "Acorn Archive", "slug": "acorn", "weight": 1}, nil)
	w.tenant = w.key("acorn", "tasks:read", "tasks:write", "admin:read", "admin:write")
	w.workers = w.key("", "workers:register")
}

// key makes an API key of a tenant, or of the platform.
func (w *World) key(tenant string, scopes ...string) (made identity) {
	w.t.Helper()
	c := w.callerFor(w.Replicas[0].URL, w.platform, tenant)
	w.must(c, "POST", "/v1/api-keys", map[string]any{"name": "chaos", "scopes": scopes}, &made)
	return made
}

func (w *World) caller(url string, who identity) *client.Client { return w.callerFor(url, who, "") }

func (w *World) callerFor(url string, who identity, tenant string) *client.Client {
	w.t.Helper()
	headers := map[string]string{}
	if tenant != "" {
		headers["Nightshift-Tenant"] = tenant
	}
	c, err := client.New(client.Options{Server: url, ClientID: who.ClientID, ClientSecret: who.ClientSecret, Headers: headers})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// must makes a call that nothing is meant to disturb.
func (w *World) must(c *client.Client, method, path string, in, out any) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := c.Persist(ctx, client.Call{Method: method, Path: path, In: in, Out: out}); err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// brain is the replica that decides, as the database has it, and its epoch.
func (w *World) brain() (*Replica, int) {
	w.t.Helper()
	var address string
	var epoch int
	w.DB.scan(w.t, `SELECT address, epoch FROM brain`, nil, &address, &epoch)
	for _, r := range w.Replicas {
		if strings.TrimRight(address, "/") == r.URL {
			return r, epoch
		}
	}
	w.t.Fatalf("the brain is at %q, which is none of ours", address)
	return nil, 0
}

// other is a replica that is not the given one.
func (w *World) other(than *Replica) *Replica {
	for _, r := range w.Replicas {
		if r != than && r.Alive() {
			return r
		}
	}
	w.t.Fatal("no other replica lives")
	return nil
}

// fronts are the addresses of all replicas through their links.
func (w *World) fronts() []string {
	var all []string
	for _, r := range w.Replicas {
		all = append(all, r.Front.URL())
	}
	return all
}
