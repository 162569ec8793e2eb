package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nightshift/models"
)

// ledger is a table of packed rows that grows, and says when.
type ledger struct {
	mu    sync.Mutex
	rows  []Packed
	reads int
	fail  error
}

func (b *ledger) add(batch int64, env int32, names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	row := Packed{Batch: batch, Env: env}
	for _, n := range names {
		row.Items = append(row.Items, models.Event{Name: n})
	}
	b.rows = append(b.rows, row)
}

func (b *ledger) read(_ context.Context, envs []int32, after int64, limit int) ([]Packed, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	if b.fail != nil {
		return nil, b.fail
	}
	var out []Packed
	for _, row := range b.rows {
		if row.Batch > after && (envs == nil || slices.Contains(envs, row.Env)) && len(out) < limit {
			out = append(out, row)
		}
	}
	return out, nil
}

func (b *ledger) tail(context.Context) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rows) == 0 {
		return 0, nil
	}
	return b.rows[len(b.rows)-1].Batch, nil
}

func start(t *testing.T, o Options) *Relay {
	r := New(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

func take(t *testing.T, ch <-chan Event, n int) []string {
	t.Helper()
	var got []string
	for range n {
		select {
		case e, ok := <-ch:
			if !ok {
				t.Fatalf("cut after %v", got)
			}
			got = append(got, e.Position.String()+" "+e.Name)
		case <-time.After(time.Minute): // of the bubble's clock
			t.Fatalf("only %v came", got)
		}
	}
	return got
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestPositions(t *testing.T) {
	for _, p := range []Position{{0, 0}, {7, 12}, {1 << 40, 3}} {
		got, err := ParsePosition(p.String())
		if err != nil || got != p {
			t.Errorf("%v came back as %v, %v", p, got, err)
		}
	}
	for _, bad := range []string{"", "7", "7.", ".1", "-1.0", "1.-1", "07.1", "1.1.1", "a.b", "1.99999999999", "+1.1"} {
		if _, err := ParsePosition(bad); models.CodeOf(err) != models.InvalidCursor {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestFollowsWhatIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ledger{}
		b.add(3, 1, "old")
		wake := make(chan int64)
		r := start(t, Options{Read: b.read, Tail: b.tail, Wakes: []<-chan int64{wake}, Poll: time.Hour})
		one := r.Subscribe(t.Context(), Filter{Envs: []int32{1}}, Live)
		all := r.Subscribe(t.Context(), Filter{}, Live)
		synctest.Wait()
		b.add(5, 0, "brain.changed")
		b.add(5, 1, "task.created", "task.ready")
		b.add(5, 2, "task.created")
		wake <- 5
		same(t, take(t, one, 2), "5.0 task.created", "5.1 task.ready")
		same(t, take(t, all, 4), "5.0 brain.changed", "5.1 task.created", "5.2 task.ready", "5.3 task.created")
		b.add(9, 1, "task.started")
		wake <- 9
		same(t, take(t, one, 1), "9.0 task.started")
		close(wake)
	})
}

func TestPollsWithoutAWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ledger{}
		r := start(t, Options{Read: b.read})
		ch := r.Subscribe(t.Context(), Filter{}, Live)
		synctest.Wait()
		b.add(1, 1, "task.created")
		began := time.Now()
		same(t, take(t, ch, 1), "1.0 task.created")
		if took := time.Since(began); took > pollEvery {
			t.Errorf("it came after %v", took)
		}
	})
}

func TestResumesAfterAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ledger{}
		for batch := int64(1); batch <= 1200; batch++ { // more than two pages
			b.add(batch, int32(batch%2), "a", "b")
		}
		r := start(t, Options{Read: b.read, Tail: b.tail, Buffer: 4})
		ch := r.Subscribe(t.Context(), Filter{Envs: []int32{1}}, Position{3, 0})
		var want []string
		want = append(want, "3.1 b")
		for batch := 5; batch < 1200; batch += 2 {
			want = append(want, fmt.Sprintf("%d.0 a", batch), fmt.Sprintf("%d.1 b", batch))
		}
		same(t, take(t, ch, len(want)), want...)
		synctest.Wait()
		b.add(1201, 1, "live")
		same(t, take(t, ch, 1), "1201.0 live")
	})
}

