package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"nightshift/models/postgres/local"
)

// ground is what a server stands on: its configuration, a data folder, a secret key and a database that answers.
type ground struct {
	config   Config // DatabaseURL and SecretKey are set, wherever they came from
	log      *slog.Logger
	embedded *local.Server // nil with a DATABASE_URL
	patience time.Duration // how long a connection to the database and a batch may take: tests on a busy machine; 0: the usual
}

// environmentConfig is the process's own configuration.
func environmentConfig(folder string) (Config, error) {
	data := dataRoot(os.Environ())
	if data != "" {
		data = filepath.Join(data, folder)
	}
	return loadConfig(os.Environ(), data)
}

// prepare makes the ground ready; close it when the server has ended.
func prepare(ctx context.Context, c Config, log *slog.Logger) (*ground, error) {
	// Open to others, or the account that runs PostgreSQL for root could not reach its own folder below; what is secret
	// in it has a mode of its own.
	if err := makeFolder(c.Data); err != nil {
		return nil, usageError{fmt.Errorf("NIGHTSHIFT_DATA: %w", err)}
	}
	if err := c.ensureSecretKey(); err != nil {
		return nil, usageError{err}
	}
	g := &ground{config: c, log: log}
	if c.DatabaseURL != "" {
		return g, nil
	}
	embedded, err := local.Start(ctx, local.Options{
		Root: filepath.Join(c.Data, "postgres"), Bin: c.PGBin, Mirror: c.PGMirror, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	g.embedded, g.config.DatabaseURL = embedded, embedded.DSN()
	if err := writePrivate(filepath.Join(c.Data, "database.url"), []byte(embedded.DSN()+"\n")); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// makeFolder makes the data folder, and those above it, where they are missing, with its mode whatever the umask is; one that is there is left as
// its owner wants it.
func makeFolder(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}

// databaseEnded is closed when the embedded database ends by itself; nil, and so never, for one that is not ours.
func (g *ground) databaseEnded() <-chan struct{} {
	if g.embedded == nil {
		return nil
	}
	return g.embedded.Done()
}

func (g *ground) close() {
	if g.embedded == nil {
		return
	}
	if err := g.embedded.Stop(); err != nil {
		g.log.Error("stopping the embedded database", "error", err)
	}
}

// newLogger writes lines of text or JSON as the configuration says.
func newLogger(c Config, to io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}
