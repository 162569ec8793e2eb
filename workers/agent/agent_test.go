package agent

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nightshift/workers"
	"nightshift/workers/client"
	"nightshift/workers/run"
	"nightshift/workers/workertest"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func credentials(o workers.Options) workers.Options {
	o.ClientID, o.ClientSecret, o.Logger, o.KeepSignals = workertest.ClientID, workertest.ClientSecret, quiet(), true
	return o
}

func TestUsageIsChecked(t *testing.T) {
	at := "http://127.0.0.1:1"
	for want, o := range map[string]Options{
		"is not an address":    {Worker: workers.Options{Server: "ftp://x"}},
		"task type":            {Worker: workers.Options{Server: at, TaskTypes: []string{"no.such"}}},
		"name of its model":    {Worker: workers.Options{Server: at}, Embedding: run.Endpoint{URL: "http://127.0.0.1:2/v1"}},
		"ca file":              {Worker: workers.Options{Server: at, CAFile: "/no/such"}},
		"allowed command":      {Worker: workers.Options{Server: at}, Commands: []string{"no-such-program-here"}},
		"is no file name":      {Worker: workers.Options{Server: at, Name: "../w"}, Data: t.TempDir()},
		"must be 2 to 300":     {Worker: workers.Options{Server: at, LeaseSeconds: 1}},
		"client id and client": {Worker: workers.Options{Server: at, Name: "anonymous"}},
	} {
		if o.Worker.Name != "anonymous" {
			o.Worker = credentials(o.Worker)
		}
		if err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v ended with %v, want %q", o, err, want)
		}
	}
}

func TestTwoOfOneNameAreRefused(t *testing.T) {
	data := t.TempDir()
	first, err := occupy(data, "w")
	if err != nil {
		t.Fatal(err)
	}
	id, err := first.instance("w")
	if err != nil {
		t.Fatal(err)
	}
	err = Run(context.Background(), Options{Worker: credentials(workers.Options{Server: "http://127.0.0.1:1", Name: "w"}), Data: data})
	if err == nil || !strings.Contains(err.Error(), "already runs") {
		t.Errorf("a second one ended with %v", err)
	}
	first.Close()
	again, err := occupy(data, "w")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if same, err := again.instance("w"); err != nil || same != id {
		t.Errorf("the id was %s and is %s, %v", id, same, err)
	}
}

func TestTheMachineIsFoundOut(t *testing.T) {
	if detectCPU() < 1 || detectDiskMB(t.TempDir()) < 1 {
		t.Errorf("found %d CPUs, %d MB of disk", detectCPU(), detectDiskMB(t.TempDir()))
	}
	if _, err := os.Stat("/proc/meminfo"); err == nil && detectMemoryMB() < 64 {
		t.Errorf("found %d MB of memory", detectMemoryMB())
	}
}

// A worker trusts a self-signed server through its CA file, and only so.
func TestWorksOverHTTPSWithACAFile(t *testing.T) {
	s := workertest.New(t)
	inner, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(inner))
	front.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(io.Discard, nil), slog.LevelError)
	front.StartTLS()
	defer front.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Data: t.TempDir(), Worker: credentials(workers.Options{
		Server: front.URL, CAFile: ca, Name: "w", Slots: 1, LeaseSeconds: 3, TaskTypes: []string{"text.*"},
	})}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	task := s.Submit("text.summarize", map[string]any{"text": "One sentence is here. Another one is there."})
	s.AwaitState(task, "succeeded")
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(workertest.Patience):
		t.Fatal("the worker did not end")
	}
	stranger, err := client.New(client.Options{Server: front.URL, ClientID: "a", ClientSecret: "b"})
	if err != nil {
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(context.Background(), workertest.Patience)
	defer stop()
	var unreachable *client.Unreachable
	if _, err := stranger.Do(short, client.Call{Method: http.MethodGet, Path: "/v1/workers"}); !errors.As(err, &unreachable) {
		t.Errorf("a stranger to the authority got %v", err)
	}
}
