package night

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/index"
)

// customer is a tenant as the driver sees it: its client and what is known of
// its workflow.
type customer struct {
	tenant Tenant
	client *client.Client
	data   string

	workflow  string
	state     string
	counts    map[string]int
	typeOf    map[string]string // of each task id
	reportID  string
	documents int
	after     string // last event read
	ledger    ledger
	dead      int
	report    string
	index     string
	evaluated *index.Evaluation
}

func newCustomer(o Options, t Tenant) (*customer, error) {
	c, err := client.New(client.Options{
		Server: o.Server, ClientID: t.ClientID, ClientSecret: t.ClientSecret, CAFile: o.CAFile, UserAgent: "nightshift-night",
	})
	return &customer{tenant: t, client: c, data: o.DataDir}, err
}

// submitted is the answer to POST /v1/workflows, as far as it is used.
type submitted struct {
	ID    string            `json:"id"`
	Tasks map[string]string `json:"tasks"`
}

// submit sends the written body under the night's key; sent before, its first
// answer comes back.
func (c *customer) submit(ctx context.Context, n *night) error {
	slug := c.tenant.Slug
	body, err := os.ReadFile(n.body(slug))
	if err != nil {
		return err
	}
	var answer submitted
	if raw, err := os.ReadFile(n.answer(slug)); err != nil || json.Unmarshal(raw, &answer) != nil {
		if _, err := c.client.Persist(ctx, client.Call{
			Method: http.MethodPost, Path: "/v1/workflows", In: json.RawMessage(body), Out: &answer,
			Headers: map[string]string{"Idempotency-Key": "night-" + n.ID + "-" + slug}, Timeout: 2 * time.Minute,
		}); err != nil {
			return err
		}
		raw, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		if err := keep(n.answer(slug), raw); err != nil {
			return err
		}
	}
	var w workflow
	if err := json.Unmarshal(body, &w); err != nil {
		return fmt.Errorf("the written plan: %w", err)
	}
	c.workflow, c.typeOf, c.documents = answer.ID, map[string]string{}, n.Tenants[slug]
	for _, t := range w.Tasks {
		c.typeOf[answer.Tasks[t.Key]] = t.Type
	}
	c.reportID = answer.Tasks["report"]
	c.ledger = ledger{started: map[string]time.Time{}}
	return nil
}

func (c *customer) get(ctx context.Context, path string, out any) error {
	_, err := c.client.Persist(ctx, client.Call{Method: http.MethodGet, Path: path, Out: out, Timeout: 15 * time.Second})
	return err
}

// look reads the workflow's state and counts, and the events since the last
// look.
func (c *customer) look(ctx context.Context) error {
	var w struct {
		State  string         `json:"state"`
		Counts map[string]int `json:"counts"`
	}
	if err := c.get(ctx, "/v1/workflows/"+c.workflow, &w); err != nil {
		return err
	}
	c.state, c.counts = w.State, w.Counts
	return c.events(ctx)
}

const eventPage = 500

func (c *customer) events(ctx context.Context) error {
	for {
		query := url.Values{"limit": {strconv.Itoa(eventPage)}}
		if c.after != "" {
			query.Set("after", c.after)
		}
		var page struct {
			Data []event `json:"data"`
		}
		if err := c.get(ctx, "/v1/events?"+query.Encode(), &page); err != nil {
			return err
		}
		for _, e := range page.Data {
			c.after = e.ID
			if taskType, ours := c.typeOf[e.TaskID]; ours {
				c.ledger.book(e, taskType)
			}
		}
		if len(page.Data) < eventPage {
			return nil
		}
	}
}

// over says that nothing of the workflow can move any more.
func (c *customer) over() bool {
	return c.state == "succeeded" || c.state == "failed" || c.state == "cancelled"
}

func (c *customer) total() int {
	n := 0
	for _, count := range c.counts {
		n += count
	}
	return n
}

// results reads what the report says and how many dead letters wait.
func (c *customer) results(ctx context.Context) error {
	c.dead = c.counts["dead_letter"]
	if c.reportID == "" {
		return nil
	}
	var task struct {
		State  string `json:"state"`
		Result *struct {
			Path       string            `json:"path"`
			Evaluation *index.Evaluation `json:"evaluation"`
		} `json:"result"`
	}
	if err := c.get(ctx, "/v1/tasks/"+c.reportID, &task); err != nil {
		return err
	}
	if task.Result != nil {
		c.report, c.evaluated = task.Result.Path, task.Result.Evaluation
		c.index = filepath.Join(filepath.Dir(c.report), "index")
	}
	return nil
}
