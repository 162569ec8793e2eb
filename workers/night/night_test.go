package night

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nightshift/workers/workertest"
)

func tenants() []Tenant {
	return []Tenant{
		{Slug: "acme", Weight: 5, ClientID: workertest.ClientID, ClientSecret: workertest.ClientSecret},
		{Slug: "globex", Weight: 2, ClientID: workertest.ClientID, ClientSecret: workertest.ClientSecret},
	}
}

func distribution(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(goRoot(), "src", "encoding")
	if !isFolder(folder) {
		t.Skip("no Go distribution here to read documents from")
	}
	return folder
}

func TestANightEndsWithReportsAndDeadLetters(t *testing.T) {
	p, data, docs := newPlane(t), t.TempDir(), distribution(t)
	p.crew(t, data, docs)
	var console bytes.Buffer
	o := Options{Server: p.front.URL, Tenants: tenants(), Docs: docs, Limit: 12, DataDir: data, Out: &console}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	s, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err, console.String())
	}
	for _, tenant := range s.Tenants {
		if tenant.State != "failed" || tenant.DeadLetters != 4 || tenant.Documents != 16 {
			t.Errorf("%s: %+v", tenant.Slug, tenant)
		}
		page, err := os.ReadFile(tenant.Report)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"scan.md", "invoice-latin1.txt", "export.txt", "moved-away.md"} {
			if !strings.Contains(string(page), bad) {
				t.Errorf("the report of %s does not name %s", tenant.Slug, bad)
			}
		}
		if e := tenant.Evaluation; e == nil || e.Queries < 20 || e.RecallAtK < 2*e.Chance {
			t.Errorf("%s: evaluation %+v", tenant.Slug, e)
		}
		if _, err := os.Stat(filepath.Join(tenant.Index, "CURRENT")); err != nil {
			t.Error(err)
		}
	}
	s.Print(&console)
	for _, want := range []string{"acme (weight 5)", "recall@10", "report"} {
		if !strings.Contains(console.String(), want) {
			t.Errorf("the console lacks %q:\n%s", want, console.String())
		}
	}
	again, err := Run(ctx, o)
	if err != nil || again.ID == s.ID || again.Resumed {
		t.Errorf("after a finished night came %+v, %v", again, err)
	}
}

// untilSubmitted ends once both tenants have noted the answers to their workflows.
func untilSubmitted(t *testing.T, data string) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if noted, _ := filepath.Glob(filepath.Join(data, "nights", "*", "*", "submitted.json")); len(noted) == 2 { // the pattern is good
				return
			}
		}
		t.Error("the workflows were not submitted")
	}()
	return ctx
}

func TestAnUnfinishedNightGoesOn(t *testing.T) {
	p, data, docs := newPlane(t), t.TempDir(), distribution(t)
	o := Options{Server: p.front.URL, Tenants: tenants(), Docs: docs, Limit: 10, DataDir: data}
	ctx := untilSubmitted(t, data) // nobody works yet
	first, err := Run(ctx, o)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	// As if the process had died before it noted the answer of one tenant.
	if err := os.Remove(filepath.Join(data, "nights", first.ID, "acme", "submitted.json")); err != nil {
		t.Fatal(err)
	}
	p.crew(t, data, docs)
	longer, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	defer stop()
	second, err := Run(longer, o)
	if err != nil {
		t.Fatal(err)
	}
	if second.ID != first.ID || !second.Resumed || len(p.workflows) != 2 || p.posts != 3 {
		t.Errorf("night %s went on as %s, with %d workflows from %d posts", first.ID, second.ID, len(p.workflows), p.posts)
	}
}

func TestANightOfAnotherDatabaseStartsAnew(t *testing.T) {
	first, data, docs := newPlane(t), t.TempDir(), distribution(t)
	o := Options{Server: first.front.URL, Tenants: tenants(), Docs: docs, Limit: 5, DataDir: data}
	ctx := untilSubmitted(t, data)
	begun, err := Run(ctx, o)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	second := newPlane(t)
	second.crew(t, data, docs)
	o.Server = second.front.URL
	longer, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	defer stop()
	if s, err := Run(longer, o); err != nil || s.ID == begun.ID {
		t.Errorf("went on as %+v, %v", s, err)
	}
}

// The plan is a DAG within the API's limits, whatever the documents.
func TestThePlanHoldsTheLimits(t *testing.T) {
	all, err := list([]string{distribution(t)})
	if err != nil {
		t.Fatal(err)
	}
	bad, err := inbox(filepath.Join(t.TempDir(), "inbox"))
	if err != nil {
		t.Fatal(err)
	}
	many := slices.Repeat(all, 1+2500/len(all))
	p, chunks, err := newPlan("nights/abc/acme", "m", many, bad)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	stages := map[string]int{}
	for _, n := range p.nodes {
		if seen[n.Key] {
			t.Fatalf("key %s twice", n.Key)
		}
		for _, d := range n.DependsOn {
			if !seen[d.Key] {
				t.Fatalf("%s depends on %s, which does not come before it", n.Key, d.Key)
			}
		}
		if len(n.DependsOn) > 1000 || len(n.Payload) > 256_000 {
			t.Errorf("%s has %d dependencies and %d bytes", n.Key, len(n.DependsOn), len(n.Payload))
		}
		seen[n.Key] = true
		stages[n.Type]++
	}
	if want := (chunks + 99) / 100; stages["text.embed"] != want || stages["document.chunk"] != len(many)+4 || stages["report.write"] != 1 {
		t.Errorf("%d chunks gave %v", chunks, stages)
	}
	if len(p.nodes) > 100_000 {
		t.Errorf("%d tasks", len(p.nodes))
	}
	if raw, err := json.Marshal(p.nodes); err != nil || len(raw) > 60<<20 {
		t.Errorf("a body of %d bytes, %v", len(raw), err)
	}
}

