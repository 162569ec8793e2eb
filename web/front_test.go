package web_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"gopkg.in/yaml.v3"

	"nightshift/models"
	"nightshift/web"
)

func TestEveryCodeHasItsStatus(t *testing.T) {
	s := newStage(t)
	for code, status := range map[models.Code]int{
		"invalid_json": 400, "invalid_query": 400, "invalid_request": 400, "invalid_scope": 400, "unsupported_grant_type": 400,
		"session_required": 400, "tenant_required": 400, "invalid_cursor": 400, "unauthenticated": 401, "invalid_client": 401, "forbidden": 403,
		"scope_required": 403, "permission_not_allowed": 403, "tenant_suspended": 403, "not_found": 404, "method_not_allowed": 405,
		"unsupported_media_type": 415, "state_conflict": 409, "lease_lost": 409, "session_replaced": 409, "instance_conflict": 409,
		"idempotency_in_progress": 409, "workflow_budget_exceeded": 409, "stale": 412, "body_too_large": 413, "validation_failed": 422,
		"idempotency_key_reused": 422, "invalid_dag": 422, "invalid_schedule": 422, "queue_full": 429, "rate_limited": 429, "budget_exhausted": 429,
		"too_many_classes": 429, "too_many_attempts": 429, "unavailable": 503, "overloaded": 503, "internal": 500,
	} {
		r := s.want(s.call("GET", "/v1/trouble/"+string(code), nil), status, string(code))
		if code == "idempotency_in_progress" && r.header.Get("Retry-After") == "" {
			t.Error("idempotency_in_progress without Retry-After")
		}
		if r.str("instance") != "/v1/trouble/"+string(code) || r.body["status"] != float64(status) {
			t.Errorf("%s: %s", code, r.text)
		}
	}
	for _, inside := range []string{"fence_lost", "rollback", "unclear", "row_count"} {
		s.want(s.call("GET", "/v1/trouble/"+inside, nil), 503, "unavailable")
	}
	for _, ours := range []string{"panic", "unknown", "no_such_code"} {
		r := s.want(s.call("GET", "/v1/trouble/"+ours, nil), 500, "internal")
		if strings.Contains(r.text, "secret words") || strings.Contains(r.text, "as the test wants") {
			t.Errorf("what happened inside is told outside: %s", r.text)
		}
		if !strings.Contains(s.logged(), r.str("request_id")) {
			t.Errorf("the log does not know request %s", r.str("request_id"))
		}
	}
}

func TestTheFrameworkRefusesLikeWeDo(t *testing.T) {
	s := newStage(t)
	s.want(s.call("GET", "/v1/nothing", nil), 404, "not_found")
	s.want(s.call("GET", "/v1/tenants/", nil), 404, "not_found")
	r := s.want(s.call("PUT", "/v1/tenants", `{}`), 405, "method_not_allowed")
	if allow := r.header.Get("Allow"); !strings.Contains(allow, "GET") || !strings.Contains(allow, "POST") {
		t.Errorf("Allow: %q", allow)
	}
	s.want(s.call("DELETE", "/v1/auth/token", nil), 405, "method_not_allowed")
	s.want(s.call("BREW", "/v1/tenants", nil), 405, "method_not_allowed")
	s.want(s.call("GET", "/v1/limits", nil, "X-Padding", strings.Repeat("x", 20<<10)), 431, "invalid_request")
	if r := s.call("GET", "/v1/limits", nil, "X-Request-Id", "a-request-of-mine"); r.header.Get("X-Request-Id") != "a-request-of-mine" {
		t.Error("a good request id is not kept")
	}
	if r := s.call("GET", "/v1/limits", nil, "X-Request-Id", "<script>"); !regexp.MustCompile(`^req_[a-z0-9]{26}$`).MatchString(r.header.Get("X-Request-Id")) {
		t.Errorf("a bad request id became %q", r.header.Get("X-Request-Id"))
	}
}

