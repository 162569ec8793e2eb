package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"nightshift/workers/protocol"
)

// serving answers tokens, and leaves the rest to a handler.
func serving(t *testing.T, life int, rest http.HandlerFunc) (*Client, *atomic.Int32) {
	t.Helper()
	var issued atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/auth/token", func(w http.ResponseWriter, r *http.Request) {
		var in protocol.TokenRequest
		if json.NewDecoder(r.Body).Decode(&in) != nil || in.GrantType != "client_credentials" || in.ClientSecret != "s:with:colons" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"code":"invalid_client","detail":"unknown client"}`))
			return
		}
		issued.Add(1)
		_ = json.NewEncoder(w).Encode(protocol.TokenAnswer{AccessToken: "t", ExpiresIn: life})
	})
	mux.HandleFunc("/", rest)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c, err := New(Options{Server: server.URL + "/", ClientID: "id", ClientSecret: "s:with:colons", Headers: map[string]string{"Nightshift-Tenant": "acme"}})
	if err != nil {
		t.Fatal(err)
	}
	return c, &issued
}

func TestCallsCarryTokenAndHeaders(t *testing.T) {
	c, issued := serving(t, 900, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t" || r.Header.Get("Nightshift-Tenant") != "acme" || r.URL.RawQuery != "a=b" {
			t.Errorf("%v %s", r.Header, r.URL)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"n":1}`))
	})
	for range 3 {
		var out struct{ N int }
		if status, err := c.Do(context.Background(), Call{Method: "GET", Path: "/v1/x?a=b", Out: &out}); status != 201 || err != nil || out.N != 1 {
			t.Errorf("%d %v %+v", status, err, out)
		}
	}
	if issued.Load() != 1 {
		t.Errorf("%d tokens for three calls", issued.Load())
	}
}

func TestARefusedTokenIsFetchedAnewOnce(t *testing.T) {
	var calls atomic.Int32
	c, issued := serving(t, 900, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	if _, err := c.Do(context.Background(), Call{Method: "GET", Path: "/"}); err != nil || issued.Load() != 2 {
		t.Errorf("%v after %d tokens", err, issued.Load())
	}
}

func TestRefusalsKeepTheServersWords(t *testing.T) {
	c, _ := serving(t, 900, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" {
			http.Error(w, "<html>bad gateway", http.StatusBadGateway)
			return
		}
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"code":"queue_full","detail":"no room","errors":[{"location":"body.x","message":"bad"}]}`))
	})
	_, err := c.Do(context.Background(), Call{Method: "POST", Path: "/", In: map[string]int{"x": 1}})
	var r *Refusal
	if !errors.As(err, &r) || Code(err) != "queue_full" || Status(err) != 429 || r.RetryAfter != 3*time.Second || !Temporary(err) {
		t.Errorf("%v", err)
	}
	if wait := Backoff(0, time.Second, err); wait < 3*time.Second {
		t.Errorf("asked to wait 3 s, would wait %s", wait)
	}
	if _, err := c.Do(context.Background(), Call{Method: "GET", Path: "/page"}); Code(err) != "http_502" || !Temporary(err) {
		t.Errorf("a page came as %v", err)
	}
}

func TestPersistOutlastsWhatIsTemporary(t *testing.T) {
	var calls atomic.Int32
	c, _ := serving(t, 900, func(w http.ResponseWriter, _ *http.Request) {
		switch calls.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			panic(http.ErrAbortHandler) // the connection breaks
		case 3:
		default:
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	})
	if _, err := c.Persist(context.Background(), Call{Method: "POST", Path: "/"}); err != nil || calls.Load() != 3 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	if _, err := c.Persist(context.Background(), Call{Method: "POST", Path: "/"}); Status(err) != 422 || calls.Load() != 4 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

func TestNoCallOutlivesItsTime(t *testing.T) {
	c, _ := serving(t, 900, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	begun := time.Now()
	_, err := c.Do(context.Background(), Call{Method: "GET", Path: "/", Timeout: 100 * time.Millisecond})
	if !Temporary(err) || time.Since(begun) > 20*time.Second {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Do(ctx, Call{Method: "GET", Path: "/"}); err == nil || Temporary(err) {
		t.Errorf("a call given up counts as temporary: %v", err)
	}
}

func TestWrongCredentialsAndAddresses(t *testing.T) {
	c, _ := serving(t, 900, func(http.ResponseWriter, *http.Request) {})
	c.options.ClientSecret = "other"
	if _, err := c.Do(context.Background(), Call{Method: "GET", Path: "/"}); Code(err) != protocol.CodeInvalidClient || Temporary(err) {
		t.Errorf("%v", err)
	}
	for _, o := range []Options{{Server: "host:8080", ClientID: "a", ClientSecret: "b"}, {Server: "https://h"}, {Server: "", ClientID: "a", ClientSecret: "b"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v passed", o)
		}
	}
}
