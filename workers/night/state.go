package night

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// night is what is written down about a night before anything of it is
// submitted; the bodies lie beside it, for the same key must carry the same
// body.
type night struct {
	ID       string         `json:"id"`
	Begun    time.Time      `json:"begun"`
	Finished bool           `json:"finished"`
	Tenants  map[string]int `json:"tenants"` // documents of each

	file    string
	folder  string
	resumed bool
}

// take answers the unfinished night, or plans a new one.
func (o Options) take() (*night, error) {
	if err := o.prepared(); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(o.file())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var n night
	if err == nil && json.Unmarshal(raw, &n) == nil && !n.Finished && n.knows(o.Tenants) {
		n.at(o)
		n.resumed = true
		fmt.Fprintf(o.Out, "Continuing the unfinished night %s of %s.\n", n.ID, n.Begun.Local().Format("2006-01-02 15:04:05"))
		return &n, nil
	}
	return o.fresh()
}

func (n *night) knows(tenants []Tenant) bool {
	for _, t := range tenants {
		if _, ok := n.Tenants[t.Slug]; !ok {
			return false
		}
	}
	return n.ID != ""
}

func (n *night) at(o Options) {
	n.file, n.folder = o.file(), filepath.Join(o.DataDir, "nights", n.ID)
}

// fresh plans a night for every tenant and writes it down.
func (o Options) fresh() (*night, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	n := &night{ID: hex.EncodeToString(b[:]), Begun: time.Now().UTC(), Tenants: map[string]int{}}
	n.at(o)
	roots, err := Roots(o.Docs)
	if err != nil {
		return nil, err
	}
	all, err := list(roots)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no documents (%v) in %v", endings, roots)
	}
	fmt.Fprintf(o.Out, "Planning a night over %d documents in %v …\n", len(all), roots)
	for i, documents := range deal(all, len(o.Tenants), o.Limit) {
		if err := n.plan(o, o.Tenants[i].Slug, documents); err != nil {
			return nil, err
		}
	}
	return n, n.save()
}

func (n *night) plan(o Options, slug string, documents []document) error {
	bad, err := inbox(filepath.Join(n.folder, slug, "inbox"))
	if err != nil {
		return err
	}
	p, chunks, err := newPlan("nights/"+n.ID+"/"+slug, o.Model, documents, bad)
	if err != nil {
		return err
	}
	body, err := json.Marshal(workflow{Name: "night " + n.ID[:6], Labels: map[string]string{"night": n.ID}, Tasks: p.nodes})
	if err != nil {
		return err
	}
	n.Tenants[slug] = len(documents) + len(bad)
	fmt.Fprintf(o.Out, "  %s: %d documents, %d chunks, %d tasks\n", slug, n.Tenants[slug], chunks, len(p.nodes))
	return keep(n.body(slug), body)
}

func (n *night) body(slug string) string   { return filepath.Join(n.folder, slug, "workflow.json") }
func (n *night) answer(slug string) string { return filepath.Join(n.folder, slug, "submitted.json") }

func (n *night) save() error {
	raw, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	return keep(n.file, raw)
}

// close marks the night as finished; its artefacts stay.
func (n *night) close() error {
	n.Finished = true
	return n.save()
}

// keep writes a file whole.
func keep(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	side := path + ".new"
	if err := os.WriteFile(side, content, 0o644); err != nil {
		return err
	}
	return os.Rename(side, path)
}
