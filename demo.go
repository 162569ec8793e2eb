package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/night"
)

// demoTenants are the customers of the demo with their weights.
var demoTenants = []struct {
	slug, name string
	weight     int
}{{"acorn", "Acorn Archive", 5}, {"birch", "Birch Books", 2}}

// demoState is what a demo keeps between two runs: who may come in. It stands in the data folder, mode 0600.
type demoState struct {
	ClientID      string             `json:"client_id"`
	ClientSecret  string             `json:"client_secret"`
	AdminEmail    string             `json:"admin_email"`
	AdminPassword string             `json:"admin_password"`
	Keys          map[string]demoKey `json:"keys"` // by tenant; "workers" is the platform's key for workers
}

type demoKey struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
}

// demo serves, provides two tenants and four workers, and works through a night of documents.
func demo(ctx context.Context, g *ground, o demoOptions) error {
	state, err := openDemoState(g.config)
	if err != nil {
		return err
	}
	g.config.BootstrapClientID, g.config.BootstrapClientSecret = state.ClientID, state.ClientSecret
	g.config.AdminEmail, g.config.AdminPassword = state.AdminEmail, state.AdminPassword
	r, err := newReplica(ctx, g)
	if err != nil {
		return err
	}
	defer r.close()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	served := make(chan error, 1)
	go func() { served <- r.run(serving) }()
	working, stopWorking := context.WithCancel(ctx)
	defer stopWorking()
	worked := make(chan error, 1)
	go func() { worked <- workNight(working, r, state, o) }()
	select {
	case err = <-worked:
	case err = <-served:
		stopWorking()
		return errors.Join(err, <-worked)
	}
	stopServing()
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil // it was asked to stop
	}
	return errors.Join(err, <-served)
}

// workNight is what happens beside the server: keys, workers, the night, and its end.
func workNight(ctx context.Context, r *replica, state *demoState, o demoOptions) error {
	if err := state.provide(ctx, r); err != nil {
		return err
	}
	data := r.ground.config.Data
	tokenFile := filepath.Join(data, "workers.key")
	key := state.Keys["workers"]
	if err := writePrivate(tokenFile, []byte(key.ClientID+":"+key.ClientSecret+"\n")); err != nil {
		return err
	}
	state.welcome(r)
	fleet, err := night.StartFleet(ctx, night.FleetOptions{
		Server: r.url, CAFile: r.caFile, TokenFile: tokenFile, DataDir: data, Docs: o.docs, Logger: r.ground.log,
	})
	if err != nil {
		return err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		_ = fleet.Stop(stop) // what does not end is killed
	}()
	go fleet.Keep(ctx)
	summary, err := night.Run(ctx, night.Options{
		Server: r.url, CAFile: r.caFile, Tenants: state.tenants(), Docs: o.docs, Limit: o.docsLimit, DataDir: data, Out: os.Stdout,
	})
	if err != nil {
		return err
	}
	summary.Print(os.Stdout)
	if o.once {
		return failedNight(summary)
	}
	state.farewell(r)
	<-ctx.Done()
	return ctx.Err()
}

// failedNight says what of a night did not go as it should. Dead letters of bad inputs are part of the night.
func failedNight(s night.Summary) error {
	for _, t := range s.Tenants {
		switch {
		case t.Report == "":
			return fmt.Errorf("the night of %s wrote no report", t.Slug)
		case t.Evaluation == nil:
			return fmt.Errorf("the night of %s was not evaluated", t.Slug)
		}
	}
	return nil
}

// openDemoState reads who may come in, or makes it up the first time. What the environment says goes first.
func openDemoState(c Config) (*demoState, error) {
	path := filepath.Join(c.Data, "demo.json")
	s := &demoState{Keys: map[string]demoKey{}}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.ClientID, s.ClientSecret = "demo", rand.Text()+rand.Text()
		s.AdminEmail, s.AdminPassword = "operator@example.org", strings.ToLower(rand.Text()[:20])
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(text, s); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if c.BootstrapClientID != "" {
		s.ClientID, s.ClientSecret = c.BootstrapClientID, c.BootstrapClientSecret
	}
	if c.AdminEmail != "" {
		s.AdminEmail, s.AdminPassword = c.AdminEmail, c.AdminPassword
	}
	return s, s.save(c.Data)
}

