package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// Headers that carry a worker's identity beside its bearer token.
const (
	HeaderSession = "Nightshift-Session"
	HeaderLease   = "Nightshift-Lease"
)

// Limits both sides hold to.
const (
	MaxClaimTasks       = 500
	MaxWaitSeconds      = 30
	MinLeaseSeconds     = 2
	MaxLeaseSeconds     = 300
	DefaultLeaseSeconds = 30
	MaxResultBytes      = 1_000_000
	MaxCheckpointBytes  = 64_000
	MaxProgressBytes    = 64_000
)

// RegisterRequest is the body of POST /v1/workers.
type RegisterRequest struct {
	Name       string `json:"name"`
	InstanceID string `json:"instance_id"`
	Version    string `json:"version,omitempty"`

	// Patterns are exact or end in "*". An omitted list means all.
	TaskTypes []string `json:"task_types,omitempty"`
	Lanes     []string `json:"lanes,omitempty"`
	Kinds     []string `json:"kinds,omitempty"`
	Pool      string   `json:"pool,omitempty"`

	Resources *Resources `json:"resources,omitempty"`
	Slots     *Slots     `json:"slots,omitempty"`
	// Nil is left out and means all, an empty list none.
	Models      []string          `json:"models,omitzero"`
	Permissions []string          `json:"permissions,omitzero"`
	Labels      map[string]string `json:"labels,omitempty"`

	// Leases names the tokens of an earlier session of this instance that
	// its process still works on; the others go back at once.
	Leases       []string `json:"leases,omitempty"`
	LeaseSeconds int      `json:"lease_seconds,omitempty"`
}

// Resources is what a worker has to give. GPU and VRAMMB are sugar for GPU
// equal cards that share VRAMMB; they are never sent together with GPUs.
type Resources struct {
	CPU      float64 `json:"cpu,omitempty"`
	MemoryMB int64   `json:"memory_mb,omitempty"`
	DiskMB   int64   `json:"disk_mb,omitempty"`
	GPUs     []GPU   `json:"gpus,omitempty"`
	GPU      int     `json:"gpu,omitempty"`
	VRAMMB   int64   `json:"vram_mb,omitempty"`
}

// GPU is one card.
type GPU struct {
	VRAMMB int64 `json:"vram_mb"`
}

// Cards answers the cards one by one, whichever way they were written.
func (r Resources) Cards() []GPU {
	if len(r.GPUs) > 0 || r.GPU <= 0 {
		return r.GPUs
	}
	cards := make([]GPU, r.GPU)
	for i := range cards {
		cards[i].VRAMMB = r.VRAMMB / int64(r.GPU)
	}
	return cards
}

// Slots is a worker's room: one number for all kinds, or a number a kind.
// On the wire it is 8 or {"io": 200, "compute": 2}.
type Slots struct {
	All    int
	ByKind map[string]int
}

// MarshalJSON writes the object form when there is a number a kind.
func (s Slots) MarshalJSON() ([]byte, error) {
	if s.ByKind != nil {
		return json.Marshal(s.ByKind)
	}
	return json.Marshal(s.All)
}

// UnmarshalJSON reads either form.
func (s *Slots) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] == '{' {
		s.All = 0
		return json.Unmarshal(b, &s.ByKind)
	}
	s.ByKind = nil
	if err := json.Unmarshal(b, &s.All); err != nil {
		return errors.New("slots is a whole number, or an object with a number a kind")
	}
	return nil
}

// Total is the room over all kinds.
func (s Slots) Total() int {
	if s.ByKind == nil {
		return s.All
	}
	sum := 0
	for _, n := range s.ByKind {
		sum += n
	}
	return sum
}

// RegisterAnswer is what a new session gets, status 201.
type RegisterAnswer struct {
	WorkerID         string    `json:"worker_id"`
	Session          string    `json:"session"`
	HeartbeatSeconds float64   `json:"heartbeat_seconds"`
	LeaseSeconds     int       `json:"lease_seconds"`
	ServerTime       time.Time `json:"server_time"`
}

// TokenRequest is the JSON form of POST /v1/auth/token.
type TokenRequest struct {
	GrantType    string `json:"grant_type"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Scope        string `json:"scope,omitempty"`
}

// TokenAnswer is an access token; ExpiresIn is in seconds.
type TokenAnswer struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"`
	Scope       string `json:"scope"`
}

// At brings a moment into the wire's form: UTC, microseconds at most.
func At(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
