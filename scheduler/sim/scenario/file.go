package scenario

import (
	"time"

	"gopkg.in/yaml.v3"
)

// file is what stands in a scenario file. Every section but tenants, workers and arrivals may be left out.
type file struct {
	Seed     uint64        `yaml:"seed"`
	Horizon  time.Duration `yaml:"horizon"`
	Pace     time.Duration `yaml:"pace"`
	Timeline int           `yaml:"timeline"`
	Tenants  []tenant      `yaml:"tenants"`
	Kinds    []kind        `yaml:"kinds"`
	Lanes    []lane        `yaml:"lanes"`
	Workers  []worker      `yaml:"workers"`
	Arrivals []arrival     `yaml:"arrivals"`
	Faults   faults        `yaml:"faults"`
}

type tenant struct {
	Name   string   `yaml:"name"`
	Weight *float64 `yaml:"weight"`

	Quotas     quotas      `yaml:"quotas"`
	RateLimits []rateLimit `yaml:"rate_limits"`
}

// quotas are what limits the start of a tenant's tasks; left out: nothing does.
type quotas struct {
	MaxConcurrent   *int64 `yaml:"max_concurrent"`
	MaxGPUs         *int64 `yaml:"max_gpus"`
	MaxVRAMMB       *int64 `yaml:"max_vram_mb"`
	TokensPerMinute *int64 `yaml:"tokens_per_minute"`
}

type kind struct {
	Name       string   `yaml:"name"`
	Precedence *int32   `yaml:"precedence"`
	Weight     *float64 `yaml:"weight"`
	MinShare   *float64 `yaml:"min_share"`
	Elastic    *bool    `yaml:"elastic"`
	YieldsTo   []string `yaml:"yields_to"`
	MaxHold    int32    `yaml:"max_hold_seconds"`
}

type lane struct {
	Tenant        string   `yaml:"tenant"`
	Name          string   `yaml:"name"`
	Kind          string   `yaml:"kind"`
	MaxConcurrent int32    `yaml:"max_concurrent"`
	Elastic       bool     `yaml:"elastic"`
	YieldsTo      []string `yaml:"yields_to"`
	MaxHold       int32    `yaml:"max_hold_seconds"`
	TaskTypes     []string `yaml:"task_types"`
}

type worker struct {
	Name        string            `yaml:"name"`
	Count       int               `yaml:"count"`
	Pool        string            `yaml:"pool"`
	Slots       int32             `yaml:"slots"`
	SlotsByKind map[string]int32  `yaml:"slots_by_kind"`
	CPU         float64           `yaml:"cpu"`
	MemoryMB    int64             `yaml:"memory_mb"`
	DiskMB      int64             `yaml:"disk_mb"`
	GPUs        []int64           `yaml:"gpus"` // MB of VRAM each
	Models      []string          `yaml:"models"`
	AnyModel    bool              `yaml:"any_model"`
	Labels      map[string]string `yaml:"labels"`
	Permissions []string          `yaml:"permissions"`
	AnyPermit   bool              `yaml:"any_permission"`
	TaskTypes   []string          `yaml:"task_types"`
	Lanes       []string          `yaml:"lanes"`
	Kinds       []string          `yaml:"kinds"`
	Lease       time.Duration     `yaml:"lease"`
	From        time.Duration     `yaml:"from"`
	To          time.Duration     `yaml:"to"`
}

