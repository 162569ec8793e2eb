package templates

import "time"

// SettingsView is the keys of a tenant, and the form of a new one.
type SettingsView struct {
	Keys    []KeyRow
	Next    string
	Earlier bool
	Form    KeyForm
	Made    *MadeKey // shown once, right after it was made
}

// KeyRow is a client of the API.
type KeyRow struct {
	ID            string
	Name          string
	Scopes        []string
	Environments  []string // empty: all
	Lanes         []string
	CreatedBy     string
	CreatedAt     time.Time
	ExpiresAt     time.Time
	LastUsedAt    time.Time
	PreviousUntil time.Time // so long the secret before the last rotation is good
}

// KeyForm is what was typed, with what is wrong with it.
type KeyForm struct {
	Values       map[string]string
	Scopes       []Tick
	Environments []Tick
	Wrong        map[string]string
	Once         string // so that sending it twice makes one key
}

// Tick is a box to tick.
type Tick struct {
	Name, About string
	On          bool
}

// MadeKey is a key with its secret.
type MadeKey struct {
	Name, ID, Secret string
	Rotated          bool
	PreviousUntil    time.Time
}

// EnvironmentsView is the worlds of a tenant.
type EnvironmentsView struct {
	Rows     []EnvironmentRow
	Form     EnvironmentForm
	Freeze   FreezeForm
	Timezone string // in which freezes are typed
}

// FreezeForm is a freeze as it was typed, with what is wrong with it.
type FreezeForm struct {
	Values map[string]string
	Wrong  map[string]string
}

// EnvironmentRow is one of them.
type EnvironmentRow struct {
	Name, Kind string
	Paused     bool
	Reason     string
	CreatedAt  time.Time
	Version    string
	Current    bool // the viewer looks at it
	Freezes    []Freeze
}

// EnvironmentForm is what was typed, with what is wrong with it.
type EnvironmentForm struct {
	Name, Kind string
	Wrong      map[string]string
}

// ActivityView is the audit.
type ActivityView struct {
	Filter  map[string]string // action, object, actor
	Rows    []ActivityRow
	Next    string
	Earlier bool
}

// ActivityRow is something that somebody changed.
type ActivityRow struct {
	ID      string
	At      time.Time
	Who     string
	WhoID   string
	Action  string
	Object  string
	Path    string // of the object's page; empty: it has none
	Reason  string
	IP      string
	Request string
	Changes []Change
}
