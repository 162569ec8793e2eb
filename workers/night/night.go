package night

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/index"
)

// Tenant is a customer of the night, with a key of its own.
type Tenant struct {
	Slug         string
	Weight       int
	ClientID     string
	ClientSecret string
}

// Options says where and for whom the night is.
type Options struct {
	Server  string
	CAFile  string
	Tenants []Tenant
	Docs    string // folder of documents; "" = see Roots
	Limit   int    // most documents a tenant; 0 = what fills the night on this machine
	DataDir string // the data folder of the workers too
	Model   string // model embed tasks ask for; "" = any
	Out     io.Writer
}

// Summary is how a night went.
type Summary struct {
	ID        string
	Begun     time.Time
	Ended     time.Time
	Resumed   bool
	Tenants   []TenantSummary
	Shares    Shares
	Tasks     int
	Retries   int // attempts that failed and were made again
	RunAgain  int // attempts that were lost with their worker or given back, and were made again
	Succeeded int
	PerSecond float64
}

// TenantSummary is one tenant's part of it.
type TenantSummary struct {
	Slug        string
	Weight      int
	Documents   int
	WorkflowID  string
	State       string
	Counts      map[string]int
	DeadLetters int
	Report      string // path of the report
	Index       string // folder of the index
	Evaluation  *index.Evaluation
}

// Run plans and submits the night, or takes up the unfinished one, and follows
// it until every tenant's workflow has ended. It returns ctx's error when that
// ends first; the night then goes on without a spectator, and the next Run
// takes it up.
func Run(ctx context.Context, o Options) (Summary, error) {
	if len(o.Tenants) == 0 {
		return Summary{}, errors.New("a night needs tenants")
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	absolute, err := filepath.Abs(o.DataDir)
	if err != nil {
		return Summary{}, err
	}
	o.DataDir = absolute
	customers := make([]*customer, len(o.Tenants))
	for i, t := range o.Tenants {
		if customers[i], err = newCustomer(o, t); err != nil {
			return Summary{}, fmt.Errorf("tenant %s: %w", t.Slug, err)
		}
	}
	for attempt := 0; ; attempt++ {
		n, err := o.take()
		if err != nil {
			return Summary{}, err
		}
		summary, err := n.follow(ctx, o, customers)
		// A night whose workflows the server does not know (any more) can't go
		// on: its database was replaced.
		if client.Code(err) == "not_found" && n.resumed && attempt == 0 {
			fmt.Fprintf(o.Out, "The unfinished night %s is unknown to this server; a new one begins.\n", n.ID)
			if err := n.close(); err != nil {
				return Summary{}, err
			}
			continue
		}
		return summary, err
	}
}

// follow submits what is not submitted yet and watches until the end.
func (n *night) follow(ctx context.Context, o Options, customers []*customer) (Summary, error) {
	for _, c := range customers {
		if err := c.submit(ctx, n); err != nil {
			return Summary{}, fmt.Errorf("tenant %s: %w", c.tenant.Slug, err)
		}
	}
	w := newWatch(o.Out, n, customers)
	for ctx.Err() == nil {
		over, err := w.look(ctx)
		if err != nil {
			return w.summary(), err
		}
		w.show(over)
		if over {
			return n.end(ctx, w)
		}
		if client.Sleep(ctx, w.pace()) != nil {
			break
		}
	}
	return w.summary(), ctx.Err()
}

// end gathers the results and closes the night.
func (n *night) end(ctx context.Context, w *watch) (Summary, error) {
	for _, c := range w.customers {
		if err := c.results(ctx); err != nil {
			return w.summary(), fmt.Errorf("tenant %s: %w", c.tenant.Slug, err)
		}
	}
	s := w.summary()
	s.Ended = time.Now()
	return s, n.close()
}

// Print writes the summary for people.
func (s Summary) Print(out io.Writer) {
	var b strings.Builder
	fmt.Fprintf(&b, "\nNight %s: %d tasks, %d succeeded, %d retries, %d run again, %.0f tasks/s, %s\n",
		s.ID, s.Tasks, s.Succeeded, s.Retries, s.RunAgain, s.PerSecond, s.Ended.Sub(s.Begun).Round(100*time.Millisecond))
	for _, t := range s.Tenants {
		fmt.Fprintf(&b, "\n  %s (weight %d): workflow %s %s, %d documents, %d dead letters\n",
			t.Slug, t.Weight, t.WorkflowID, t.State, t.Documents, t.DeadLetters)
		if e := t.Evaluation; e != nil {
			fmt.Fprintf(&b, "    recall@%d %.3f (chance %.4f), MRR %.3f over %d headings in %d sections\n",
				e.K, e.RecallAtK, e.Chance, e.MRR, e.Queries, e.Sections)
		}
		if t.Report != "" {
			fmt.Fprintf(&b, "    report  %s\n    index   %s\n", t.Report, t.Index)
		}
	}
	b.WriteString("\n" + s.Shares.String() + "\n")
	_, _ = io.WriteString(out, b.String()) // a console that is gone does not fail the night
}

func (o Options) file() string { return filepath.Join(o.DataDir, "night.json") }

func (o Options) prepared() error { return os.MkdirAll(filepath.Join(o.DataDir, "nights"), 0o755) }
