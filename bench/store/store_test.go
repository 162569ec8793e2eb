package store_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"nightshift/bench/store"
	"nightshift/models/postgres/local"
)

// TestMeasure runs the whole measurement, shortened, on a durable server of its own. A test judges no speed: the figures are printed,
// and what does not depend on the machine is held.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds of measuring")
	}
	root, err := os.MkdirTemp("", "nightshift-bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	// No checkpoint comes while it measures, however long that takes: pages are written whole after one.
	server, err := local.Start(t.Context(), local.Options{Root: root + "/db", Settings: map[string]string{"checkpoint_timeout": "1d", "max_wal_size": "8GB"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	var out strings.Builder
	f, err := store.Measure(t.Context(), store.Options{DSN: server.DSN(), Admin: server.AdminDSN(), Rounds: 1, Tasks: 2000, Patience: time.Minute}, &out)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	if f.RowWrites > 5.1 {
		t.Errorf("%.2f row writes a task", f.RowWrites)
	}
	if f.WAL > 2700 {
		t.Errorf("%.0f bytes of WAL a task", f.WAL)
	}
}
