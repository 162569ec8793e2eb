package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// told is a trigger as its sender saw it answered.
type told struct {
	id     string
	counts bool // 202; else it came before, by its dedupe key
}

// tellAll sends n triggers of a name over so many connections, each sending its own one after the other. Every tenth repeats
// the dedupe key of the one before it, which another connection sends at about the same time.
func (s *stage) tellAll(token, name string, n, connections int) ([]told, error) {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	send := func(i int) (told, error) {
		body := fmt.Sprintf(`{"name":%q,"data":{"n":%d}}`, name, i)
		if i%10 > 7 {
			body = fmt.Sprintf(`{"name":%q,"data":{"n":%d},"dedupe_key":"pair %d"}`, name, i, i/10)
		}
		request, err := http.NewRequestWithContext(s.t.Context(), "POST", s.url+"/v1/triggers", strings.NewReader(body))
		if err != nil {
			return told{}, err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", token)
		response, err := client.Do(request)
		if err != nil {
			return told{}, err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return told{}, err
		}
		var answer struct {
			ID      string
			Matched int
		}
		if err := json.Unmarshal(text, &answer); err != nil || response.StatusCode != 202 && response.StatusCode != 200 || answer.Matched != 2 {
			return told{}, fmt.Errorf("trigger %d: %d %s: %w", i, response.StatusCode, text, err)
		}
		return told{answer.ID, response.StatusCode == 202}, nil
	}
	out, failures := make([]told, n), make([]error, connections)
	var all sync.WaitGroup
	for c := range connections {
		all.Go(func() {
			for i := c; i < n && failures[c] == nil; i += connections {
				out[i], failures[c] = send(i)
			}
		})
	}
	all.Wait()
	return out, errors.Join(failures...)
}

// eventSchedule makes one for the triggers of a name and answers its path.
func (s *stage) eventSchedule(token, name, overlap string, event map[string]any) string {
	s.t.Helper()
	r := s.want(s.call("POST", "/v1/schedules", token, onSale(map[string]any{
		"name": name, "overlap_policy": overlap, "event": event, "task": map[string]any{"type": "report." + name, "payload": map[string]any{"for": "{{scheduled_for}}"}},
	})), 201, "")
	return "/v1/schedules/" + r.str("id")
}

// pages reads a whole list.
func (s *stage) pages(path, token string) (out []reply) {
	s.t.Helper()
	for cursor := ""; ; {
		r := s.want(s.call("GET", path+"?order=asc&limit=500"+cursor, token, nil), 200, "")
		out = append(out, r.rows("data")...)
		if r.str("next_cursor") == "" {
			return out
		}
		cursor = "&cursor=" + r.str("next_cursor")
	}
}

// takenBy are the ids that the runs of a schedule took, run by run in their order, and the numbers in their data.
func (s *stage) takenBy(path, token string) (ids []string, numbers []int, runs int) {
	s.t.Helper()
	for _, run := range s.pages(path+"/runs", token) {
		if run.str("outcome") != "dispatched" {
			continue
		}
		runs++
		taken := s.pages(run.str("taken_url"), token)
		if len(taken) != int(run.num("taken")) {
			s.t.Errorf("a run says that it took %v, and lists %d", run.num("taken"), len(taken))
		}
		for _, event := range taken {
			ids, numbers = append(ids, event.str("id")), append(numbers, int(event.at("data").num("n")))
		}
	}
	return ids, numbers, runs
}

// Ten thousand triggers come over 64 connections for two schedules with bounds of their own, while a worker does their runs.
// Each trigger is in exactly one run of each, and in its payload, in the order of acceptance, which is the order in which
// each connection sent; of two with one dedupe key one counts.
func TestTriggersUnderLoadAreTakenOnceAndInOrder(t *testing.T) {
	n, connections := 10_000, 64
	if testing.Short() {
		n = 1000
	}
	s := newStage(t)
	token := s.messenger("acme")
	wide := s.eventSchedule(token, "wide", "allow", map[string]any{"name": "sale", "debounce_seconds": 1, "max_events": 500})
	narrow := s.eventSchedule(token, "narrow", "queue_one", map[string]any{"name": "sale", "debounce_seconds": 0.2, "max_wait_seconds": 0.5, "max_events": 60})
	w := s.register(s.acme, nil)
	var over atomic.Bool
	began := time.Now()
	var sent []told
	var failure error
	var took time.Duration
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer over.Store(true)
		sent, failure = s.tellAll(token, "sale", n, connections)
		took = time.Since(began)
	}()
	counting := n - n/10
	worked := map[string][]string{} // what the worker saw, by the type of its task
	idle := time.Now()
	for !over.Load() || failure == nil && (len(worked["report.wide"]) < counting || len(worked["report.narrow"]) < counting) {
		leases := w.claim(50, 1)
		var results []map[string]any
		for _, lease := range leases {
			for _, event := range lease.rows("events") {
				worked[lease.str("type")] = append(worked[lease.str("type")], event.str("id"))
			}
			results = append(results, done(lease, "fine"))
		}
		if len(results) > 0 {
			idle = time.Now()
			w.report(results...)
		} else if time.Since(idle) > time.Minute {
			t.Fatalf("the worker saw %d and %d of %d triggers, and then nothing more", len(worked["report.wide"]), len(worked["report.narrow"]), counting)
		}
	}
	<-ended
	s.must(failure)
	s.judge(sent, connections, counting)
	var first []string
	for name, path := range map[string]string{"wide": wide, "narrow": narrow} {
		ids, numbers, runs := s.takenBy(path, token)
		t.Logf("%s: %d triggers, %.0f a second over %d connections, became %d runs", name, n, float64(n)/took.Seconds(), connections, runs)
		s.inOrder(name, sent, ids, numbers, connections)
		if first == nil {
			first = ids
		} else if !slices.Equal(first, ids) {
			t.Errorf("the two schedules took the triggers in different orders")
		}
		seen := worked["report."+name]
		slices.Sort(seen)
		ids = slices.Sorted(slices.Values(ids))
		if !slices.Equal(seen, ids) {
			t.Errorf("%s: its tasks were about %d triggers, its runs took %d", name, len(seen), len(ids))
		}
	}
}

