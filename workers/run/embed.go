package run

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"path/filepath"

	"nightshift/workers"
	"nightshift/workers/index"
	"nightshift/workers/protocol"
	"nightshift/workers/text"
)

// embedIn embeds chunks of a workspace, named "document:chunk", or texts given
// in the payload, whose vectors come back in the result.
type embedIn struct {
	Workspace string   `json:"workspace"`
	Batch     int      `json:"batch"`
	Items     []string `json:"items"`
	Texts     []string `json:"texts"`
	// A slice of a batch also names where its items begin; nothing follows
	// from it here.
	FirstIndex int `json:"first_index"`
}

type embedOut struct {
	Embedded int           `json:"embedded"`
	Missing  []string      `json:"missing"` // items whose document was never cut
	Model    string        `json:"model"`
	Terms    int           `json:"terms"`
	File     string        `json:"file,omitempty"`
	Vectors  [][]text.Term `json:"vectors,omitempty"`
}

// vectorFile is what index.update reads.
type vectorFile struct {
	Paths   map[uint32]string
	Entries []index.Entry
}

func (s *station) embed(ctx context.Context, t *workers.Task, in embedIn) (embedOut, error) {
	out := embedOut{Missing: []string{}, Model: s.options.Embedding.name()}
	if len(in.Texts) > 0 {
		vectors, err := s.vectors(ctx, t, in.Texts)
		out.Vectors, out.Embedded, out.Terms = vectors, len(vectors), countTerms(vectors)
		return out, err
	}
	w, err := s.workspace(in.Workspace)
	if err != nil {
		return out, err
	}
	file := vectorFile{Paths: map[uint32]string{}}
	var texts []string
	files := map[int]*chunkFile{}
	for _, item := range in.Items {
		var document, number int
		if _, err := fmt.Sscanf(item, "%d:%d", &document, &number); err != nil {
			return out, workers.Errorf(protocol.ClassInvalidInput, "item %q is not document:chunk", item)
		}
		if files[document] == nil {
			files[document] = &chunkFile{}
			// A document that was never cut has failed on its own.
			if err := w.readJSON(files[document], numbered("chunks", document, ".json")...); err != nil && !absent(err) {
				return out, err
			}
		}
		from := files[document]
		if number < 0 || number >= len(from.Chunks) {
			out.Missing = append(out.Missing, item)
			continue
		}
		file.Paths[uint32(document)] = from.Path
		texts = file.add(document, from.Chunks[number], texts)
		out.Embedded++
	}
	vectors, err := s.vectors(ctx, t, texts)
	if err != nil {
		return out, err
	}
	for i := range vectors {
		file.Entries[i].Terms = vectors[i]
	}
	var content bytes.Buffer
	if err := gob.NewEncoder(&content).Encode(file); err != nil {
		return out, err
	}
	at := numbered("vectors", in.Batch, ".gob")
	out.Terms, out.File = countTerms(vectors), filepath.Join(at...)
	return out, w.write(content.Bytes(), at...)
}

// add notes a chunk and, with the first of a section, the heading that will
// ask for it; it answers the texts to embed, in the entries' order.
func (f *vectorFile) add(document int, c text.Chunk, texts []string) []string {
	e := index.Entry{Document: uint32(document), Section: uint32(c.Section), Heading: c.Heading}
	f.Entries, texts = append(f.Entries, e), append(texts, c.Text)
	if c.Piece == 0 && c.Heading != "" {
		e.Query = true
		f.Entries, texts = append(f.Entries, e), append(texts, c.Heading)
	}
	return texts
}

// absent says that an artefact was never written.
func absent(err error) bool {
	var own *workers.Error
	return errors.As(err, &own) && own.Class == protocol.ClassNotFound
}

func countTerms(vectors [][]text.Term) int {
	n := 0
	for _, v := range vectors {
		n += len(v)
	}
	return n
}

// vectors embeds texts, a hundred a call where an endpoint does it.
func (s *station) vectors(ctx context.Context, t *workers.Task, texts []string) ([][]text.Term, error) {
	if s.options.Embedding.URL != "" {
		return s.options.Embedding.embed(ctx, s.egress, t, texts)
	}
	out := make([][]text.Term, len(texts))
	for i, one := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = text.Vector(one)
	}
	return out, nil
}
