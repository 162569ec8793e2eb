package workers

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"nightshift/workers/client"
	"nightshift/workers/protocol"
)

// Options describes a worker. Server, ClientID, ClientSecret and Name are
// needed; everything else has a default.
type Options struct {
	Server       string
	ClientID     string
	ClientSecret string
	CAFile       string

	Name       string // as people know it
	InstanceID string // one per living process; default random
	Version    string // default: the program's build version

	TaskTypes   []string // default: what Handle was called with
	Lanes       []string // default all
	Kinds       []string // default all
	Pool        string   // default gpu with cards, else cpu
	Resources   protocol.Resources
	Slots       int            // default 1
	SlotsByKind map[string]int // instead of Slots
	Models      []string       // those it has loaded; default none
	Permissions []string       // those it may act under; default none
	Labels      map[string]string

	LeaseSeconds int           // 2–300, default 30
	ClaimWait    time.Duration // how long a claim may wait for work, default and at most 30 s
	DrainTimeout time.Duration // how long running tasks may finish at the end, default 20 s

	// Utilization, when set, is asked at each heartbeat.
	Utilization func() *protocol.Utilization
	// KeepSignals leaves SIGINT and SIGTERM to the program; by default Run
	// drains on them.
	KeepSignals bool
	Logger      *slog.Logger // default slog.Default()
}

func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		return o, fmt.Errorf("a worker needs a name")
	}
	if o.InstanceID == "" {
		o.InstanceID = o.Name + "-" + randomWord()
	}
	if o.Version == "" {
		o.Version = buildVersion()
	}
	if o.SlotsByKind != nil && o.Slots != 0 {
		return o, fmt.Errorf("slots are one number or a number a kind, not both")
	}
	if o.SlotsByKind == nil && o.Slots == 0 {
		o.Slots = 1
	}
	if o.slots().Total() < 1 {
		return o, fmt.Errorf("a worker needs at least one slot")
	}
	if o.LeaseSeconds != 0 && (o.LeaseSeconds < protocol.MinLeaseSeconds || o.LeaseSeconds > protocol.MaxLeaseSeconds) {
		return o, fmt.Errorf("lease seconds %d: must be %d to %d",
			o.LeaseSeconds, protocol.MinLeaseSeconds, protocol.MaxLeaseSeconds)
	}
	if o.ClaimWait <= 0 || o.ClaimWait > protocol.MaxWaitSeconds*time.Second {
		o.ClaimWait = protocol.MaxWaitSeconds * time.Second
	}
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = 20 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = o.Logger.With("worker", o.Name)
	return o, nil
}

func (o Options) slots() *protocol.Slots {
	return &protocol.Slots{All: o.Slots, ByKind: o.SlotsByKind}
}

func (o Options) client() (*client.Client, error) {
	return client.New(client.Options{
		Server: o.Server, ClientID: o.ClientID, ClientSecret: o.ClientSecret, CAFile: o.CAFile,
		UserAgent: "nightshift-worker/" + o.Version,
	})
}

// registration is what this worker says about itself, beside its leases.
func (o Options) registration(handled []string) protocol.RegisterRequest {
	types := o.TaskTypes
	if len(types) == 0 {
		types = handled
	}
	resources := o.Resources
	return protocol.RegisterRequest{
		Name: o.Name, InstanceID: o.InstanceID, Version: o.Version,
		TaskTypes: types, Lanes: o.Lanes, Kinds: o.Kinds, Pool: o.Pool,
		Resources: &resources, Slots: o.slots(), Models: orNone(o.Models), Permissions: orNone(o.Permissions), Labels: o.Labels,
		LeaseSeconds: o.LeaseSeconds,
	}
}

// orNone is a list that is said even when it is empty: one left out would mean all.
func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision := ""
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			revision = s.Value[:12]
		}
	}
	switch {
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	case revision != "":
		return revision
	default:
		return "devel"
	}
}

// randomWord keeps two processes of one name apart.
func randomWord() string {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return fmt.Sprintf("%d", os.Getpid())
	}
	return hex.EncodeToString(b[:])
}
