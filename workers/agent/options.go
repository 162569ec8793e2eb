package agent

import (
	"cmp"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"nightshift/workers"
	"nightshift/workers/protocol"
	"nightshift/workers/run"
)

// Options is what the flags of `nightshift worker` say.
type Options struct {
	Server    string
	TokenFile string // holds client_id:client_secret
	CAFile    string
	Name      string // default: the host's name

	Lanes       []string
	Kinds       []string
	TaskTypes   []string // default: all of package run
	Pool        string
	Slots       int // default: the CPUs
	CPU         float64
	MemoryMB    int64
	DiskMB      int64
	GPU         int
	VRAMMB      int64 // of all cards together
	Models      []string
	Permissions []string
	Labels      map[string]string

	LeaseSeconds int
	Data         string // folder for artefacts and the instance id
	Documents    []string
	Commands     []string
	EgressAllow  []string

	EmbeddingURL     string
	EmbeddingModel   string
	EmbeddingKeyFile string

	Version string
	Logger  *slog.Logger
}

// list is a flag that may be repeated or hold commas.
type list struct{ into *[]string }

func (l list) String() string {
	if l.into == nil {
		return ""
	}
	return strings.Join(*l.into, ",")
}

func (l list) Set(text string) error {
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			*l.into = append(*l.into, part)
		}
	}
	return nil
}

// pairs is a flag of name=value, repeated or with commas.
type pairs struct{ into *map[string]string }

func (p pairs) String() string {
	if p.into == nil {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(*p.into)) {
		parts = append(parts, name+"="+(*p.into)[name])
	}
	return strings.Join(parts, ",")
}

func (p pairs) Set(text string) error {
	for _, part := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || name == "" {
			return fmt.Errorf("%q is not name=value", part)
		}
		if *p.into == nil {
			*p.into = map[string]string{}
		}
		(*p.into)[name] = value
	}
	return nil
}

// Bind adds the flags of the command to a flag set.
func (o *Options) Bind(f *flag.FlagSet) {
	f.StringVar(&o.Server, "server", o.Server, "address of the control plane, such as https://host:8080")
	f.StringVar(&o.TokenFile, "token-file", o.TokenFile, "file that holds client_id:client_secret")
	f.StringVar(&o.CAFile, "ca-file", o.CAFile, "PEM certificates to trust beside the system's")
	f.StringVar(&o.Name, "name", o.Name, "name of this worker (default: the host's)")
	f.Var(list{&o.Lanes}, "lanes", "lanes to serve (default all)")
	f.Var(list{&o.Kinds}, "kinds", "kinds to serve (default all)")
	f.Var(list{&o.TaskTypes}, "task-types", "task types to serve, exact or ending in * (default all)")
	f.StringVar(&o.Pool, "pool", o.Pool, "pool to count in (default gpu with cards, else cpu)")
	f.IntVar(&o.Slots, "slots", o.Slots, "tasks at once (default: the number of CPUs)")
	f.Float64Var(&o.CPU, "cpu", o.CPU, "CPUs to offer (default: the machine's)")
	f.Int64Var(&o.MemoryMB, "memory-mb", o.MemoryMB, "memory to offer (default: the machine's)")
	f.Int64Var(&o.DiskMB, "disk-mb", o.DiskMB, "disk to offer (default: what is free in the data folder)")
	f.IntVar(&o.GPU, "gpu", o.GPU, "number of equal GPUs to offer")
	f.Int64Var(&o.VRAMMB, "vram-mb", o.VRAMMB, "VRAM of all those GPUs together")
	f.Var(list{&o.Models}, "models", "models loaded on this worker")
	f.Var(list{&o.Permissions}, "permissions", "permissions this worker may use")
	f.Var(pairs{&o.Labels}, "labels", "labels as name=value")
	f.IntVar(&o.LeaseSeconds, "lease-seconds", o.LeaseSeconds, "length of a lease, 2 to 300 (default 30)")
	f.StringVar(&o.Data, "data", o.Data, "folder for artefacts and this worker's instance id")
	f.Var(list{&o.Documents}, "documents", "folders that document tasks may read")
	f.Var(list{&o.Commands}, "allow-command", "programs that command tasks may run (default none)")
	f.Var(list{&o.EgressAllow}, "egress-allow", "internal address blocks (CIDR) that tasks may connect to")
	f.StringVar(&o.EmbeddingURL, "embedding-url", o.EmbeddingURL, "OpenAI-compatible endpoint for text.embed, up to /v1 (default: built in)")
	f.StringVar(&o.EmbeddingModel, "embedding-model", o.EmbeddingModel, "model to ask that endpoint for")
	f.StringVar(&o.EmbeddingKeyFile, "embedding-key-file", o.EmbeddingKeyFile, "file that holds that endpoint's key")
}

