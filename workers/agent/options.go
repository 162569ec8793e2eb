package agent

import (
	"cmp"
	"errors"
	"net/netip"
	"os"
	"strings"

	"nightshift/workers"
	"nightshift/workers/run"
)

// Options is a worker of the SDK and what its tasks may use on this machine.
type Options struct {
	// Worker needs Server, ClientID and ClientSecret. Left empty, Name is the
	// host's, Slots the number of CPUs, CPU, memory and disk the machine's;
	// TaskTypes names types of package run, none means all of them.
	Worker workers.Options

	Data        string   // folder for artefacts and this worker's instance id
	Documents   []string // folders that document tasks may read
	Commands    []string // programs that command tasks may run
	EgressAllow []netip.Prefix
	Embedding   run.Endpoint // where text.embed asks; none = the built-in vectoriser
}

func (o Options) withDefaults() (Options, error) {
	w := &o.Worker
	if w.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, err
		}
		w.Name = strings.ToLower(host)
	}
	if o.Embedding.URL != "" && o.Embedding.Model == "" {
		return o, errors.New("an embedding endpoint needs the name of its model")
	}
	if w.Slots == 0 && w.SlotsByKind == nil {
		w.Slots = detectCPU()
	}
	w.Resources.CPU = cmp.Or(w.Resources.CPU, float64(detectCPU()))
	w.Resources.MemoryMB = cmp.Or(w.Resources.MemoryMB, detectMemoryMB())
	w.Resources.DiskMB = cmp.Or(w.Resources.DiskMB, detectDiskMB(cmp.Or(o.Data, ".")))
	if w.Utilization == nil {
		w.Utilization = newLoad().utilization
	}
	return o, nil
}

func (o Options) station() run.Options {
	return run.Options{
		Data: o.Data, Documents: o.Documents, Commands: o.Commands, EgressAllow: o.EgressAllow, Embedding: o.Embedding,
	}
}