func TestBodiesAreReadStrictly(t *testing.T) {
	s := newStage(t)
	for name, c := range map[string]struct {
		body, kind string
		status     int
		code, at   string
	}{
		"good":                {`{"name":"a","tasks":[{"priority":1}],"payload":{"x":[1,2]}}`, "application/json", 200, "", ""},
		"charset":             {`{"name":"a"}`, "application/json; charset=UTF-8", 200, "", ""},
		"other charset":       {`{"name":"a"}`, "application/json; charset=latin1", 415, "unsupported_media_type", ""},
		"no type":             {`{"name":"a"}`, "", 415, "unsupported_media_type", ""},
		"text":                {`{"name":"a"}`, "text/plain", 415, "unsupported_media_type", ""},
		"nothing":             {``, "application/json", 400, "invalid_json", ""},
		"blank":               {"  \n", "application/json", 400, "invalid_json", ""},
		"broken":              {`{"name":`, "application/json", 400, "invalid_json", ""},
		"two values":          {`{"name":"a"}{}`, "application/json", 400, "invalid_json", ""},
		"trailing comma":      {`{"name":"a",}`, "application/json", 400, "invalid_json", ""},
		"comment":             {`{"name":"a"/*x*/}`, "application/json", 400, "invalid_json", ""},
		"doubled":             {`{"name":"a","name":"b"}`, "application/json", 422, "validation_failed", "body.name"},
		"doubled deep":        {`{"payload":{"x":{"y":1,"y":2}}}`, "application/json", 422, "validation_failed", "body.payload.x.y"},
		"broken behind":       {`{"colour":1,`, "application/json", 400, "invalid_json", ""},
		"broken far behind":   {`{"name":5,"name":6,"payload":[1}`, "application/json", 400, "invalid_json", ""},
		"two with a rule":     {`{"colour":1}{}`, "application/json", 400, "invalid_json", ""},
		"UTF-8 behind":        {"{\"colour\":\"\xff\"}", "application/json", 400, "invalid_json", ""},
		"bad UTF-8":           {"{\"name\":\"\xff\"}", "application/json", 400, "invalid_json", ""},
		"lone surrogate":      {`{"name":"\ud800"}`, "application/json", 422, "validation_failed", "body.name"},
		"lone surrogate deep": {`{"payload":[{"x":"a\udc00"}]}`, "application/json", 422, "validation_failed", "body.payload[0].x"},
		"no lone surrogate":   {`{"name":"\\ud800\ud83d\ude00"}`, "application/json", 200, "", ""},
		"NUL":                 {`{"name":"a\u0000"}`, "application/json", 422, "validation_failed", "body.name"},
		"NUL in a name":       {`{"payload":{"a\u0000":1}}`, "application/json", 422, "validation_failed", `body.payload.a\u0000`},
		"NUL deep":            {`{"payload":[{"x":"\u0000"}]}`, "application/json", 422, "validation_failed", "body.payload[0].x"},
		"no NUL":              {`{"name":"a\\u0000"}`, "application/json", 200, "", ""},
		"list":                {`[]`, "application/json", 422, "validation_failed", "body"},
		"null":                {`null`, "application/json", 200, "", ""},
		"unknown":             {`{"colour":1}`, "application/json", 422, "validation_failed", "body.colour"},
		"unknown deep":        {`{"tasks":[{},{"prio":1}]}`, "application/json", 422, "validation_failed", "body.tasks[1].prio"},
		"case":                {`{"Name":"a"}`, "application/json", 422, "validation_failed", "body.Name"},
		"wrong type":          {`{"tasks":[{"priority":"high"}]}`, "application/json", 422, "validation_failed", "body.tasks[0].priority"},
		"fraction":            {`{"tasks":[{"priority":1.5}]}`, "application/json", 422, "validation_failed", "body.tasks[0].priority"},
		"overflow":            {`{"tasks":[{"priority":99999999999999999999}]}`, "application/json", 422, "validation_failed", "body.tasks[0].priority"},
		"at the limit":        {`{"name":"` + strings.Repeat("x", 2000-11) + `"}`, "application/json", 200, "", ""},
		"past the limit":      {`{"name":"` + strings.Repeat("x", 2001-11) + `"}`, "application/json", 413, "body_too_large", ""},
		"far past the limit":  {`{"name":"` + strings.Repeat("x", 3<<20) + `"}`, "application/json", 413, "body_too_large", ""},
	} {
		r := s.call("POST", "/v1/trouble/echo", c.body, "Content-Type", c.kind)
		if r.status != c.status || r.code() != c.code {
			t.Errorf("%s: got %d %q, want %d %q: %s", name, r.status, r.code(), c.status, c.code, r.text)
			continue
		}
		if c.at != "" {
			if at := r.body["errors"].([]any)[0].(map[string]any)["location"]; at != c.at {
				t.Errorf("%s: at %v, want %s", name, at, c.at)
			}
		}
	}
}