func TestDealIsFairAndWithinTheLimit(t *testing.T) {
	var all []document
	for i := range 100 {
		all = append(all, document{path: fmt.Sprintf("%03d.md", i)})
	}
	for _, limit := range []int{1, 10, 50, 1000} {
		dealt := deal(all, 3, limit)
		seen := map[string]bool{}
		for _, documents := range dealt {
			if len(documents) != min(limit, 33) {
				t.Errorf("limit %d: a tenant got %d", limit, len(documents))
			}
			for _, d := range documents {
				if seen[d.path] {
					t.Errorf("limit %d: %s was dealt twice", limit, d.path)
				}
				seen[d.path] = true
			}
		}
	}
	if few := deal(all[:1], 2, 5); len(few[0]) != 1 || len(few[1]) != 1 {
		t.Errorf("one document for two tenants was dealt as %v", few)
	}
}

// A night's work is measured by the machine as it is: ten times slower, a tenth of the documents, down to a hundred
// milliseconds each.
func TestANightFitsTheMachine(t *testing.T) {
	for _, each := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond} {
		if n := filling(each); n < fewestOfAuto || n > mostOfAuto || time.Duration(n)*each > wantedWork {
			t.Errorf("at %v each a tenant has %d documents, %v of work", each, n, time.Duration(n)*each)
		}
	}
}

// What was lost with its worker, or given back, is run again without having failed: it is told apart from retries, and
// its time counts for the shares.
func TestWhatIsRunAgainIsToldApart(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	l := ledger{started: map[string]time.Time{}}
	seconds := 2.0
	for _, e := range []event{
		{Name: "task.ready", TaskID: "a", At: at},
		{Name: "task.started", TaskID: "a", At: at},
		{Name: "task.ready", TaskID: "a", At: at.Add(time.Second), Class: "worker_lost", Pool: "cpu", ChargedSeconds: &seconds},
		{Name: "task.started", TaskID: "a", At: at.Add(2 * time.Second)},
		{Name: "task.released", TaskID: "a", At: at.Add(3 * time.Second), Pool: "cpu", ChargedSeconds: &seconds},
		{Name: "task.started", TaskID: "a", At: at.Add(4 * time.Second)},
		{Name: "task.retrying", TaskID: "a", At: at.Add(5 * time.Second), Class: "timeout", Pool: "cpu", ChargedSeconds: &seconds},
		{Name: "task.ready", TaskID: "a", At: at.Add(6 * time.Second)},
		{Name: "task.succeeded", TaskID: "a", At: at.Add(7 * time.Second), Pool: "cpu", ChargedSeconds: &seconds},
	} {
		l.book(e, sharedType)
	}
	if l.again != 2 || l.retries != 1 || len(l.charges) != 4 {
		t.Errorf("%d run again, %d retries, %d charges", l.again, l.retries, len(l.charges))
	}
	var out strings.Builder
	Summary{Retries: 1, RunAgain: 2}.Print(&out)
	if !strings.Contains(out.String(), "1 retries, 2 run again,") {
		t.Errorf("it says %q", out.String())
	}
}

func TestSharesAreReadFromTheCommonTime(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(1_800_000_000, 0).Add(time.Duration(s * 1e9)) }
	charged := func(v float64) *float64 { return &v }
	customers := []*customer{{tenant: tenants()[0]}, {tenant: tenants()[1]}}
	for i, c := range customers {
		c.ledger = ledger{started: map[string]time.Time{}}
		for n := range 100 {
			id := fmt.Sprint(i, n)
			begun := at(float64(n) * []float64{0.2, 0.5}[i])
			c.ledger.book(event{Name: "task.started", TaskID: id, At: begun}, sharedType)
			c.ledger.book(event{Name: "task.succeeded", TaskID: id, At: begun.Add(100 * time.Millisecond), Pool: "cpu", ChargedSeconds: charged(0.1)}, sharedType)
			c.ledger.book(event{Name: "task.succeeded", TaskID: id, At: begun, Pool: "gpu", ChargedSeconds: charged(9)}, "text.embed")
		}
	}
	s := sharesOf(customers)
	if s.Seconds < 19 || s.Seconds > 20 || !s.Charged || s.Deviation() > 0.03 {
		t.Errorf("%+v, off by %.3f", s, s.Deviation())
	}
	if text := s.String(); !strings.Contains(text, "acme") || !strings.Contains(text, "due 71.4 %") {
		t.Error(text)
	}
	if none := sharesOf([]*customer{{}, {}}); none.Seconds != 0 || none.Deviation() != 0 || none.String() == "" {
		t.Errorf("no events gave %+v", none)
	}
}
