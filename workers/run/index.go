package run

import (
	"bytes"
	"context"
	"encoding/gob"
	"maps"
	"path/filepath"

	"nightshift/workers"
	"nightshift/workers/index"
	"nightshift/workers/protocol"
)

// indexIn builds the index of a workspace from its batches of vectors and puts
// it in force.
type indexIn struct {
	Workspace string `json:"workspace"`
	Batches   int    `json:"batches"`
}

type indexOut struct {
	Version        string `json:"version"`
	Folder         string `json:"folder"`
	Documents      int    `json:"documents"`
	Sections       int    `json:"sections"`
	Chunks         int    `json:"chunks"`
	Queries        int    `json:"queries"`
	MissingBatches int    `json:"missing_batches"`
}

func (s *station) index(ctx context.Context, _ *workers.Task, in indexIn) (indexOut, error) {
	w, err := s.workspace(in.Workspace)
	if err != nil {
		return indexOut{}, err
	}
	var out indexOut
	var entries []index.Entry
	paths := map[uint32]string{}
	for batch := range in.Batches {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		content, err := w.read(numbered("vectors", batch, ".gob")...)
		if err != nil && absent(err) {
			out.MissingBatches++
			continue
		}
		if err != nil {
			return out, err
		}
		var file vectorFile
		if err := gob.NewDecoder(bytes.NewReader(content)).Decode(&file); err != nil {
			return out, workers.Errorf(protocol.ClassInternal, "vectors of batch %d: %w", batch, err)
		}
		entries = append(entries, file.Entries...)
		maps.Copy(paths, file.Paths)
	}
	if len(entries) == 0 {
		return out, workers.Errorf(protocol.ClassNotFound, "none of %d batches of vectors was written", in.Batches)
	}
	x := index.Build(entries, paths)
	if out.Version, err = x.Write(w.path("index")); err != nil {
		return out, stored(err)
	}
	out.Folder = filepath.Join(in.Workspace, "index")
	out.Documents, out.Sections, out.Chunks, out.Queries = len(paths), len(x.Sections), len(x.Vectors), len(x.Queries)
	return out, nil
}
