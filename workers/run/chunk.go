package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"nightshift/workers"
	"nightshift/workers/text"
)

// chunkIn cuts one document. It takes the text that was ingested; when there
// is none, because the document was bad then, it reads the document itself:
// so it fails with the evidence, and succeeds once somebody mended the file.
type chunkIn struct {
	Workspace string `json:"workspace"`
	Root      string `json:"root"`
	Path      string `json:"path"`
	Document  int    `json:"document"`
	MaxBytes  int64  `json:"max_bytes"`
}

type chunkOut struct {
	Chunks   int    `json:"chunks"`
	Sections int    `json:"sections"`
	Bytes    int    `json:"bytes"`
	SHA256   string `json:"sha256"`
	File     string `json:"file"`
}

// chunkFile is what the later stages read.
type chunkFile struct {
	Document int          `json:"document"`
	Path     string       `json:"path"`
	Chunks   []text.Chunk `json:"chunks"`
}

func (s *station) chunk(_ context.Context, _ *workers.Task, in chunkIn) (chunkOut, error) {
	w, err := s.workspace(in.Workspace)
	if err != nil {
		return chunkOut{}, err
	}
	snapshot := numbered("documents", in.Document, ".txt")
	content, err := os.ReadFile(w.path(snapshot...))
	if err != nil {
		fresh, err := s.document(in.Root, in.Path, in.MaxBytes)
		if err != nil {
			return chunkOut{}, err
		}
		content = []byte(fresh)
		if err := w.write(content, snapshot...); err != nil {
			return chunkOut{}, err
		}
	}
	chunks := text.Chunks(in.Path, string(content))
	sections := 0
	for _, c := range chunks {
		sections = max(sections, c.Section+1)
	}
	at := numbered("chunks", in.Document, ".json")
	if err := w.writeJSON(chunkFile{in.Document, in.Path, chunks}, at...); err != nil {
		return chunkOut{}, err
	}
	sum := sha256.Sum256(content)
	return chunkOut{len(chunks), sections, len(content), hex.EncodeToString(sum[:]), filepath.Join(at...)}, nil
}
