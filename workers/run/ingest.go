package run

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nightshift/workers"
	"nightshift/workers/protocol"
)

// ingestIn takes documents of a folder into a workspace: those named, or all
// with one of the endings. Those no newer than Since, or than the task's
// watermark, are left out.
type ingestIn struct {
	Workspace string     `json:"workspace"`
	Root      string     `json:"root"`
	Paths     []string   `json:"paths"`   // below Root; none = walk
	Endings   []string   `json:"endings"` // of a walk, default .md .html .txt .go
	First     int        `json:"first"`   // number of the first document
	Since     *time.Time `json:"since"`
	MaxBytes  int64      `json:"max_bytes"`
}

type ingestOut struct {
	Documents int           `json:"documents"`
	Unchanged int           `json:"unchanged"`
	Bytes     int64         `json:"bytes"`
	Newest    time.Time     `json:"newest"`
	Bad       []badDocument `json:"bad"`
	Manifest  string        `json:"manifest"`
}

// badDocument is a document that can't be taken in. It does not fail the
// others: a task of its own is where it fails, with this as the evidence.
type badDocument struct {
	Document int    `json:"document"`
	Path     string `json:"path"`
	Class    string `json:"class"`
	Message  string `json:"message"`
}

type manifest struct {
	Root      string         `json:"root"`
	Documents map[int]string `json:"documents"`
	Bad       []badDocument  `json:"bad"`
}

func (s *station) ingest(ctx context.Context, t *workers.Task, in ingestIn) (ingestOut, error) {
	out := ingestOut{Bad: []badDocument{}}
	w, err := s.workspace(in.Workspace)
	if err != nil {
		return out, err
	}
	since, err := watermark(t, in.Since)
	if err != nil {
		return out, err
	}
	paths := in.Paths
	if len(paths) == 0 {
		if paths, err = s.walk(in.Root, in.Endings); err != nil {
			return out, err
		}
	}
	m := manifest{Root: in.Root, Documents: map[int]string{}, Bad: []badDocument{}}
	for i, path := range paths {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		modified := modified(in.Root, path)
		if !since.IsZero() && !modified.After(since) {
			out.Unchanged++
			continue
		}
		content, err := s.document(in.Root, path, in.MaxBytes)
		var bad *workers.Error
		if errors.As(err, &bad) && bad.Class != protocol.ClassInternal {
			m.Bad = append(m.Bad, badDocument{in.First + i, path, bad.Class, bad.Message})
			continue
		}
		if err != nil {
			return out, err
		}
		if err := w.write([]byte(content), numbered("documents", in.First+i, ".txt")...); err != nil {
			return out, err
		}
		m.Documents[in.First+i] = path
		out.Documents++
		out.Bytes += int64(len(content))
		if modified.After(out.Newest) {
			out.Newest = modified
		}
	}
	at := numbered("manifests", in.First, ".json")
	if err := w.writeJSON(m, at...); err != nil {
		return out, err
	}
	out.Bad, out.Manifest = m.Bad, filepath.Join(at...)
	if t.Watermark != nil && out.Newest.After(since) {
		return out, t.MoveWatermark(protocol.At(out.Newest))
	}
	return out, nil
}

// watermark is the later of the payload's moment and the task's watermark.
func watermark(t *workers.Task, since *time.Time) (time.Time, error) {
	var mark time.Time
	if t.Watermark != nil && len(t.Watermark.Value) > 0 && string(t.Watermark.Value) != "null" {
		if err := json.Unmarshal(t.Watermark.Value, &mark); err != nil {
			return mark, workers.Errorf(protocol.ClassInvalidInput, "the watermark is no moment: %w", err)
		}
	}
	if since != nil && since.After(mark) {
		mark = *since
	}
	return mark, nil
}

// modified is when a document changed, at the wire's resolution; one that
// can't be asked counts as new, so that its failure is seen.
func modified(root, path string) time.Time {
	info, err := os.Lstat(filepath.Join(root, path))
	if err != nil {
		return time.Now()
	}
	return protocol.At(info.ModTime())
}

func (s *station) walk(root string, endings []string) ([]string, error) {
	if !s.readable(root) {
		return nil, workers.Errorf(protocol.ClassPermissionDenied, "folder %s: this worker may not read documents there", root)
	}
	if len(endings) == 0 {
		endings = []string{".md", ".html", ".txt", ".go"}
	}
	var paths []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if slices.Contains(endings, strings.ToLower(filepath.Ext(path))) {
			below, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			paths = append(paths, below)
		}
		return nil
	})
	if err != nil {
		return nil, unreadable(root, err)
	}
	return paths, nil
}
