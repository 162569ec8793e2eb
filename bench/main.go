// Command bench measures speed as ratios against PostgreSQL's own limit, both taken in one run on one private server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"nightshift/bench/endtoend"
	"nightshift/bench/store"
	"nightshift/models/postgres/local"
)

func main() {
	var o store.Options
	flag.StringVar(&o.DSN, "dsn", "", "the login of an empty database; default: a private server is started")
	flag.StringVar(&o.Admin, "admin", "", "an administrator of the same database")
	flag.IntVar(&o.Rounds, "rounds", 0, "alternating runs")
	flag.IntVar(&o.Tasks, "tasks", 0, "tasks a run at batch 500")
	flows := flag.Bool("flows", false, "measure workflows of 100,000 tasks instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, *flows); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o store.Options, flows bool) error {
	root, err := os.MkdirTemp("", "nightshift-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if o.DSN == "" {
		if err := os.Chmod(root, 0o755); err != nil { // started as root, the server runs as somebody else
			return err
		}
		server, err := local.Start(ctx, local.Options{Root: root + "/db"})
		if err != nil {
			return err
		}
		defer server.Stop()
		o.DSN, o.Admin = server.DSN(), server.AdminDSN()
	}
	if flows {
		f, err := endtoend.MeasureFlows(ctx, endtoend.Options{DSN: o.DSN, Folder: root}, os.Stdout)
		if err != nil {
			return err
		}
		return f.Verdict()
	}
	figures, err := store.Measure(ctx, o, os.Stdout)
	if err != nil {
		return err
	}
	e := endtoend.Options{DSN: o.DSN, Folder: root, Raw: figures.Raw500, Counts: figures.Counts}
	whole, err := endtoend.Measure(ctx, e, os.Stdout)
	if err != nil {
		return err
	}
	return errors.Join(figures.Verdict(), whole.Verdict(e))
}
