package forward

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
)

func TestFollowHearsEachCommit(t *testing.T) {
	commits := make(chan int64, 1)
	handle := Batches(func(context.Context) <-chan int64 { return commits }, func(string) error { return nil })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		status, out := handle(r.Context(), body, Sender{})
		w.WriteHeader(status)
		_, _ = w.Write(out)
	}))
	defer s.Close()
	defer close(commits) // a request that was just made would wait for the next commit
	ctx, stop := context.WithCancel(t.Context())
	heard := New(Options{Role: at(s.URL), Token: token}).Follow(ctx)
	for _, batch := range []int64{4, 5, 11} {
		commits <- batch
		if got := received(t, heard); got != batch {
			t.Errorf("heard %d, not %d", got, batch)
		}
	}
	stop()
	for range heard {
	}
}

func TestFollowRestsWhileNobodyElseDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		asked := 0
		d := New(Options{Token: token, Role: func() (bool, string) {
			if asked++; asked == 5 {
				stop()
			}
			return here()
		}})
		for range d.Follow(ctx) {
			t.Error("something was heard")
		}
		if asked != 5 {
			t.Errorf("asked %d times", asked)
		}
	})
}