// Args writes the options as the flags Bind reads, leaving defaults out.
func (o Options) Args() []string {
	empty := flag.NewFlagSet("", flag.ContinueOnError)
	(&Options{}).Bind(empty)
	full := flag.NewFlagSet("", flag.ContinueOnError)
	o.Bind(full)
	var args []string
	full.VisitAll(func(f *flag.Flag) {
		if value := f.Value.String(); value != empty.Lookup(f.Name).Value.String() {
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	return args
}

// credentials reads the token file.
func credentials(path string) (id, secret string, err error) {
	if path == "" {
		return "", "", fmt.Errorf("--token-file is needed: a file that holds client_id:client_secret")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("token file: %w", err)
	}
	id, secret, ok := strings.Cut(strings.TrimSpace(string(raw)), ":")
	if !ok || id == "" || secret == "" {
		return "", "", fmt.Errorf("token file %s does not hold client_id:client_secret", path)
	}
	return id, secret, nil
}

func (o Options) worker(instance string) (workers.Options, error) {
	id, secret, err := credentials(o.TokenFile)
	if err != nil {
		return workers.Options{}, err
	}
	cpus := detectCPU()
	resources := protocol.Resources{
		CPU: cmp.Or(o.CPU, float64(cpus)), MemoryMB: cmp.Or(o.MemoryMB, detectMemoryMB()),
		DiskMB: cmp.Or(o.DiskMB, detectDiskMB(cmp.Or(o.Data, "."))), GPU: o.GPU, VRAMMB: o.VRAMMB,
	}
	if o.GPU > 0 && o.VRAMMB <= 0 {
		return workers.Options{}, fmt.Errorf("--gpu %s needs --vram-mb", strconv.Itoa(o.GPU))
	}
	return workers.Options{
		Server: o.Server, ClientID: id, ClientSecret: secret, CAFile: o.CAFile,
		Name: o.Name, InstanceID: instance, Version: o.Version,
		Lanes: o.Lanes, Kinds: o.Kinds, Pool: o.Pool, Resources: resources, Slots: cmp.Or(o.Slots, cpus),
		Models: o.Models, Permissions: o.Permissions, Labels: o.Labels, LeaseSeconds: o.LeaseSeconds,
		Utilization: newLoad().utilization, Logger: o.Logger,
	}, nil
}

func (o Options) station() (run.Options, error) {
	station := run.Options{
		Data: o.Data, Documents: o.Documents, Commands: o.Commands, EgressAllow: o.EgressAllow,
		Embedding: run.Endpoint{URL: o.EmbeddingURL, Model: o.EmbeddingModel},
	}
	if o.EmbeddingURL != "" && o.EmbeddingModel == "" {
		return station, fmt.Errorf("--embedding-url needs --embedding-model")
	}
	if o.EmbeddingKeyFile != "" {
		raw, err := os.ReadFile(o.EmbeddingKeyFile)
		if err != nil {
			return station, fmt.Errorf("embedding key file: %w", err)
		}
		station.Embedding.Key = strings.TrimSpace(string(raw))
	}
	return station, nil
}
