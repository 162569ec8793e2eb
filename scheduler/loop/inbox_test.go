package loop

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

func submitOf(tenant int32, tasks int) *call {
	return newCall(&engine.Command{ID: newID(), Tenant: tenant, Submit: &engine.Submit{Tasks: make([]engine.NewTask, tasks)}})
}

func openInbox(l Limits) *inbox {
	return newInbox(l, nil)
}

func mustPut(t *testing.T, b *inbox, calls ...*call) {
	t.Helper()
	for _, c := range calls {
		if err := b.put(c); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatFreesOthersGoesFirst(t *testing.T) {
	b := openInbox(DefaultLimits)
	submit := submitOf(1, 1)
	claim := newCall(&engine.Command{Claim: &engine.Claim{Most: 1}})
	cancel := newCall(&engine.Command{Tenant: 1, Cancel: &engine.Cancel{}})
	settle := newCall(&engine.Command{Settle: &engine.Settle{}})
	beat := newCall(&engine.Command{Heartbeat: &engine.Heartbeat{}})
	mustPut(t, b, submit, claim, cancel, settle, beat)
	if got := b.take(); !slices.Equal(got, []*call{settle, beat, cancel, claim, submit}) {
		t.Errorf("taken in another order: %v", got)
	}
	if got := b.take(); len(got) != 0 || b.depth() != 0 {
		t.Errorf("%d taken twice, %d left", len(got), b.depth())
	}
}

func TestTenantsTakeTurns(t *testing.T) {
	b := openInbox(Limits{Inbox: 1000, Commands: 6, Rows: 100, Bytes: 1000})
	var flood []*call
	for range 50 {
		flood = append(flood, submitOf(1, 1))
	}
	two, three := []*call{submitOf(2, 1), submitOf(2, 1)}, submitOf(3, 1)
	mustPut(t, b, flood...)
	mustPut(t, b, append(two, three)...)
	want := []*call{flood[0], two[0], three, flood[1], two[1], flood[2]}
	if got := b.take(); !slices.Equal(got, want) {
		t.Errorf("the flood was not held to its turns")
	}
	if got := b.take(); !slices.Equal(got, flood[3:9]) {
		t.Errorf("the rest does not come as it came in")
	}
}

func TestABatchIsBounded(t *testing.T) {
	big := func(bytes int) *call {
		return newCall(&engine.Command{Submit: &engine.Submit{Tasks: []engine.NewTask{{Payload: make([]byte, bytes)}}}})
	}
	backfill := func(rows int) *call { return newCall(&engine.Command{Backfill: &engine.Backfill{Rows: rows}}) }
	for _, c := range []struct {
		name  string
		calls []*call
		want  []int
	}{
		{"runs of schedules", []*call{backfill(60), backfill(40), backfill(1)}, []int{2, 1}},
		{"commands", []*call{submitOf(0, 1), submitOf(0, 1), submitOf(0, 1), submitOf(0, 1), submitOf(0, 1)}, []int{4, 1}},
		{"rows", []*call{submitOf(0, 60), submitOf(0, 40), submitOf(0, 1)}, []int{2, 1}},
		{"bytes", []*call{big(600), big(500), big(100)}, []int{1, 2}},
		{"one too large goes alone", []*call{submitOf(0, 5000), submitOf(0, 1)}, []int{1, 1}},
	} {
		b := openInbox(Limits{Inbox: 1000, Commands: 4, Rows: 100, Bytes: 1000})
		mustPut(t, b, c.calls...)
		for i, want := range c.want {
			if got := len(b.take()); got != want {
				t.Errorf("%s: batch %d holds %d, not %d", c.name, i, got, want)
			}
		}
	}
}

func TestATriggerWeighsWhatItMakes(t *testing.T) {
	if rows, bytes := weigh(&engine.Command{Trigger: &engine.Trigger{Rows: 60}}); rows != 60 || bytes == 0 {
		t.Errorf("a trigger of 60 rows weighs %d rows and %d bytes", rows, bytes)
	}
}

func TestAFloodIsRefusedAndOthersAreNot(t *testing.T) {
	b := openInbox(Limits{Inbox: 100, Commands: 10, Rows: 10, Bytes: 10})
	refused := map[int32]models.Code{}
	for tenant := int32(1); tenant <= 3; tenant++ {
		for range 200 {
			if err := b.put(submitOf(tenant, 1)); err != nil {
				refused[tenant] = models.CodeOf(err)
				var e *models.Error
				if !errors.As(err, &e) || e.RetryAfterSeconds == 0 {
					t.Fatalf("no Retry-After: %v", err)
				}
				break
			}
		}
	}
	if refused[1] != models.RateLimited || refused[2] != models.RateLimited || b.held[1] != 45 || b.held[2] != 30 {
		t.Errorf("refused %v, holding %v", refused, b.held)
	}
	if b.held[3] < 10 {
		t.Errorf("the last tenant got in %d only", b.held[3])
	}
	settle := func() *call { return newCall(&engine.Command{Tenant: 1, Settle: &engine.Settle{}}) }
	for b.depth() < 100 {
		mustPut(t, b, settle()) // the last tenth is for what frees others
	}
	if err := b.put(settle()); models.CodeOf(err) != models.Overloaded {
		t.Errorf("a full inbox answered %v", err)
	}
	if err := b.put(newCall(&engine.Command{Cancel: &engine.Cancel{}})); models.CodeOf(err) != models.Overloaded {
		t.Errorf("a full inbox answered %v", err)
	}
	for b.depth() > 0 {
		b.take()
	}
	if len(b.held) != 0 {
		t.Errorf("held %v after all was taken", b.held)
	}
	mustPut(t, b, submitOf(1, 1))
}

func TestATenantThatBrokeABatchStandsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openInbox(DefaultLimits)
		b.isolate(7)
		for range 3 {
			mustPut(t, b, submitOf(7, 1), submitOf(8, 1), submitOf(9, 1))
		}
		seen := 0
		for b.depth() > 0 {
			batch := b.take()
			alone := 0
			for _, c := range batch {
				if c.cmd.Tenant == 7 {
					alone++
				}
			}
			if alone != 0 && alone != len(batch) {
				t.Fatalf("%d of %d commands are of the tenant that stands alone", alone, len(batch))
			}
			seen += len(batch)
		}
		if seen != 9 {
			t.Errorf("%d of 9 commands were taken", seen)
		}
		time.Sleep(aloneFor + time.Second)
		mustPut(t, b, submitOf(7, 1), submitOf(8, 1))
		if got := len(b.take()); got != 2 {
			t.Errorf("after ten minutes a batch holds %d", got)
		}
	})
}

func TestWhatIsAbandonedIsNotTaken(t *testing.T) {
	b := openInbox(DefaultLimits)
	left, stays := submitOf(1, 1), submitOf(1, 1)
	mustPut(t, b, left, stays)
	left.leave()
	if got := b.take(); !slices.Equal(got, []*call{stays}) {
		t.Errorf("took %v", got)
	}
}

func TestClosingAnswersWhatWaits(t *testing.T) {
	b := openInbox(DefaultLimits)
	c := submitOf(1, 1)
	mustPut(t, b, c)
	b.close(notYet())
	if o := <-c.done; models.CodeOf(o.err) != models.Unavailable {
		t.Errorf("answered %+v", o)
	}
	if err := b.put(submitOf(1, 1)); models.CodeOf(err) != models.Unavailable {
		t.Errorf("a closed inbox answered %v", err)
	}
	b.open()
	mustPut(t, b, submitOf(1, 1))
}
