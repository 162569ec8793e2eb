package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/workers"
)

func call(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(context.Background(), args, &o, &e)
	return code, o.String(), e.String()
}

func TestExitCodes(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"version":         {[]string{"version"}, exitOK},
		"help":            {[]string{"--help"}, exitOK},
		"no command":      {nil, exitUsage},
		"unknown command": {[]string{"dance"}, exitUsage},
		"unknown flag":    {[]string{"version", "--loud"}, exitUsage},
		"argument":        {[]string{"version", "now"}, exitUsage},
		"missing flag":    {[]string{"token"}, exitUsage},
		"missing file":    {[]string{"token", "--token-file", missing}, exitUsage},
	} {
		if code, out, errs := call(c.args...); code != c.code {
			t.Errorf("%s: exit %d, want %d\n%s%s", name, code, c.code, out, errs)
		}
	}
}

func TestToken(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/auth/token" || r.FormValue("grant_type") != "client_credentials" ||
			r.FormValue("client_id") != "key_1" || r.FormValue("client_secret") != "se:cret" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"code":"invalid_client","detail":"unknown client or wrong secret"}`))
			return
		}
		_, _ = w.Write([]byte(`{"access_token":"scope=` + r.FormValue("scope") + `","token_type":"Bearer","expires_in":900}`))
	}))
	defer server.Close()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	good, bad, torn := write("good", "key_1:se:cret\n"), write("bad", "key_1:wrong"), write("torn", "key_1")

	code, out, errs := call("token", "--server", server.URL+"/", "--token-file", good, "--ca-file", ca, "--scope", "tasks:read")
	if code != exitOK || out != "scope=tasks:read\n" {
		t.Errorf("exit %d, %q %q", code, out, errs)
	}
	if code, _, errs := call("token", "--server", server.URL, "--token-file", bad, "--ca-file", ca); code != exitFailure || !strings.Contains(errs, "invalid_client") || strings.Contains(errs, "wrong:") {
		t.Errorf("wrong secret: exit %d, %q", code, errs)
	}
	if code, _, errs := call("token", "--server", server.URL, "--token-file", good); code != exitFailure || !strings.Contains(errs, "certificate") {
		t.Errorf("unknown authority: exit %d, %q", code, errs)
	}
	if code, _, errs := call("token", "--server", server.URL, "--token-file", torn, "--ca-file", ca); code != exitUsage {
		t.Errorf("torn file: exit %d, %q", code, errs)
	}
	if code, _, errs := call("token", "--server", server.URL, "--token-file", good, "--ca-file", good); code != exitUsage || !strings.Contains(errs, "--ca-file") {
		t.Errorf("no authority in the file: exit %d, %q", code, errs)
	}
}

func TestPrepareGivesAnEmbeddedDatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the account that runs PostgreSQL must get in
		t.Fatal(err)
	}
	c, err := loadConfig([]string{"NIGHTSHIFT_DATA=" + filepath.Join(dir, "night")}, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	g, err := prepare(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	path := filepath.Join(c.Data, "database.url")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("database.url: %v, %v", info, err)
	}
	conn, err := pgx.Connect(ctx, strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if len(g.config.SecretKey) != 32 || g.config.DatabaseURL != strings.TrimSpace(string(content)) {
		t.Error("the ground lacks its key or its database")
	}
	if _, err := prepare(ctx, c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second server on the same folder: %v", err)
	}
}

func TestWorkerFlags(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("key_1:secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NIGHTSHIFT_EGRESS_ALLOW", "10.0.0.0/8")
	var o workers.Options
	var a agentOptions
	work := func(args ...string) error {
		cmd := newWorkerCommand(func(_ context.Context, options workers.Options, agent agentOptions) error {
			o, a = options, agent
			return nil
		})
		cmd.SetArgs(append([]string{"--server", "https://night.example", "--token-file", key}, args...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return cmd.ExecuteContext(context.Background())
	}
	if err := work("--name", "gpu-1", "--slots", "io=200,compute=2", "--gpus", "16384,24576", "--labels", "region=eu",
		"--models", "small", "--allow-command", "true,echo"); err != nil {
		t.Fatal(err)
	}
	if o.ClientID != "key_1" || o.ClientSecret != "secret" || o.Name != "gpu-1" || o.SlotsByKind["io"] != 200 || o.Slots != 0 ||
		len(o.Resources.GPUs) != 2 || o.Resources.GPUs[1].VRAMMB != 24576 || o.Labels["region"] != "eu" || o.LeaseSeconds != 30 || !o.KeepSignals {
		t.Errorf("worker: %+v", o)
	}
	if len(a.allowCommands) != 2 || len(a.egressAllow) != 1 || a.egressAllow[0].String() != "10.0.0.0/8" {
		t.Errorf("agent: %+v", a)
	}
	for _, bad := range [][]string{{"--slots", "0"}, {"--slots", "io=many"}, {"--lease-seconds", "1"}, {"--gpus", "0"}} {
		if err := work(bad...); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

func TestServeEndsWithItsDatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NIGHTSHIFT_DATA", filepath.Join(dir, "night"))
	t.Setenv("DATABASE_URL", "")
	cmd := newServeCommand(func(ctx context.Context, g *ground) error {
		if err := syscall.Kill(g.embedded.PID(), syscall.SIGKILL); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	cmd.SetArgs([]string{})
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	ctx, enough := context.WithTimeout(t.Context(), 2*time.Minute)
	defer enough()
	if err := cmd.ExecuteContext(ctx); !errors.Is(err, errDatabaseEnded) {
		t.Errorf("the database was killed, and serve ended with %v", err)
	}
}
