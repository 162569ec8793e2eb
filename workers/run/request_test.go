package run

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"nightshift/workers/protocol"
)

// loopback lets a test reach its own server.
var loopback = prefixes("127.0.0.0/8", "::1/128")

func TestRequestAndItsClasses(t *testing.T) {
	var key atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			key.Store(r.Header.Get("Idempotency-Key") + " " + r.Header.Get("Authorization"))
			w.Header().Set("X-Answer", "yes")
			_, _ = w.Write([]byte("hello"))
		case "/busy":
			w.Header().Set("Retry-After", "9")
			http.Error(w, "slow down", http.StatusTooManyRequests)
		case "/gone":
			http.NotFound(w, r)
		case "/away":
			http.Redirect(w, r, "http://10.1.2.3/", http.StatusFound)
		case "/binary":
			_, _ = w.Write([]byte{0xff, 0xfe})
		default:
			http.Error(w, "broken", http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	s := stationed(t, Options{EgressAllow: loopback})
	task := s.Submit("http.request", fields{"method": "post", "url": server.URL + "/ok", "body": fields{"a": 1}, "headers": fields{"Authorization": "Bearer ${TOKEN}"}},
		func(l *protocol.Lease) { l.Secrets = map[string]string{"TOKEN": "s3cret"} })
	s.AwaitState(task, "succeeded")
	var out requestOut
	if err := json.Unmarshal(task.Outcomes[0].Result, &out); err != nil {
		t.Fatal(err)
	}
	if out.Body != "hello" || out.Headers["x-answer"] != "yes" || key.Load() != task.ID+" Bearer s3cret" {
		t.Errorf("answered %+v; the server saw %v", out, key.Load())
	}
	if out := done[requestOut](t, s, "http.request", fields{"url": server.URL + "/binary"}); !out.Base64 || out.Body != "//4=" {
		t.Errorf("bytes came as %+v", out)
	}
	if out := done[requestOut](t, s, "http.request", fields{"url": server.URL + "/gone", "expect": []int{404}}); out.Status != 404 {
		t.Errorf("an expected 404 came as %+v", out)
	}
	for path, class := range map[string]string{
		"/busy": protocol.ClassRateLimited, "/gone": protocol.ClassNotFound, "/broken": protocol.ClassProviderOutage, "/away": protocol.ClassPermissionDenied,
	} {
		if err := failed(t, s, "http.request", fields{"url": server.URL + path}); err.Class != class {
			t.Errorf("%s failed with %s: %s", path, err.Class, err.Message)
		}
	}
	for url, class := range map[string]string{"file:///etc/passwd": protocol.ClassInvalidInput, "http://127.0.0.1:1/": protocol.ClassNetwork} {
		if err := failed(t, s, "http.request", fields{"url": url}); err.Class != class {
			t.Errorf("%s failed with %s: %s", url, err.Class, err.Message)
		}
	}
}

// Internal addresses, written in every way, are never connected to: directly,
// by a name, or after a redirect.
func TestInternalAddressesAreRefused(t *testing.T) {
	g := &guard{}
	for _, address := range []string{
		"0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1",
		"240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
		"64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "fc00::1", "fd12:3456::1", "fe80::1",
		"fec0::1", "ff02::1", "::127.0.0.1",
	} {
		if g.permits(netip.MustParseAddr(address)) {
			t.Errorf("%s would be connected to", address)
		}
	}
	for _, address := range []string{"1.1.1.1", "93.184.215.14", "2606:4700::1111", "2a00:1450::1"} {
		if !g.permits(netip.MustParseAddr(address)) {
			t.Errorf("%s is public and refused", address)
		}
	}
	allowing := &guard{allow: prefixes("10.1.0.0/16")}
	if !allowing.permits(netip.MustParseAddr("10.1.2.3")) || !allowing.permits(netip.MustParseAddr("::ffff:10.1.2.3")) || allowing.permits(netip.MustParseAddr("10.2.0.1")) {
		t.Error("an allowed block is not exactly what is allowed")
	}
}

func TestGuardSeesTheConnectionItself(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections atomic.Int32
	server := &httptest.Server{Listener: listener, Config: &http.Server{
		Handler:   http.NotFoundHandler(),
		ConnState: func(net.Conn, http.ConnState) { connections.Add(1) },
	}}
	server.Start()
	defer server.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := stationed(t, Options{})
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1"} {
		err := failed(t, s, "http.request", fields{"url": "http://" + host + ":" + port + "/"})
		if err.Class != protocol.ClassPermissionDenied && err.Class != protocol.ClassNetwork {
			t.Errorf("%s failed with %s: %s", host, err.Class, err.Message)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections reached an internal address", n)
	}
}

func TestEmbeddingEndpoint(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in embeddingsRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("Authorization") != "Bearer k" || len(in.Input) > 100 {
			http.Error(w, "bad", http.StatusBadRequest)
			return
		}
		calls.Add(1)
		rows := []map[string]any{}
		for i := len(in.Input) - 1; i >= 0; i-- { // any order is allowed
			rows = append(rows, map[string]any{"index": i, "embedding": []float32{float32(len(in.Input[i])), 0, -1}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": rows, "usage": map[string]int{"prompt_tokens": 5}})
	}))
	defer server.Close()
	s := stationed(t, Options{EgressAllow: loopback, Embedding: Endpoint{URL: server.URL + "/v1", Key: "k", Model: "embed-small"}})
	texts := make([]string, 150)
	for i := range texts {
		texts[i] = strings.Repeat("x", i+1)
	}
	task := s.Submit("text.embed", fields{"texts": texts})
	s.AwaitState(task, "succeeded")
	var out embedOut
	if err := json.Unmarshal(task.Outcomes[0].Result, &out); err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 2 || len(out.Vectors) != 150 || out.Vectors[149][0].Weight != 150 || *task.Outcomes[0].Usage.TokensIn != 10 {
		t.Errorf("%d calls, %d vectors, usage %+v", calls.Load(), len(out.Vectors), task.Outcomes[0].Usage)
	}
	blocked := stationed(t, Options{Embedding: Endpoint{URL: server.URL + "/v1", Key: "k", Model: "embed-small"}})
	if err := failed(t, blocked, "text.embed", fields{"texts": []string{"a"}}); err.Class != protocol.ClassPermissionDenied {
		t.Errorf("an internal endpoint failed with %+v", err)
	}
}
