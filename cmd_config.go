package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"nightshift/scheduler/sim/scenario"
	"nightshift/workers/client"
)

// exportOptions say what of which server is exported.
type exportOptions struct {
	server, tokenFile, caFile string
	from, to                  string
	environment               string
	tenants                   []string
	most                      int
	output                    string
	patience                  time.Duration
}

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Take what a server knows into a file"}
	cmd.AddCommand(newConfigExportCommand())
	return cmd
}

func newConfigExportCommand() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export --trace-from TIME --trace-to TIME --token-file FILE",
		Short: "Export what came in a span of time as a scenario that simulate lives through",
		Long: `Export the tasks that were created in a span of time, with the tenants, lanes and workers of now, as a scenario:

  nightshift config export --trace-from 2026-09-16T21:00:00Z --trace-to 2026-09-17T21:00:00Z --token-file key > day.yaml
  nightshift simulate day.yaml --what-if tenant.acorn.weight=3

The key needs tasks:read. A platform key exports every tenant, a tenant's key that tenant. A task comes at the moment nothing
but capacity was missing, with the run time of its last attempt. Payloads and results are not read.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return exportTrace(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.server, "server", "http://127.0.0.1:8080", "URL of the server")
	flags.StringVar(&o.tokenFile, "token-file", "", "file with client_id:client_secret (- for standard input)")
	flags.StringVar(&o.caFile, "ca-file", "", "authority of the server's certificate, in PEM; empty: the system's")
	flags.StringVar(&o.from, "trace-from", "", "beginning of the span, RFC 3339")
	flags.StringVar(&o.to, "trace-to", "", "its end")
	flags.StringVar(&o.environment, "environment", "production", "environment of the tenants")
	flags.StringSliceVar(&o.tenants, "tenant", nil, "with a platform key: these tenants alone, by slug")
	flags.IntVar(&o.most, "most", 1_000_000, "most tasks; more are refused")
	flags.DurationVar(&o.patience, "patience", 30*time.Second, "how long a server that does not answer is asked again")
	flags.StringVarP(&o.output, "output", "o", "", "file to write; empty: standard output")
	for _, name := range []string{"token-file", "trace-from", "trace-to"} {
		_ = cmd.MarkFlagRequired(name) // fails for unknown flags alone
	}
	return cmd
}

// source is a server that is asked again while it does not answer, for so long.
type source struct {
	*client.Client
	patience time.Duration
}

func exportTrace(ctx context.Context, in io.Reader, out io.Writer, o *exportOptions) error {
	from, err := time.Parse(time.RFC3339Nano, o.from)
	if err != nil {
		return usageError{fmt.Errorf("--trace-from: %q is no moment like 2026-09-16T21:00:00Z", o.from)}
	}
	to, err := time.Parse(time.RFC3339Nano, o.to)
	if err != nil {
		return usageError{fmt.Errorf("--trace-to: %q is no moment like 2026-09-17T21:00:00Z", o.to)}
	}
	if !to.After(from) || to.Sub(from) > 366*24*time.Hour || o.most < 1 || o.patience <= 0 {
		return usageError{errors.New("--trace-to lies after --trace-from, at most a year, --most and --patience are above 0")}
	}
	id, secret, err := readCredentials(o.tokenFile, in)
	if err != nil {
		return usageError{err}
	}
	e := &exporter{from: from, to: to, left: o.most, most: o.most, environment: o.environment, groups: map[string]*group{}}
	e.open = func(headers map[string]string) (*source, error) {
		c, err := client.New(client.Options{Server: o.server, ClientID: id, ClientSecret: secret, CAFile: o.caFile, Headers: headers, UserAgent: "nightshift-config"})
		return &source{c, o.patience}, err
	}
	recording, err := e.recording(ctx, o.tenants)
	if err != nil {
		return err
	}
	if o.output == "" {
		return scenario.Write(out, recording)
	}
	file, err := os.Create(o.output)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(file)
	return errors.Join(scenario.Write(buffered, recording), buffered.Flush(), file.Close())
}
