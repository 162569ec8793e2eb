package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"nightshift/workers"
	"nightshift/workers/run"
)

// Run works until ctx ends, a signal comes, the server asks for a drain, or
// going on makes no sense; see workers.Worker.Run.
func Run(ctx context.Context, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if o.Data != "" {
		if o.Data, err = filepath.Abs(o.Data); err != nil {
			return err
		}
		place, err := occupy(o.Data, o.Worker.Name)
		if err != nil {
			return err
		}
		defer place.Close()
		if o.Worker.InstanceID == "" {
			if o.Worker.InstanceID, err = place.instance(o.Worker.Name); err != nil {
				return err
			}
		}
	}
	patterns := o.Worker.TaskTypes
	o.Worker.TaskTypes = nil // registered is what there is a handler for
	w, err := workers.New(o.Worker)
	if err != nil {
		return err
	}
	if _, err := run.Register(w, o.station(), patterns...); err != nil {
		return err
	}
	return w.Run(ctx)
}

// place is a worker's own file in the data folder, locked while it runs.
type place struct{ *os.File }

// occupy locks the place of a name, so that no second worker takes it.
func occupy(data, name string) (place, error) {
	folder := filepath.Join(data, "workers")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return place{}, err
	}
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return place{}, fmt.Errorf("name %q is no file name", name)
	}
	file, err := os.OpenFile(filepath.Join(folder, name+".instance"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return place{}, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return place{}, fmt.Errorf("a worker named %s already runs in %s; give this one another name or folder", name, data)
	}
	return place{file}, nil
}

// instance reads the id of this place, or makes it the first time.
func (p place) instance(name string) (string, error) {
	raw, err := os.ReadFile(p.Name())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if id := strings.TrimSpace(string(raw)); id != "" {
		return id, nil
	}
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	id := name + "-" + hex.EncodeToString(b[:])
	if err := p.Truncate(0); err != nil {
		return "", err
	}
	_, err = p.WriteAt([]byte(id+"\n"), 0)
	return id, err
}
