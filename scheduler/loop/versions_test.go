package loop

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"nightshift/migrations"
	"nightshift/models"
	"nightshift/models/postgres"
)

// diary keeps what a replica logs.
type diary struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *diary) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *diary) has(word string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), word)
}

// versioned starts a replica that claims to know the schema up to a step.
func (h *house) versioned(address string, known int64) (*Loop, *postgres.Writer, *diary, func()) {
	h.Helper()
	db, err := postgres.Open(context.Background(), postgres.Options{URL: h.dsn, Known: known, ConnectTimeout: patience, BatchTimeout: patience})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(db.Close)
	store, log := db.Writer(), &diary{}
	h.Cleanup(store.Close)
	l, stop := runs(h.T, store, Options{Address: address, Logger: slog.New(slog.NewTextHandler(log, nil))})
	return l, store, log, stop
}

// A replica that knows less than the database has never decides, nor can it raise the epoch; one that knows as much takes
// over from a brain that does not at once, though that one lives.
func TestAnOlderVersionDoesNotDecide(t *testing.T) {
	h := newHouse(t)
	last := migrations.Last()
	_, writer, log, _ := h.versioned("https://old", last-1)
	h.await("the older replica to say why it does not decide", func() bool { return log.has("version_behind") })
	one, _, _, stop := h.versioned("https://one", last)
	h.until(one)
	stop() // it hands over, and the older one is alone
	row, err := writer.Brain(t.Context())
	if err != nil || row.Epoch != 1 || row.RenewedAt != 0 || row.Schema != last || !row.Newer() {
		t.Fatalf("the row says %+v, %v", row, err)
	}
	if _, err := writer.TakeOver(t.Context(), row, "https://old"); models.CodeOf(err) != models.FenceLost {
		t.Errorf("the older one took over: %v", err)
	}
	two, _, _, _ := h.versioned("https://two", last)
	h.until(two)
	if role := two.Role(); role.Epoch != 2 {
		t.Errorf("somebody decided between: %+v", role)
	}

	err = h.db.Platform().Write(t.Context(), func(tx pgx.Tx) error { // as if it were of the version before
		_, err := tx.Exec(t.Context(), `UPDATE brain SET schema = schema - 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	three, _, _, _ := h.versioned("https://three", last)
	h.until(three)
	if role := three.Role(); role.Epoch != 3 {
		t.Errorf("the newer one: %+v", role)
	}
	h.await("the brain before to step down", func() bool { return !two.Role().Brain })
}
