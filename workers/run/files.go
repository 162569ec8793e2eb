package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"nightshift/workers"
	"nightshift/workers/protocol"
)

// workspace is one folder of artefacts below the data folder. Its name comes
// with the payload; a long random name keeps it from being guessed.
type workspace string

func (s *station) workspace(name string) (workspace, error) {
	if s.options.Data == "" {
		return "", workers.Errorf(protocol.ClassInternal, "this worker was given no data folder")
	}
	if name == "" || !filepath.IsLocal(name) || strings.HasPrefix(filepath.Clean(name), ".") {
		return "", workers.Errorf(protocol.ClassInvalidInput, "workspace %q is no folder below the data folder", name)
	}
	return workspace(filepath.Join(s.options.Data, name)), nil
}

func (w workspace) path(parts ...string) string {
	return filepath.Join(append([]string{string(w)}, parts...)...)
}

func numbered(folder string, n int, ending string) []string {
	return []string{folder, fmt.Sprintf("%06d%s", n, ending)}
}

// write replaces a file whole, so that a reader or a second execution never
// sees half of one.
func (w workspace) write(content []byte, parts ...string) error {
	target := w.path(parts...)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return stored(err)
	}
	side, err := os.CreateTemp(filepath.Dir(target), ".new-")
	if err != nil {
		return stored(err)
	}
	defer os.Remove(side.Name())
	_, err = side.Write(content)
	if closing := side.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(side.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(side.Name(), target)
	}
	return stored(err)
}

func (w workspace) writeJSON(value any, parts ...string) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.write(append(content, '\n'), parts...)
}

// read answers a file of the workspace; one that is missing is not found, for
// the task that should have written it has not.
func (w workspace) read(parts ...string) ([]byte, error) {
	content, err := os.ReadFile(w.path(parts...))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, workers.Errorf(protocol.ClassNotFound, "%s was not written", filepath.Join(parts...))
	}
	return content, stored(err)
}

func (w workspace) readJSON(into any, parts ...string) error {
	content, err := w.read(parts...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return workers.Errorf(protocol.ClassInternal, "%s: %w", filepath.Join(parts...), err)
	}
	return nil
}

// stored gives a disk's failure the class that is tried again.
func stored(err error) error {
	var own *workers.Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return workers.Errorf(protocol.ClassInternal, "data folder: %w", err)
}

// defaultMaxBytes is what a document may have when its task does not say.
const defaultMaxBytes = 4 << 20

// document reads one document of an allowed folder.
func (s *station) document(root, path string, most int64) (string, error) {
	if !s.readable(root) {
		return "", workers.Errorf(protocol.ClassPermissionDenied, "folder %s: this worker may not read documents there", root)
	}
	return Document(root, path, most)
}

// Document reads one document below a folder, never outside it. What can't be
// taken in is the input's fault and says so: trying again does not mend it.
// Most is in bytes, 0 the default of 4 MB.
func Document(root, path string, most int64) (string, error) {
	if most <= 0 {
		most = defaultMaxBytes
	}
	folder, err := os.OpenRoot(root)
	if err != nil {
		return "", unreadable(root, err)
	}
	defer folder.Close()
	info, err := folder.Stat(path) // before opening: opening a pipe would hang
	if err != nil {
		return "", unreadable(path, err)
	}
	if !info.Mode().IsRegular() {
		return "", workers.Errorf(protocol.ClassInvalidInput, "%s: unreadable, it is no regular file (%s)", path, info.Mode().Type())
	}
	if info.Size() > most {
		return "", workers.Errorf(protocol.ClassInvalidInput, "%s: too large, %d bytes where %d are the most", path, info.Size(), most)
	}
	file, err := folder.Open(path)
	if err != nil {
		return "", unreadable(path, err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return "", unreadable(path, err)
	}
	if at := notText(content); at >= 0 {
		return "", workers.Errorf(protocol.ClassInvalidInput, "%s: not text, byte 0x%02x at offset %d", path, content[at], at)
	}
	return string(content), nil
}

func (s *station) readable(root string) bool {
	clean := filepath.Clean(root)
	for _, folder := range s.options.Documents {
		if inside, err := filepath.Rel(folder, clean); err == nil && filepath.IsLocal(inside) {
			return filepath.IsAbs(clean)
		}
	}
	return false
}

func unreadable(path string, err error) error {
	class := protocol.ClassInvalidInput
	switch {
	case errors.Is(err, fs.ErrNotExist):
		class = protocol.ClassNotFound
	case errors.Is(err, fs.ErrPermission):
		class = protocol.ClassPermissionDenied
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err // the path is named already
	}
	return workers.Errorf(class, "%s: unreadable, %w", path, err)
}

// notText answers where a document stops being UTF-8 text, or -1.
func notText(content []byte) int {
	for i := 0; i < len(content); {
		if content[i] == 0 {
			return i
		}
		if content[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