func (s *demoState) save(data string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writePrivate(filepath.Join(data, "demo.json"), append(text, '\n'))
}

// provide makes the tenants and their keys through the public API, as far as they are not there yet.
func (s *demoState) provide(ctx context.Context, r *replica) error {
	for _, t := range demoTenants {
		platform, err := s.client(r, "")
		if err != nil {
			return err
		}
		call := client.Call{Method: "POST", Path: "/v1/tenants", In: map[string]any{"slug": t.slug, "name": t.name, "weight": t.weight, "timezone": "UTC"}}
		if _, err := platform.Persist(ctx, call); err != nil && client.Code(err) != "state_conflict" {
			return fmt.Errorf("making the tenant %s: %w", t.slug, err)
		}
		if err := s.key(ctx, r, t.slug, []string{"tasks:read", "tasks:write", "admin:read"}); err != nil {
			return err
		}
	}
	return s.key(ctx, r, "workers", []string{"workers:register"})
}

// key makes the key of a tenant, or the platform's for workers, unless the known one still works.
func (s *demoState) key(ctx context.Context, r *replica, name string, scopes []string) error {
	if known, ok := s.Keys[name]; ok {
		c, err := client.New(client.Options{Server: r.url, CAFile: r.caFile, ClientID: known.ClientID, ClientSecret: known.ClientSecret})
		if err != nil {
			return err
		}
		if _, err = c.Persist(ctx, client.Call{Method: "GET", Path: "/v1/whoami"}); err == nil {
			return nil
		}
	}
	tenant := name
	if name == "workers" {
		tenant = ""
	}
	c, err := s.client(r, tenant)
	if err != nil {
		return err
	}
	var made demoKey
	if _, err := c.Persist(ctx, client.Call{Method: "POST", Path: "/v1/api-keys", In: map[string]any{"name": "demo-" + name, "scopes": scopes}, Out: &made}); err != nil {
		return fmt.Errorf("making the key of %s: %w", name, err)
	}
	s.Keys[name] = made
	return s.save(r.ground.config.Data)
}

func (s *demoState) client(r *replica, tenant string) (*client.Client, error) {
	headers := map[string]string{}
	if tenant != "" {
		headers["Nightshift-Tenant"] = tenant
	}
	return client.New(client.Options{Server: r.url, CAFile: r.caFile, ClientID: s.ClientID, ClientSecret: s.ClientSecret, Headers: headers})
}

func (s *demoState) tenants() []night.Tenant {
	var out []night.Tenant
	for _, t := range demoTenants {
		k := s.Keys[t.slug]
		out = append(out, night.Tenant{Slug: t.slug, Weight: t.weight, ClientID: k.ClientID, ClientSecret: k.ClientSecret})
	}
	return out
}

// welcome says where everything is before the night begins.
func (s *demoState) welcome(r *replica) {
	fmt.Printf(`Nightshift
  pages    %s   (%s / %s)
  tenants  %s (weight %d), %s (weight %d)
  data     %s

`, r.url, s.AdminEmail, s.AdminPassword, demoTenants[0].slug, demoTenants[0].weight, demoTenants[1].slug, demoTenants[1].weight, r.ground.config.Data)
}

// farewell says what to do with a server whose night is over.
func (s *demoState) farewell(r *replica) {
	k := s.Keys[demoTenants[0].slug]
	secure := ""
	if r.caFile != "" {
		secure = " --cacert " + r.caFile
	}
	fmt.Printf(`
The server stays up. Sign in at %[1]s with %[2]s / %[3]s, or call it:

  TOKEN=$(curl -s%[6]s -u %[4]s:%[5]s -d grant_type=client_credentials %[1]s/v1/auth/token | sed 's/.*"access_token":"\([^"]*\)".*/\1/')
  curl -s%[6]s -H "Authorization: Bearer $TOKEN" '%[1]s/v1/dead-letters'
  curl -s%[6]s -H "Authorization: Bearer $TOKEN" '%[1]s/v1/tasks?state=dead_letter&limit=5'
  curl -s%[6]s -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
       -d '{"type":"text.summarize","payload":{"text":"A long text. It has two sentences."}}' %[1]s/v1/tasks

Ctrl-C ends it; the next demo begins a new night on the same data.
`, r.url, s.AdminEmail, s.AdminPassword, k.ClientID, k.ClientSecret, secure)
}
