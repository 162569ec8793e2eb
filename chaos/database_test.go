package chaos

import (
	"context"
	"testing"
	"time"
)

// The database crashes twice under load: what was acknowledged is there afterwards.
func TestDatabaseCrash(t *testing.T) {
	w := NewWorld(t, 2)
	w.puller(32, 15, 10*time.Millisecond, w.fronts()...)
	w.puller(32, 15, 10*time.Millisecond, w.fronts()...)
	c := w.customer(w.tenant, w.fronts()...)
	ctx, stop := context.WithCancel(context.Background())
	wait := c.flow(ctx, 8, 0, 10*time.Millisecond)
	var away, back []time.Duration
	for i := range 2 {
		before := len(c.with(Acked))
		w.eventually(patience, "work flows", func() bool { return len(c.with(Acked)) > before+200 })
		began := time.Now()
		if err := w.DB.cluster.crash(); err != nil {
			t.Fatalf("crash %d: %v", i, err)
		}
		away = append(away, time.Since(began).Round(time.Millisecond))
		up, before := time.Now(), len(c.with(Acked))
		w.eventually(patience, "submits are acknowledged again", func() bool { return len(c.with(Acked)) > before })
		back = append(back, time.Since(up).Round(time.Millisecond))
	}
	stop()
	wait()
	for _, r := range w.Replicas {
		if !r.Alive() {
			t.Errorf("T7: %s ended with its database", r.URL)
		}
	}
	t.Logf("the database was away for %v; submits were acknowledged %v after it answered again", away, back)
	w.Finish(t, c)
}
