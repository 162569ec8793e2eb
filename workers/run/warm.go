package run

import (
	"context"
	"time"

	"nightshift/workers"
	"nightshift/workers/index"
	"nightshift/workers/protocol"
	"nightshift/workers/text"
)

// warmIn answers questions ahead of time and keeps the answers beside the
// index; without questions the index's own headings are asked.
type warmIn struct {
	Workspace string   `json:"workspace"`
	Questions []string `json:"questions"`
	K         int      `json:"k"`
}

type warmOut struct {
	Questions    int     `json:"questions"`
	Answered     int     `json:"answered"`
	Milliseconds float64 `json:"milliseconds"`
	File         string  `json:"file"`
}

type warmAnswer struct {
	Question string      `json:"question"`
	Hits     []index.Hit `json:"hits"`
}

const warmHeadings = 200

func (s *station) warm(ctx context.Context, _ *workers.Task, in warmIn) (warmOut, error) {
	w, err := s.workspace(in.Workspace)
	if err != nil {
		return warmOut{}, err
	}
	x, _, err := index.Open(w.path("index"))
	if err != nil {
		return warmOut{}, workers.Errorf(protocol.ClassNotFound, "index: %w", err)
	}
	if in.K <= 0 {
		in.K = 10
	}
	begun := time.Now()
	searcher := index.NewSearcher(x)
	answers := []warmAnswer{}
	if len(in.Questions) == 0 {
		for _, q := range x.Queries[:min(warmHeadings, len(x.Queries))] {
			answers = append(answers, warmAnswer{x.Sections[q.Section].Heading, searcher.Search(q.Terms, in.K)})
		}
	}
	for _, question := range in.Questions {
		if err := ctx.Err(); err != nil {
			return warmOut{}, err
		}
		answers = append(answers, warmAnswer{question, searcher.Search(x.Weigh(text.Vector(question)), in.K)})
	}
	out := warmOut{Questions: len(answers), File: "cache/answers.json"}
	for _, a := range answers {
		if len(a.Hits) > 0 {
			out.Answered++
		}
	}
	out.Milliseconds = float64(time.Since(begun).Microseconds()) / 1000
	return out, w.writeJSON(answers, "cache", "answers.json")
}
