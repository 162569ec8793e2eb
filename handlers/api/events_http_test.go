package api_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A call looks through a bounded stretch of what is kept and counts so far alone, however little of it is wanted.
func TestEventsAreLookedThroughInStretches(t *testing.T) {
	s := newStage(t)
	s.write(`INSERT INTO events (batch, env, at, items) SELECT 1000000 + n, (SELECT env FROM environments WHERE tenant = (SELECT number FROM tenants WHERE slug = 'acme')), 1, '[{"name":"task.created","at":1}]'
		FROM generate_series(1, 20100) n`)
	total := s.want(s.call("GET", "/v1/events?count=true&limit=1&after=1000000.0", s.acme, nil), 200, "").at("total")
	if total.num("value") != 10_000 || total.str("relation") != "gte" {
		t.Errorf("counted %v", total.body)
	}
	for _, order := range []string{"asc", "desc"} {
		path, pages, found := "/v1/events?name=task.expired&after=1000000.0&order="+order, 0, 0
		for cursor := ""; ; pages++ {
			r := s.want(s.call("GET", path+cursor, s.acme, nil), 200, "")
			found += len(r.rows("data"))
			if cursor = "&cursor=" + r.str("next_cursor"); r.body["next_cursor"] == nil {
				break
			}
		}
		if pages != 1 || found != 0 {
			t.Errorf("%s: %d further pages, %d events", order, pages, found)
		}
	}
	rare := s.want(s.call("GET", "/v1/events?name=task.expired&after=1000000.0", s.acme, nil), 200, "")
	s.write(`UPDATE events SET items = '[{"name":"task.created","at":1},{"name":"task.expired","at":2}]' WHERE batch IN (1000001, 1020050)`)
	rest := s.want(s.call("GET", "/v1/events?name=task.expired&after=1000000.0&cursor="+rare.str("next_cursor"), s.acme, nil), 200, "").rows("data")
	if len(rest) != 1 || !strings.HasPrefix(rest[0].str("id"), "1020050.1") {
		t.Errorf("behind the stretch: %v", rest)
	}
}

// write changes rows as nobody but a test does.
func (s *stage) write(query string) {
	s.t.Helper()
	s.must(s.db.Platform().Write(s.t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(s.t.Context(), query)
		return err
	}))
}

func TestKindsAreAListLikeOthers(t *testing.T) {
	s := newStage(t)
	names := func(query string) (out []string, r reply) {
		r = s.want(s.call("GET", "/v1/kinds"+query, s.acme, nil), 200, "")
		for _, row := range r.rows("data") {
			out = append(out, row.str("kind"))
		}
		return out, r
	}
	for query, want := range map[string]string{"": "realtime io compute batch", "?order=asc": "realtime io compute batch", "?order=desc": "batch compute io realtime"} {
		if got, r := names(query); strings.Join(got, " ") != want || r.body["total"] != nil || r.body["next_cursor"] != nil {
			t.Errorf("%s: %s", query, r.text)
		}
	}
	first, r := names("?limit=3&count=true")
	if strings.Join(first, " ") != "realtime io compute" || r.at("total").num("value") != 4 || r.at("total").str("relation") != "eq" {
		t.Errorf("a page: %s", r.text)
	}
	if rest, r := names("?limit=3&count=true&cursor=" + r.str("next_cursor")); strings.Join(rest, " ") != "batch" || r.body["next_cursor"] != nil {
		t.Errorf("the rest: %s", r.text)
	}
	s.want(s.call("GET", "/v1/kinds?limit=0", s.acme, nil), 400, "invalid_query")
	s.want(s.call("GET", "/v1/kinds?cursor=x", s.acme, nil), 400, "invalid_cursor")
}

func TestKeysAreRevokedAsTheyWereRead(t *testing.T) {
	s := newStage(t)
	made := s.want(s.call("POST", "/v1/api-keys", s.acme, `{"name":"k","scopes":["tasks:read"]}`), 201, "")
	path := made.header.Get("Location")
	tag := s.want(s.call("GET", path, s.acme, nil), 200, "").header.Get("ETag")
	if tag == "" {
		t.Fatal("a key has no ETag")
	}
	s.token(made.str("client_id"), made.str("client_secret")) // being used changes nothing
	if again := s.want(s.call("GET", path, s.acme, nil), 200, "").header.Get("ETag"); again != tag {
		t.Errorf("a used key has the tag %s, not %s", again, tag)
	}
	s.want(s.call("POST", path+"/rotate", s.acme, nil), 200, "")
	s.want(s.call("DELETE", path, s.acme, nil, "If-Match", tag), 412, "stale")
	s.want(s.call("DELETE", path, s.acme, nil, "If-Match", `"x"`), 412, "stale")
	tag = s.want(s.call("GET", path, s.acme, nil), 200, "").header.Get("ETag")
	s.want(s.call("DELETE", path, s.acme, nil, "If-Match", tag), 204, "")
	s.want(s.call("DELETE", path, s.acme, nil, "If-Match", tag), 404, "not_found")
}