func TestBulkBodiesAreStreamed(t *testing.T) {
	s := newStage(t)
	r := s.want(s.call("POST", "/v1/trouble/bulk", strings.Repeat("x", 8<<20)), 200, "")
	if r.body["bytes"] != float64(8<<20) {
		t.Errorf("read %v bytes", r.body["bytes"])
	}
	s.want(s.call("POST", "/v1/trouble/bulk", strings.Repeat("x", 8<<20+1)), 413, "body_too_large")
	// Without a length: refused as soon as it passes the limit, long before the sender is done.
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	s.must(err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/trouble/bulk HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk := "10000\r\n" + strings.Repeat("x", 1<<16) + "\r\n"
	go func() {
		for range 200 { // 13 MB
			if _, err := conn.Write([]byte(chunk)); err != nil {
				return
			}
		}
	}()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	s.must(err)
	if response.StatusCode != 413 {
		t.Errorf("a chunked body past the limit: %d", response.StatusCode)
	}
}

func TestListsAndCursors(t *testing.T) {
	s := newStage(t)
	root := s.root()
	_, _, a := s.tenant(root, "northwind", "admin:read", "admin:write", "tasks:read")
	_, _, b := s.tenant(root, "southwind", "admin:read", "admin:write", "tasks:read")
	seen := map[string]bool{}
	cursor, pages := "", 0
	for {
		path := "/v1/lanes?limit=2&order=asc"
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		r := s.want(s.call("GET", path, nil, "Authorization", a), 200, "")
		for _, row := range r.rows() {
			seen[row["name"].(string)] = true
		}
		pages++
		if cursor = r.str("next_cursor"); cursor == "" {
			if _, ok := r.body["next_cursor"]; !ok {
				t.Error("next_cursor is absent, not null")
			}
			break
		}
	}
	if len(seen) != 4 || pages != 2 {
		t.Errorf("%d lanes on %d pages", len(seen), pages)
	}
	first := s.want(s.call("GET", "/v1/lanes?limit=2&order=asc", nil, "Authorization", a), 200, "").str("next_cursor")
	for name, c := range map[string]struct {
		path, token string
		status      int
		code        string
	}{
		"another tenant":   {"/v1/lanes?limit=2&order=asc&cursor=" + first, b, 400, "invalid_cursor"},
		"another order":    {"/v1/lanes?limit=2&cursor=" + first, a, 400, "invalid_cursor"},
		"another list":     {"/v1/environments?order=asc&cursor=" + first, a, 400, "invalid_cursor"},
		"another limit":    {"/v1/lanes?limit=3&order=asc&cursor=" + first, a, 200, ""},
		"forged":           {"/v1/lanes?order=asc&cursor=" + first[:len(first)-2] + "AA", a, 400, "invalid_cursor"},
		"nonsense":         {"/v1/lanes?cursor=hello", a, 400, "invalid_cursor"},
		"limit 0":          {"/v1/lanes?limit=0", a, 400, "invalid_query"},
		"limit -1":         {"/v1/lanes?limit=-1", a, 400, "invalid_query"},
		"limit word":       {"/v1/lanes?limit=ten", a, 400, "invalid_query"},
		"limit none":       {"/v1/lanes?limit=", a, 400, "invalid_query"},
		"limit clamped":    {"/v1/lanes?limit=100000", a, 200, ""},
		"limit huge":       {"/v1/lanes?limit=99999999999999999999999", a, 200, ""},
		"order":            {"/v1/lanes?order=up", a, 400, "invalid_query"},
		"count":            {"/v1/lanes?count=maybe", a, 400, "invalid_query"},
		"unknown":          {"/v1/lanes?colour=red", a, 400, "invalid_query"},
		"broken escape":    {"/v1/lanes?order=%zz", a, 400, "invalid_query"},
		"NUL":              {"/v1/lanes?order=%00", a, 400, "invalid_query"},
		"unknown on a GET": {"/v1/kinds?x=1", a, 400, "invalid_query"},
	} {
		if r := s.call("GET", c.path, nil, "Authorization", c.token); r.status != c.status || r.code() != c.code {
			t.Errorf("%s: got %d %q: %s", name, r.status, r.code(), r.text)
		}
	}
}

func TestOpenAPIDocument(t *testing.T) {
	s := newStage(t)
	r := s.want(s.call("GET", "/openapi.json", nil), 200, "")
	if r.str("openapi") != "3.1.0" {
		t.Fatalf("openapi %q", r.str("openapi"))
	}
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData([]byte(r.text))
	s.must(err)
	if err := doc.Validate(t.Context()); err != nil {
		t.Errorf("the document is not valid: %v", err)
	}
	for path, method := range map[string]string{
		"/v1/auth/token": "POST", "/v1/tenants/{id}": "PATCH", "/v1/api-keys/{id}/rotate": "POST", "/v1/lanes/{name}": "DELETE",
		"/v1/lanes/{name}/stats": "GET", "/v1/kinds/{kind}": "PATCH", "/v1/whoami": "GET", "/v1/scheduler": "GET", "/v1/audit": "GET",
	} {
		item := doc.Paths.Value(path)
		if item == nil || item.GetOperation(method) == nil {
			t.Errorf("%s %s is not described", method, path)
		}
	}
	var asYAML, asJSON any
	s.must(yaml.Unmarshal([]byte(s.call("GET", "/openapi.yaml", nil).text), &asYAML))
	s.must(json.Unmarshal([]byte(r.text), &asJSON))
	one, err := json.Marshal(asYAML)
	s.must(err)
	two, err := json.Marshal(asJSON)
	s.must(err)
	if !bytes.Equal(one, two) {
		t.Error("the two forms of the document differ")
	}
}

func TestAClientThatLeavesEndsItsWait(t *testing.T) {
	s := newStage(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	s.must(err)
	fmt.Fprintf(conn, "GET /v1/trouble/wait HTTP/1.1\r\nHost: x\r\n\r\n")
	s.must(conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)))
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Fatal("the wait was answered")
	}
	s.must(conn.Close())
	s.await("the wait's end", func() bool { return strings.Contains(s.logged(), `"msg":"the wait ended","gone":true`) })
}

func TestShutdownEndsWaits(t *testing.T) {
	s := newStage(t)
	answered := make(chan int, 1)
	go func() {
		response, err := (&http.Client{Timeout: time.Minute}).Get(s.url + "/v1/trouble/wait")
		if err != nil {
			answered <- -1
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	s.await("the wait", func() bool { return strings.Contains(s.logged(), `"msg":"the wait begins"`) })
	s.must(s.server.Shutdown(30 * time.Second)) // the wait would last for ever
	select {
	case status := <-answered:
		if status != 204 && status != -1 {
			t.Errorf("the wait was answered %d", status)
		}
	case <-time.After(time.Minute):
		t.Fatal("the wait was not answered")
	}
}

func TestShutdownBeforeServing(t *testing.T) {
	s := newStage(t)
	late, err := web.New(web.Options{Deps: s.deps})
	s.must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.must(late.Shutdown(time.Second))
	s.must(late.Serve(listener))
	if _, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		t.Error("the listener is still open")
	}
}
