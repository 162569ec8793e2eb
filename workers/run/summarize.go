package run

import (
	"context"
	"path/filepath"

	"nightshift/workers"
	"nightshift/workers/protocol"
	"nightshift/workers/text"
)

// summarizeIn summarises documents of a workspace, or one text.
type summarizeIn struct {
	Workspace string          `json:"workspace"`
	Group     int             `json:"group"`
	Documents []namedDocument `json:"documents"`
	Text      string          `json:"text"`
	Sentences int             `json:"sentences"`
}

type namedDocument struct {
	Document int    `json:"document"`
	Path     string `json:"path"`
}

type summarizeOut struct {
	Documents int      `json:"documents"`
	Missing   []string `json:"missing"` // documents that were never ingested
	File      string   `json:"file,omitempty"`
	Sentences []string `json:"sentences,omitempty"`
}

type documentSummary struct {
	namedDocument
	Bytes     int      `json:"bytes"`
	Sentences []string `json:"sentences"`
}

func (s *station) summarize(ctx context.Context, _ *workers.Task, in summarizeIn) (summarizeOut, error) {
	out := summarizeOut{Missing: []string{}}
	if in.Sentences <= 0 {
		in.Sentences = 3
	}
	if in.Text != "" {
		out.Documents, out.Sentences = 1, text.Summary("text.md", in.Text, in.Sentences)
		return out, nil
	}
	w, err := s.workspace(in.Workspace)
	if err != nil {
		return out, err
	}
	if len(in.Documents) == 0 {
		return out, workers.Errorf(protocol.ClassInvalidInput, "neither documents nor text to summarise")
	}
	summaries := []documentSummary{}
	for _, d := range in.Documents {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		content, err := w.read(numbered("documents", d.Document, ".txt")...)
		if err != nil && absent(err) {
			out.Missing = append(out.Missing, d.Path)
			continue
		}
		if err != nil {
			return out, err
		}
		summaries = append(summaries, documentSummary{d, len(content), text.Summary(d.Path, string(content), in.Sentences)})
	}
	at := numbered("summaries", in.Group, ".json")
	out.Documents, out.File = len(summaries), filepath.Join(at...)
	return out, w.writeJSON(summaries, at...)
}
