package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"nightshift/workers"
	"nightshift/workers/protocol"
	tasktypes "nightshift/workers/run"
)

// agentOptions are what tasks may do on the worker's machine.
type agentOptions struct {
	allowCommands []string           // programs that tasks of type command may run
	folder        string             // where document tasks keep indexes, caches and reports
	documents     []string           // folders that document tasks may read
	egressAllow   []netip.Prefix     // internal networks that http.request may reach
	embedding     tasktypes.Endpoint // where text.embed asks; none: the built-in vectoriser
}

// newWorkerCommand is a worker; work runs it until the context ends.
func newWorkerCommand(work func(context.Context, workers.Options, agentOptions) error) *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker --server URL --token-file FILE",
		Short: "Pull tasks from a server and do them",
		Long: `Pull tasks from a server and do them. The file holds client_id:client_secret of an API key with the scope
workers:register. SIGTERM drains: running tasks are finished, the others go back.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := f.options(cmd.InOrStdin())
			if err != nil {
				return usageError{err}
			}
			options.Logger = newLogger(Config{}, cmd.ErrOrStderr())
			if f.agent.egressAllow, err = egressAllow(os.Environ()); err != nil {
				return usageError{err}
			}
			return work(cmd.Context(), options, f.agent)
		},
	}
	f.define(cmd.Flags())
	for _, needed := range []string{"server", "token-file"} {
		_ = cmd.MarkFlagRequired(needed) // fails for unknown flags alone
	}
	return cmd
}

type workerFlags struct {
	worker           workers.Options
	agent            agentOptions
	tokenFile, slots string
	embedKeyFile     string
	gpus             []int64
}

func (f *workerFlags) define(flags *pflag.FlagSet) {
	o := &f.worker
	host, _ := os.Hostname() // without one the name must be given
	flags.StringVar(&o.Server, "server", "", "URL of the server")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with client_id:client_secret (- for standard input)")
	flags.StringVar(&o.CAFile, "ca-file", "", "authority of the server's certificate, in PEM")
	flags.StringVar(&o.Name, "name", host, "the worker's name")
	flags.StringVar(&o.InstanceID, "instance-id", "", "one a living process; empty: made up")
	flags.StringSliceVar(&o.TaskTypes, "types", nil, "task types to take, exact or ending in *; empty: all this worker knows")
	flags.StringSliceVar(&o.Lanes, "lanes", nil, "lanes to work on; empty: all")
	flags.StringSliceVar(&o.Kinds, "kinds", nil, "kinds to work on (realtime, io, compute, batch); empty: all")
	flags.StringVar(&f.slots, "slots", "1", "tasks at once: a number, or a number a kind: io=200,compute=2")
	flags.StringVar(&o.Pool, "pool", "", "pool of like workers; empty: gpu with cards, else cpu")
	flags.Float64Var(&o.Resources.CPU, "cpu", 0, "processor cores to give")
	flags.Int64Var(&o.Resources.MemoryMB, "memory-mb", 0, "memory to give")
	flags.Int64Var(&o.Resources.DiskMB, "disk-mb", 0, "disk to give")
	flags.Int64SliceVar(&f.gpus, "gpus", nil, "VRAM in MB of each card to give: 16384,24576")
	flags.StringSliceVar(&o.Models, "models", nil, "models this worker has loaded")
	flags.StringSliceVar(&o.Permissions, "permissions", nil, "permissions this worker can act under")
	flags.StringToStringVar(&o.Labels, "labels", nil, "labels that tasks may select: region=eu,disk=fast")
	flags.IntVar(&o.LeaseSeconds, "lease-seconds", protocol.DefaultLeaseSeconds, "seconds without a heartbeat until a task is offered again, 2 to 300")
	flags.DurationVar(&o.DrainTimeout, "drain", 20*time.Second, "how long running tasks may finish at the end")
	flags.StringSliceVar(&f.agent.allowCommands, "allow-command", nil, "programs that command tasks may run; empty: none")
	flags.StringSliceVar(&f.agent.documents, "documents", nil, "folders that document tasks may read; empty: none")
	flags.StringVar(&f.agent.embedding.URL, "embed-url", "", "OpenAI-compatible endpoint for text.embed, up to and with /v1; empty: the built-in vectoriser")
	flags.StringVar(&f.agent.embedding.Model, "embed-model", "", "model asked of it")
	flags.StringVar(&f.embedKeyFile, "embed-key-file", "", "file with its key")
	flags.StringVar(&f.agent.folder, "folder", "", "folder for indexes, caches and reports of document tasks")
}

// options checks what the flags say together.
func (f *workerFlags) options(stdin io.Reader) (workers.Options, error) {
	o := f.worker
	var err error
	if o.ClientID, o.ClientSecret, err = readCredentials(f.tokenFile, stdin); err != nil {
		return o, err
	}
	if o.Slots, o.SlotsByKind, err = parseSlots(f.slots); err != nil {
		return o, fmt.Errorf("--slots: %w", err)
	}
	if o.LeaseSeconds < protocol.MinLeaseSeconds || o.LeaseSeconds > protocol.MaxLeaseSeconds {
		return o, fmt.Errorf("--lease-seconds: %d is not %d to %d", o.LeaseSeconds, protocol.MinLeaseSeconds, protocol.MaxLeaseSeconds)
	}
	for _, vramMB := range f.gpus {
		if vramMB < 1 {
			return o, fmt.Errorf("--gpus: a card with %d MB", vramMB)
		}
		o.Resources.GPUs = append(o.Resources.GPUs, protocol.GPU{VRAMMB: vramMB})
	}
	if f.embedKeyFile != "" {
		key, err := os.ReadFile(f.embedKeyFile)
		if err != nil {
			return o, fmt.Errorf("--embed-key-file: %w", err)
		}
		f.agent.embedding.Key = strings.TrimSpace(string(key))
	}
	o.Version, o.KeepSignals = versionText(), true
	return o, nil
}

// parseSlots reads 8, or io=200,compute=2.
func parseSlots(value string) (all int, byKind map[string]int, err error) {
	if !strings.Contains(value, "=") {
		if all, err = strconv.Atoi(value); err != nil || all < 1 {
			return 0, nil, fmt.Errorf("%q is no number of slots", value)
		}
		return all, nil, nil
	}
	byKind = map[string]int{}
	for part := range strings.SplitSeq(value, ",") {
		kind, number, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || kind == "" {
			return 0, nil, fmt.Errorf("%q is not like io=200", part)
		}
		byKind[kind] = n
	}
	return 0, byKind, nil
}
