package templates

import "time"

// LaneTile is a lane at this moment.
type LaneTile struct {
	Name          string
	Kind          string
	State         string // open, paused, draining, held, closed
	Reason        string
	Depth         int
	Scheduled     int // waiting for a time
	OldestSeconds float64
	Running       int
	Limit         int // 0 unlimited
	InPerSecond   float64
	OutPerSecond  float64
	EmptySeconds  *float64 // nil: it does not empty at this pace
	Depths        []int    // the last minutes, oldest first
}

// NowView is the first page.
type NowView struct {
	Lanes     []LaneTile
	States    []StateCount
	Dead      []DeadGroup
	Workers   FleetSummary
	Workflows []WorkflowRow
	Recent    []Happening
	Next      []Upcoming
	Scheduled bool       // there are schedules
	Shares    []ShareRow // for the platform: who got what of the pools
}

// FleetSummary is the fleet in a few figures.
type FleetSummary struct {
	Live, Silent, Draining int
	Pools                  []PoolUse
}

// PoolUse is what a pool's workers are doing.
type PoolUse struct {
	Name           string
	Workers        int
	Slots          Use
	VRAM           Use
	MedianTaskSecs float64
}

// Use is a part of a whole.
type Use struct{ Used, Total float64 }

// Happening is an event in words.
type Happening struct {
	At      time.Time
	Event   string // task.succeeded
	Subject Ref
	Path    string // collection of the subject: /tasks
	Text    string
}

// ShareRow compares what a tenant got with what its weight deserves.
type ShareRow struct {
	Tenant   string
	Weight   float64
	Got      float64
	Deserved float64
}

// Upcoming is a schedule with when it runs next.
type Upcoming struct {
	ID, Name, Words string
	At              time.Time
}
