package store_test

import (
	"os"
	"strings"
	"testing"

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
	server, err := local.Start(t.Context(), local.Options{Root: root + "/db"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	var out strings.Builder
	f, err := store.Measure(t.Context(), store.Options{DSN: server.DSN(), Admin: server.AdminDSN(), Rounds: 1, Tasks: 2000}, &out)
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
