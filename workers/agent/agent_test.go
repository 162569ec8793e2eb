package agent

import (
	"context"
	"encoding/pem"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/workertest"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func tokenFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestArgsReadBack(t *testing.T) {
	want := Options{
		Server: "https://a:1", TokenFile: "/t", Name: "n", Lanes: []string{"io", "batch"}, Slots: 3, CPU: 1.5, GPU: 1, VRAMMB: 8192,
		Models: []string{"m"}, Labels: map[string]string{"zone": "a", "size": "b"}, Data: "/d", Documents: []string{"/x", "/y"}, Commands: []string{"cat"},
	}
	var got Options
	f := flag.NewFlagSet("worker", flag.ContinueOnError)
	got.Bind(f)
	if err := f.Parse(want.Args()); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v read back as %+v", want.Args(), got)
	}
	if args := (Options{}).Args(); len(args) != 0 {
		t.Errorf("no options became %v", args)
	}
}

func TestUsageIsChecked(t *testing.T) {
	ok := tokenFile(t, "id:secret\n")
	for want, o := range map[string]Options{
		"--token-file is needed":  {Server: "http://127.0.0.1:1"},
		"client_id:client_secret": {Server: "http://127.0.0.1:1", TokenFile: tokenFile(t, "nothing")},
		"needs --vram-mb":         {Server: "http://127.0.0.1:1", TokenFile: ok, GPU: 1},
		"is not an address":       {Server: "ftp://x", TokenFile: ok},
		"task type":               {Server: "http://127.0.0.1:1", TokenFile: ok, TaskTypes: []string{"no.such"}},
		"needs --embedding-model": {Server: "http://127.0.0.1:1", TokenFile: ok, EmbeddingURL: "http://127.0.0.1:2/v1"},
		"ca file":                 {Server: "http://127.0.0.1:1", TokenFile: ok, CAFile: "/no/such"},
	} {
		o.Name = "w"
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
	err = Run(context.Background(), Options{Server: "http://127.0.0.1:1", TokenFile: tokenFile(t, "a:b"), Name: "w", Data: data})
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
	o := Options{
		Server: front.URL, TokenFile: tokenFile(t, workertest.ClientID+":"+workertest.ClientSecret), CAFile: ca,
		Name: "w", Slots: 1, LeaseSeconds: 3, Data: t.TempDir(), TaskTypes: []string{"text.summarize"}, Logger: quiet(),
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	task := s.Submit("text.summarize", map[string]any{"text": "One sentence is here. Another one is there."})
	s.AwaitState(task, "succeeded")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	stranger, err := client.New(client.Options{Server: front.URL, ClientID: "a", ClientSecret: "b"})
	if err != nil {
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	var unreachable *client.Unreachable
	if _, err := stranger.Do(short, client.Call{Method: http.MethodGet, Path: "/v1/workers"}); !errors.As(err, &unreachable) {
		t.Errorf("a stranger to the authority got %v", err)
	}
}