// judge holds the answers to what was sent: of each pair with one key one counts, and both have its id.
func (s *stage) judge(sent []told, connections, counting int) {
	s.t.Helper()
	counts := 0
	for i, a := range sent {
		if a.counts {
			counts++
		}
		if i%10 == 9 {
			if b := sent[i-1]; a.id != b.id || a.counts == b.counts {
				s.t.Errorf("two triggers with one key were answered %+v and %+v", b, a)
			}
		} else if i%10 < 8 && !a.counts {
			s.t.Errorf("trigger %d has no key and did not count", i)
		}
	}
	if counts != counting {
		s.t.Errorf("%d triggers counted, want %d", counts, counting)
	}
}

// inOrder holds what a schedule's runs took to what was sent: all that counts, each once, and of each connection in its order.
func (s *stage) inOrder(what string, sent []told, ids []string, numbers []int, connections int) {
	s.t.Helper()
	missing := map[string]bool{}
	for _, a := range sent {
		if a.counts {
			missing[a.id] = true
		}
	}
	last := make([]int, connections)
	for i := range last {
		last[i] = -1
	}
	for at, id := range ids {
		n := numbers[at]
		if !missing[id] || sent[n].id != id || !sent[n].counts {
			s.t.Fatalf("%s: trigger %d (%s) was taken twice, or stands for another", what, n, id)
		}
		delete(missing, id)
		if c := n % connections; n <= last[c] {
			s.t.Fatalf("%s: trigger %d was taken after %d, which its connection sent later", what, n, last[c])
		} else {
			last[c] = n
		}
	}
	if len(missing) > 0 {
		s.t.Errorf("%s: %d triggers are in no run", what, len(missing))
	}
}
