package run

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"nightshift/workers"
)

// Options is what a worker's operator lets the task types use.
type Options struct {
	Data        string         // folder for artefacts; workspaces of payloads lie below it
	Documents   []string       // folders documents may be read from
	Commands    []string       // programs command may run: names or absolute paths
	EgressAllow []netip.Prefix // networks reachable although internal
	Embedding   Endpoint       // where text.embed asks; none = the built-in vectoriser
}

// station is what the handlers share.
type station struct {
	options  Options
	commands map[string]string // name → absolute path
	egress   *guard
}

type entry struct {
	name string
	add  func(*workers.Worker, string, *station)
}

func typed[In, Out any](name string, f func(*station, context.Context, *workers.Task, In) (Out, error)) entry {
	return entry{name, func(w *workers.Worker, name string, s *station) {
		workers.HandleTyped(w, name, func(ctx context.Context, t *workers.Task, in In) (Out, error) { return f(s, ctx, t, in) })
	}}
}

var entries = []entry{
	typed("cache.warm", (*station).warm),
	typed("command", (*station).command),
	typed("document.chunk", (*station).chunk),
	typed("document.ingest", (*station).ingest),
	typed("eval.retrieval", (*station).evaluate),
	typed("http.request", (*station).request),
	typed("index.update", (*station).index),
	typed("report.write", (*station).report),
	typed("text.embed", (*station).embed),
	typed("text.summarize", (*station).summarize),
}

// Types lists every task type of this package.
func Types() []string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.name
	}
	return names
}

// Register adds the handlers of the types that match one of the patterns; no
// pattern means all. It answers the types that were added.
func Register(w *workers.Worker, o Options, patterns ...string) ([]string, error) {
	s, err := newStation(o)
	if err != nil {
		return nil, err
	}
	var added []string
	for _, e := range entries {
		if matches(patterns, e.name) {
			e.add(w, e.name, s)
			added = append(added, e.name)
		}
	}
	for _, p := range patterns {
		if !slices.ContainsFunc(added, func(name string) bool { return matches([]string{p}, name) }) {
			return nil, fmt.Errorf("task type %q: this worker has %s", p, strings.Join(Types(), ", "))
		}
	}
	return added, nil
}

func newStation(o Options) (*station, error) {
	s := &station{options: o, egress: &guard{allow: o.EgressAllow}}
	s.options.Documents = nil
	for _, folder := range o.Documents {
		absolute, err := filepath.Abs(folder)
		if err != nil {
			return nil, err
		}
		s.options.Documents = append(s.options.Documents, absolute)
	}
	var err error
	s.commands, err = allowed(o.Commands)
	return s, err
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		prefix, open := strings.CutSuffix(p, "*")
		if p == name || open && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return len(patterns) == 0
}