type arrival struct {
	Tenant      string        `yaml:"tenant"`
	Name        string        `yaml:"name"`
	Type        string        `yaml:"type"`
	Lane        string        `yaml:"lane"`
	Needs       needs         `yaml:"needs"`
	At          time.Duration `yaml:"at"`
	Poisson     *flow         `yaml:"poisson"`
	Burst       *flow         `yaml:"burst"`
	Backlog     int           `yaml:"backlog"`
	Closed      *closed       `yaml:"closed"`
	Recorded    [][2]float64  `yaml:"recorded"` // seconds after at, and of run time, of each task
	Run         run           `yaml:"run"`
	Estimate    estimate      `yaml:"estimate"`
	Deadline    deadline      `yaml:"deadline"`
	Priority    priority      `yaml:"priority"`
	Key         *key          `yaml:"key"`
	Concurrency []keyOf       `yaml:"concurrency"`
	RateKeys    []string      `yaml:"rate_keys"`
	Ordered     bool          `yaml:"ordered"`
	MaxAttempts int32         `yaml:"max_attempts"`
	FailPercent int           `yaml:"fail_percent"`
	Timeout     time.Duration `yaml:"timeout"`
	Chain       int           `yaml:"chain"`
	Graph       []node        `yaml:"graph"`
}

type needs struct {
	CPU         float64           `yaml:"cpu"`
	MemoryMB    int64             `yaml:"memory_mb"`
	DiskMB      int64             `yaml:"disk_mb"`
	GPU         int32             `yaml:"gpu"`
	VRAMMB      int64             `yaml:"vram_mb"`
	Tokens      int64             `yaml:"tokens"`
	Model       string            `yaml:"model"`
	Labels      map[string]string `yaml:"labels"`
	Permissions []string          `yaml:"permissions"`
}

// flow is work that comes again: count batches, or, without a count, until the horizon.
type flow struct {
	Every time.Duration `yaml:"every"`
	Count int           `yaml:"count"`
	Batch int           `yaml:"batch"`
}

type closed struct {
	Clients int           `yaml:"clients"`
	Think   time.Duration `yaml:"think"`
	Count   int           `yaml:"count"`
	Batch   int           `yaml:"batch"`
}

type key struct {
	Name  string `yaml:"name"`
	Limit int32  `yaml:"limit"`
	Count int    `yaml:"count"`
}

type node struct {
	Name  string        `yaml:"name"`
	Run   time.Duration `yaml:"run"`
	After []string      `yaml:"after"`
}

type faults struct {
	CrashEvery             time.Duration `yaml:"crash_every"`
	DownFor                time.Duration `yaml:"down_for"`
	LostAnswersPercent     int           `yaml:"lost_answers_percent"`
	BrainEvery             time.Duration `yaml:"brain_every"`
	FailedCommitsPermille  int           `yaml:"failed_commits_permille"`
	UnclearCommitsPermille int           `yaml:"unclear_commits_permille"`
}

// run is a run time: one value, or a mean with how it is spread.
type run struct {
	Mean   time.Duration `yaml:"mean"`
	Shape  string        `yaml:"shape"`
	Spread float64       `yaml:"spread"`
	Sigma  float64       `yaml:"sigma"`
}

func (r *run) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&r.Mean)
	}
	type plain run
	return strictly(n, (*plain)(r), "mean", "shape", "spread", "sigma")
}

// estimate is what callers tell: none, mean, exact, or exact but wrong by a lognormal factor of this sigma.
type estimate struct {
	Word  string  `yaml:"-"`
	Sigma float64 `yaml:"sigma"`
}

func (e *estimate) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&e.Word)
	}
	type plain estimate
	return strictly(n, (*plain)(e), "sigma")
}

// deadline is one span after the arrival, or with slack × the task's own run time added.
type deadline struct {
	After time.Duration `yaml:"after"`
	Slack float64       `yaml:"slack"`
}

func (d *deadline) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&d.After)
	}
	type plain deadline
	return strictly(n, (*plain)(d), "after", "slack")
}

// priority is one value, or the lowest and the highest.
type priority struct {
	Given    bool
	From, To int16
}

func (p *priority) UnmarshalYAML(n *yaml.Node) error {
	p.Given = true
	if n.Kind == yaml.ScalarNode {
		err := n.Decode(&p.From)
		p.To = p.From
		return err
	}
	var both []int16
	if err := n.Decode(&both); err != nil {
		return err
	}
	if len(both) != 2 {
		return at(n, "a priority is one number, or the lowest and the highest")
	}
	p.From, p.To = both[0], both[1]
	return nil
}
