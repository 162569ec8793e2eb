package local

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func archive(t *testing.T, files map[string]string) (content []byte, sum string) {
	t.Helper()
	var buffer bytes.Buffer
	packed := gzip.NewWriter(&buffer)
	writer := tar.NewWriter(packed)
	for name, text := range files {
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(writer.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	hash := sha512.Sum512(buffer.Bytes())
	return buffer.Bytes(), "sha512-" + base64.StdEncoding.EncodeToString(hash[:])
}

func serve(t *testing.T, content []byte) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	t.Cleanup(server.Close)
	return server.URL
}

func TestFetchUnpacks(t *testing.T) {
	content, sum := archive(t, map[string]string{
		"package/package.json":            "{}",
		"package/native/bin/postgres":     "a program",
		"package/native/lib/libpq.so.5.1": "a library",
		"package/native/pg-symlinks.json": `[{"source":"native/lib/libpq.so.5.1","target":"native/lib/libpq.so.5"}]`,
	})
	dst := filepath.Join(t.TempDir(), "binaries", "15")
	if err := fetch(context.Background(), serve(t, content), sum, dst); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dst, "bin", "postgres")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the program: %v, %v", info, err)
	}
	if text, err := os.ReadFile(filepath.Join(dst, "lib", "libpq.so.5")); err != nil || string(text) != "a library" {
		t.Errorf("the link: %q, %v", text, err)
	}
}

func TestFetchRefuses(t *testing.T) {
	good, sum := archive(t, map[string]string{"package/native/bin/postgres": "a program"})
	hostile, hostileSum := archive(t, map[string]string{"package/native/../../../evil": "outside"})
	other := "sha512-" + strings.Repeat("A", 86) + "=="
	for name, c := range map[string]struct {
		content []byte
		sum     string
	}{
		"another checksum": {good, other},
		"cut short":        {good[:len(good)/2], sum},
		"a path outside":   {hostile, hostileSum},
		"a page of HTML":   {[]byte("<html>"), sum},
	} {
		parent := t.TempDir()
		if err := fetch(context.Background(), serve(t, c.content), c.sum, filepath.Join(parent, "binaries", "15")); err == nil {
			t.Errorf("%s: unpacked", name)
		}
		left, err := filepath.Glob(filepath.Join(parent, "*", "*"))
		if err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
		if _, err := os.Stat(filepath.Join(parent, "evil")); err == nil {
			t.Errorf("%s: wrote outside its folder", name)
		}
	}
}

func TestFetchLeavesAMuteMirror(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := fetch(ctx, server.URL, "sum", filepath.Join(t.TempDir(), "b", "15")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a mute mirror: %v", err)
	}
}
