package run

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"html/template"
	"path/filepath"
	"slices"
	texttemplate "text/template"

	"nightshift/workers"
	"nightshift/workers/index"
	"nightshift/workers/protocol"
)

// reportIn writes a report of what a workspace holds.
type reportIn struct {
	Workspace string `json:"workspace"`
	Title     string `json:"title"`
	Subtitle  string `json:"subtitle"`
	Format    string `json:"format"` // html (default) or markdown
}

type reportOut struct {
	File       string            `json:"file"`
	Path       string            `json:"path"`
	Bytes      int               `json:"bytes"`
	Documents  int               `json:"documents"`
	Bad        int               `json:"bad"`
	Summarised int               `json:"summarised"`
	Evaluation *index.Evaluation `json:"evaluation"`
}

// reportView is what the templates see.
type reportView struct {
	Title, Subtitle string
	Documents       int
	Bad             []badDocument
	Index           *index.Meta
	Evaluation      *index.Evaluation
	Answers         []warmAnswer
	Summaries       []documentSummary
	Summarised      int
	Shown           int
}

// Bounds of what a person reads.
const (
	shownAnswers   = 12
	shownSummaries = 60
)

//go:embed report.html.tmpl
var htmlText string

//go:embed report.md.tmpl
var markdownText string

var (
	shared       = map[string]any{"percent": func(v float64) float64 { return 100 * v }}
	htmlForm     = template.Must(template.New("html").Funcs(shared).Parse(htmlText))
	markdownForm = texttemplate.Must(texttemplate.New("markdown").Funcs(shared).Parse(markdownText))
)

func (s *station) report(_ context.Context, _ *workers.Task, in reportIn) (reportOut, error) {
	w, err := s.workspace(in.Workspace)
	if err != nil {
		return reportOut{}, err
	}
	view, err := w.view()
	if err != nil {
		return reportOut{}, err
	}
	view.Title, view.Subtitle = cmp.Or(in.Title, "Report"), in.Subtitle
	var page bytes.Buffer
	file := "report.html"
	switch in.Format {
	case "", "html":
		err = htmlForm.Execute(&page, view)
	case "markdown":
		file = "report.md"
		err = markdownForm.Execute(&page, view)
	default:
		return reportOut{}, workers.Errorf(protocol.ClassInvalidInput, "format %q is neither html nor markdown", in.Format)
	}
	if err != nil {
		return reportOut{}, err
	}
	out := reportOut{
		File: file, Path: w.path(file), Bytes: page.Len(), Documents: view.Documents, Bad: len(view.Bad),
		Summarised: view.Summarised, Evaluation: view.Evaluation,
	}
	return out, w.write(page.Bytes(), file)
}

// view gathers what stands in the workspace; a stage that has not run leaves
// its part out.
func (w workspace) view() (reportView, error) {
	v := reportView{Bad: []badDocument{}}
	err := eachFile(w, "manifests", func(m manifest) {
		v.Documents += len(m.Documents)
		v.Bad = append(v.Bad, m.Bad...)
	})
	if err != nil {
		return v, err
	}
	if err := eachFile(w, "summaries", func(group []documentSummary) {
		v.Summarised += len(group)
		v.Summaries = append(v.Summaries, group...)
	}); err != nil {
		return v, err
	}
	slices.SortStableFunc(v.Summaries, func(a, b documentSummary) int { return cmp.Compare(b.Bytes, a.Bytes) })
	v.Summaries = v.Summaries[:min(shownSummaries, len(v.Summaries))]
	v.Shown = len(v.Summaries)
	if _, meta, err := index.Open(w.path("index")); err == nil {
		v.Index = &meta
	}
	var e index.Evaluation
	if err := w.readJSON(&e, "evaluation.json"); err == nil {
		v.Evaluation = &e
	} else if !absent(err) {
		return v, err
	}
	if err := w.readJSON(&v.Answers, "cache", "answers.json"); err != nil && !absent(err) {
		return v, err
	}
	v.Answers = v.Answers[:min(shownAnswers, len(v.Answers))]
	for i, a := range v.Answers {
		v.Answers[i].Hits = a.Hits[:min(3, len(a.Hits))]
	}
	return v, nil
}

// eachFile reads every JSON file of a folder, in order of its name.
func eachFile[T any](w workspace, folder string, use func(T)) error {
	files, err := filepath.Glob(w.path(folder, "*.json"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	for _, file := range files {
		var value T
		if err := w.readJSON(&value, folder, filepath.Base(file)); err != nil {
			return err
		}
		use(value)
	}
	return nil
}