// A listener that joins while much is written gets everything once, whenever it joined.
func TestNothingIsLostOrDoubledWhileJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ledger{}
		r := start(t, Options{Read: b.read, Poll: 3 * time.Millisecond})
		const batches = 400
		var wg sync.WaitGroup
		wg.Go(func() {
			for batch := int64(1); batch <= batches; batch++ {
				b.add(batch, 1+int32(batch%7/6), "x") // every seventh of another environment
				time.Sleep(time.Millisecond)
			}
		})
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i*17) * time.Millisecond)
				env := int32(i%2 + 1)
				ch := r.Subscribe(t.Context(), Filter{Envs: []int32{env}}, Position{int64(i), 0})
				for want := int64(i + 1); want <= batches; want++ {
					if 1+int32(want%7/6) != env {
						continue
					}
					if e, ok := <-ch; !ok || e.Position.Batch != want {
						t.Errorf("listener %d got %v (%v), wanted batch %d", i, e.Position, ok, want)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestASlowListenerIsCutAndResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ledger{}
		r := start(t, Options{Read: b.read, Buffer: 3})
		slow := r.Subscribe(t.Context(), Filter{}, Live)
		quick := r.Subscribe(t.Context(), Filter{}, Live)
		synctest.Wait()
		for batch := int64(1); batch <= 2; batch++ {
			b.add(batch, 1, "a", "b")
			same(t, take(t, quick, 2), fmt.Sprintf("%d.0 a", batch), fmt.Sprintf("%d.1 b", batch))
		}
		var last Position
		n := 0
		for e := range slow { // ends: it was cut
			last, n = e.Position, n+1
		}
		if n != 2 || last != (Position{1, 1}) {
			t.Fatalf("it got %d events, the last at %v", n, last)
		}
		same(t, take(t, r.Subscribe(t.Context(), Filter{}, last), 2), "2.0 a", "2.1 b")
	})
}

// With nobody to hear them, events are not read; who comes later begins where things stand.
func TestNothingIsReadForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ledger{}
		wake := make(chan int64)
		r := start(t, Options{Read: b.read, Tail: b.tail, Wakes: []<-chan int64{wake}})
		for batch := int64(1); batch <= 50; batch++ {
			b.add(batch, 1, "unheard")
			wake <- batch
		}
		time.Sleep(5 * time.Second)
		if b.reads != 0 {
			t.Errorf("%d reads for nobody", b.reads)
		}
		ch := r.Subscribe(t.Context(), Filter{Envs: []int32{1}}, Live)
		synctest.Wait()
		b.add(51, 1, "heard")
		b.add(51, 2, "another's")
		wake <- 51
		same(t, take(t, ch, 1), "51.0 heard")
		same(t, take(t, r.Subscribe(t.Context(), Filter{}, Position{50, 0}), 2), "51.0 heard", "51.1 another's")
		close(wake)
	})
}

func TestFilters(t *testing.T) {
	workflow, task := models.ID{1}, models.ID{2}
	rows := []Packed{
		{Batch: 4, Env: 1, Items: []models.Event{{Name: "task.created", Task: task}, {Name: "workflow.started", Workflow: workflow}}},
		{Batch: 4, Env: 2, Items: []models.Event{{Name: "task.created", Task: task, Workflow: workflow}}},
	}
	for _, c := range []struct {
		filter Filter
		want   []string
	}{
		{Filter{}, []string{"4.0", "4.1", "4.2"}},
		{Filter{Envs: []int32{2}}, []string{"4.0"}},
		{Filter{Envs: []int32{}}, nil},
		{Filter{Workflow: workflow}, []string{"4.1", "4.2"}},
		{Filter{Task: task, Envs: []int32{1}}, []string{"4.0"}},
		{Filter{Names: []string{"workflow.*"}}, []string{"4.1"}},
	} {
		events, _ := c.filter.pick(rows, Position{})
		var got []string
		for _, e := range events {
			got = append(got, e.Position.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v picked %v, not %v", c.filter, got, c.want)
		}
	}
}

func TestResetWhenHistoryIsNoLongerKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ledger{}
		b.add(50, 1, "kept")
		oldest := func(context.Context) (int64, error) { return 40, nil }
		r := start(t, Options{Read: b.read, Tail: b.tail, Oldest: oldest})
		ch := r.Subscribe(t.Context(), Filter{Envs: []int32{1}}, Position{7, 2})
		if e := <-ch; !e.Reset {
			t.Errorf("the first is %+v", e)
		}
		same(t, take(t, ch, 1), "50.0 kept")
		same(t, take(t, r.Subscribe(t.Context(), Filter{}, Position{39, 0}), 1), "50.0 kept")
	})
}

func TestAFailingReadIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ledger{fail: errors.New("no database")}
		r := start(t, Options{Read: b.read})
		ch := r.Subscribe(t.Context(), Filter{}, Live)
		time.Sleep(5 * time.Second)
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		b.add(1, 1, "after")
		same(t, take(t, ch, 1), "1.0 after")
	})
}

func TestEveryChannelEndsWithItsContextAndWithTheRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ledger{}
		r := New(Options{Read: b.read})
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = r.Run(ctx) }()
		own, leave := context.WithCancel(t.Context())
		left := r.Subscribe(own, Filter{}, Live)
		stays := r.Subscribe(t.Context(), Filter{}, Live)
		synctest.Wait()
		leave()
		if _, ok := <-left; ok {
			t.Error("an event came out of nothing")
		}
		stop()
		if _, ok := <-stays; ok {
			t.Error("an event came out of nothing")
		}
		if _, ok := <-r.Subscribe(t.Context(), Filter{}, Live); ok {
			t.Error("a stopped relay gave an event")
		}
	})
}
