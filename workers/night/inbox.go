package night

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// inbox writes a tenant's inbox: four documents somebody dropped there that
// can't be taken in. They end as dead letters; an operator who mends a file
// can redrive its task.
func inbox(folder string) ([]document, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	paths := []string{"scan.md", "invoice-latin1.txt", "export.txt", "moved-away.md"}
	picture := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x80\x00\x00\x01\xe0\x08\x02\x00\x00\x00")
	if err := os.WriteFile(filepath.Join(folder, paths[0]), picture, 0o644); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, paths[1]), []byte("Rechnung f\xfcr M\xe4rz\nSumme: 12,50\n"), 0o644); err != nil {
		return nil, err
	}
	// Large but sparse: it has a size, not that many blocks.
	large, err := os.Create(filepath.Join(folder, paths[2]))
	if err != nil {
		return nil, err
	}
	err = large.Truncate(64 << 20)
	if closing := large.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return nil, err
	}
	// A link to nowhere is unreadable for everybody, root included.
	if err := os.Symlink("archive/2019/moved-away.md", filepath.Join(folder, paths[3])); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	out := make([]document, len(paths))
	for i, path := range paths {
		out[i] = document{root: folder, path: path}
	}
	return out, nil
}
