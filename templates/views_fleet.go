package templates

import "time"

// WorkersView is the fleet.
type WorkersView struct {
	Workers []WorkerCard
	Server  string // base address for the registering command
	Gone    int    // workers no longer seen, not listed
}

// WorkerCard is one worker with what it can do and does.
type WorkerCard struct {
	ID           string
	Name         string
	State        string // live, silent, draining, lost
	Pool         string
	Version      string
	Tenant       string // "" serves every tenant
	Slots        []NamedUse
	CPU          Use
	MemoryMB     Use
	DiskMB       Use
	GPUs         []Use // VRAM in MB, one a card
	Models       []string
	Types        []string
	Lanes        []string
	Permissions  []string
	Labels       []Pair
	Running      []Ref
	Leases       int
	LastSeen     time.Time
	LeaseSeconds int
	RegisteredAt time.Time
	Failures     int // last hour

	Drain  bool
	Remove bool
}

// NamedUse is a use with a name, as slots of a kind.
type NamedUse struct {
	Name string
	Use
}

// DeadLettersView is the list of groups.
type DeadLettersView struct {
	Groups []DeadGroup
	Total  int
}

// DeadGroup is the dead letters of one fingerprint.
type DeadGroup struct {
	Fingerprint string
	Class       string
	Message     string
	Count       int
	Types       []string
	Tenants     []string
	FirstSeen   time.Time
	LastSeen    time.Time
	Hourly      []int // the last hours, oldest first
	Sample      DeadSample
}

// DeadSample is one dead letter of a group as evidence.
type DeadSample struct {
	Task     string
	Type     string
	Worker   Ref
	Version  string
	Attempts int
	Error    Failure
	Payload  string
}

// LanesView is the list of lanes.
type LanesView struct{ Lanes []LaneRow }

// LaneRow is a lane with its settings.
type LaneRow struct {
	LaneTile
	Weight      float64
	Patterns    []string
	HighWater   int
	Elastic     bool
	Description string
	Pause       bool
	Resume      bool
	Drain       bool
	Holds       []LaneHold
}

// LaneView is one lane: what its next tasks wait for, and its settings as a form.
type LaneView struct {
	LaneRow
	Version string // that the form was drawn from
	Heads   []LaneHead
	Unknown bool // nobody decides now, so that nobody can say what waits
	Facts   []Pair
	Values  map[string]string
	Wrong   map[string]string
}

// LaneHead is the first task of those with the same requirements.
type LaneHead struct {
	ID    string
	Type  string
	Ready int
	Why   []Reason
}

// LaneHold says how a lane is held back in a pool, because what it yields to needs the slots.
type LaneHold struct {
	Pool    string
	Room    int // tasks that may run at once
	Running int
	Slots   float64
	Needed  float64
	Until   time.Time // at the latest; zero: as soon as there is room
	Says    string
}

// TenantsView is the list of tenants.
type TenantsView struct {
	Tenants []TenantRow
	Counted bool // the rows say how many tasks stand where
	Form    TenantForm
}

// TenantForm is what was typed, with what is wrong with it.
type TenantForm struct {
	Name, Slug, Weight, Timezone string
	Wrong                        map[string]string
}

// TenantRow is a tenant with its share.
type TenantRow struct {
	ID        string
	Slug      string
	Name      string
	Weight    float64
	Timezone  string
	Suspended bool
	Ready     int
	Running   int
	Dead      int
	Succeeded int // in the last 24 hours
	Got       float64
	Deserved  float64
	CreatedAt time.Time
}

// SystemView is what runs this.
type SystemView struct {
	Brain     string // id of the replica that decides, "" none
	Address   string
	Epoch     int
	Batch     int
	RenewedAt time.Time
	Replicas  []ReplicaRow
	Board     []Pair
	Database  []Pair
	Sweeps    []SweepRow
	Build     []Pair
}

// ReplicaRow is one process that serves.
type ReplicaRow struct {
	ID       string
	Address  string
	PID      int
	Version  string
	Brain    bool
	LastSeen time.Time
}

// SweepRow is a check that repeats.
type SweepRow struct {
	Name    string
	Every   float64
	LastRun time.Time
	Found   int
}

// LoginView is the way in.
type LoginView struct {
	Email string
	Wrong string
	Next  string
	CSRF  string
}

// StartView is the first minute of a newcomer.
type StartView struct {
	Server string
	Keys   bool // the viewer may make keys
}

// TroubleView is a page that could not be shown.
type TroubleView struct {
	Status  int
	Heading string
	Text    string
	Request string // id to give to whoever runs this
}
