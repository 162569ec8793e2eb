package night

import (
	"encoding/json"
	"fmt"
	"strings"

	"nightshift/workers/protocol"
	"nightshift/workers/run"
	"nightshift/workers/text"
)

// Sizes of the stages.
const (
	ingestGroup  = 100     // documents an ingest task takes in
	embedBatch   = 100     // items an embed task embeds
	summaryBytes = 40_000  // documents of one summary task, together
	mostFanIn    = 900     // dependencies of one task stay below the limit of 1,000
	mostItems    = 90_000  // so much one index takes: mostFanIn batches
	maxBytes     = 4 << 20 // of one document
	sentences    = 4
)

// The types the shares are read from: one class, one pool, plenty of it.
const (
	sharedType = "text.summarize"
	sharedPool = "cpu"
)

// node is a task of the DAG with its key.
type node struct {
	Key string `json:"key"`
	protocol.TaskSpec
}

// workflow is the body of POST /v1/workflows.
type workflow struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	Tasks  []node            `json:"tasks"`
}

// plan builds one tenant's DAG:
//
//	ingest ─┬─► chunk ──► embed ──► index ─┬─► warm ─────┐
//	        │                              └─► evaluate ─┼─► report
//	        └─► summarize ───────────────────────────────┘
//
// What follows a task that may fail for one bad document waits for its end,
// not for its success: a dead letter holds up nobody but itself.
type plan struct {
	workspace string
	model     string
	nodes     []node
	ingestOf  []string // key of the ingest task of each document
	reports   []protocol.DependsOn
}

func newPlan(workspace, model string, documents, bad []document) (*plan, int, error) {
	p := &plan{workspace: workspace, model: model}
	all := append(append([]document{}, documents...), bad...)
	if err := p.ingest(all); err != nil {
		return nil, 0, err
	}
	items, err := p.chunk(all)
	if err != nil {
		return nil, 0, err
	}
	batches, err := p.embed(items)
	if err != nil {
		return nil, 0, err
	}
	if err := p.summarize(documents); err != nil {
		return nil, 0, err
	}
	return p, len(items), p.finish(batches)
}

func (p *plan) add(key, taskType, lane string, payload map[string]any, needs []protocol.DependsOn, change ...func(*protocol.TaskSpec)) error {
	payload["workspace"] = p.workspace
	raw, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	n := node{Key: key, TaskSpec: protocol.TaskSpec{Type: taskType, Payload: raw, Lane: lane, DependsOn: needs}}
	for _, c := range change {
		c(&n.TaskSpec)
	}
	p.nodes = append(p.nodes, n)
	return nil
}

func ended(key string) protocol.DependsOn { return protocol.DependsOn{Key: key, On: "finished"} }

// ingest takes documents in by groups of one folder.
func (p *plan) ingest(all []document) error {
	for from := 0; from < len(all); {
		to := from
		var paths []string
		for to < len(all) && to-from < ingestGroup && all[to].root == all[from].root {
			paths = append(paths, all[to].path)
			to++
		}
		key := fmt.Sprintf("ingest-%06d", from)
		payload := map[string]any{"root": all[from].root, "paths": paths, "first": from, "max_bytes": maxBytes}
		if err := p.add(key, "document.ingest", "io", payload, nil); err != nil {
			return err
		}
		for range to - from {
			p.ingestOf = append(p.ingestOf, key)
		}
		from = to
	}
	return nil
}

// item is one chunk of one document, and the task that cuts it.
type item struct{ name, chunk string }

// chunk cuts each document in a task of its own, and counts the chunks there
// will be, by cutting the document here as well: cutting is deterministic. A
// document that can't be read has none; its task will say why.
func (p *plan) chunk(all []document) ([]item, error) {
	var items []item
	for i, d := range all {
		key := fmt.Sprintf("chunk-%06d", i)
		payload := map[string]any{"root": d.root, "path": d.path, "document": i, "max_bytes": maxBytes}
		if err := p.add(key, "document.chunk", "io", payload, []protocol.DependsOn{ended(p.ingestOf[i])}); err != nil {
			return nil, err
		}
		content, err := run.Document(d.root, d.path, maxBytes)
		if err != nil {
			continue
		}
		for n := range text.Chunks(d.path, content) {
			if len(items) < mostItems {
				items = append(items, item{fmt.Sprintf("%d:%d", i, n), key})
			}
		}
	}
	return items, nil
}

func (p *plan) embed(items []item) (batches int, err error) {
	for from := 0; from < len(items); from += embedBatch {
		var names []string
		var needs []protocol.DependsOn
		for _, it := range items[from:min(from+embedBatch, len(items))] {
			names = append(names, it.name)
			if n := len(needs); n == 0 || needs[n-1].Key != it.chunk {
				needs = append(needs, ended(it.chunk))
			}
		}
		payload := map[string]any{"batch": batches, "items": names}
		err := p.add(fmt.Sprintf("embed-%04d", batches), "text.embed", "compute", payload, needs, func(s *protocol.TaskSpec) {
			s.Resources = &protocol.TaskResources{CPU: 1, GPU: 1, VRAMMB: 4096}
			if p.model != "" {
				s.Model, _ = json.Marshal(p.model) // a string always encodes
			}
		})
		if err != nil {
			return 0, err
		}
		batches++
	}
	return batches, nil
}

// summarize takes neighbours together until they are worth a task.
func (p *plan) summarize(documents []document) error {
	most, total := int64(summaryBytes), int64(0)
	for _, d := range documents {
		total += min(d.bytes, maxBytes)
	}
	most = max(most, total/(mostFanIn*3/4))
	group := 0
	for from := 0; from < len(documents); group++ {
		var named []map[string]any
		var needs []protocol.DependsOn
		bytes := int64(0)
		for from < len(documents) && (len(named) == 0 || bytes+documents[from].bytes <= most) {
			bytes += documents[from].bytes
			named = append(named, map[string]any{"document": from, "path": documents[from].path})
			if n := len(needs); n == 0 || needs[n-1].Key != p.ingestOf[from] {
				needs = append(needs, ended(p.ingestOf[from]))
			}
			from++
		}
		key := fmt.Sprintf("summarize-%04d", group)
		payload := map[string]any{"group": group, "documents": named, "sentences": sentences}
		err := p.add(key, sharedType, "batch", payload, needs, func(s *protocol.TaskSpec) {
			s.Resources = &protocol.TaskResources{CPU: 1, MemoryMB: 256}
		})
		if err != nil {
			return err
		}
		p.reports = append(p.reports, ended(key))
	}
	return nil
}

func (p *plan) finish(batches int) error {
	if batches > 0 {
		var needs []protocol.DependsOn
		for n := range batches {
			needs = append(needs, ended(fmt.Sprintf("embed-%04d", n)))
		}
		index := []protocol.DependsOn{{Key: "index"}}
		for _, n := range []struct {
			key, taskType, lane string
			payload             map[string]any
			needs               []protocol.DependsOn
		}{
			{"index", "index.update", "compute", map[string]any{"batches": batches}, needs},
			{"warm", "cache.warm", "realtime", map[string]any{"questions": questions}, index},
			{"evaluate", "eval.retrieval", "compute", map[string]any{"k": 10}, index},
		} {
			if err := p.add(n.key, n.taskType, n.lane, n.payload, n.needs); err != nil {
				return err
			}
		}
		p.reports = append(p.reports, ended("warm"), ended("evaluate"))
	}
	slug, _, _ := strings.Cut(p.workspace[strings.LastIndex(p.workspace, "/")+1:], ".")
	payload := map[string]any{"title": "Night report for " + slug}
	return p.add("report", "report.write", "io", payload, p.reports)
}

// questions are asked ahead of time, as a morning's first readers would.
var questions = []string{
	"how to read a file line by line", "cancel a request when its deadline passes", "compare two slices for equality",
	"encode a struct as JSON", "parse a date with its time zone", "copy a directory tree", "hash a password",
	"limit how many goroutines run at once", "sort by several keys", "write a test with a temporary folder",
	"replace part of a string", "serve static files", "compress a stream", "round a duration", "walk an expression tree",
}
