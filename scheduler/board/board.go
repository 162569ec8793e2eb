package board

import (
	"cmp"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/fair"
)

// Limits bound the board.
type Limits struct {
	Heads       int // tasks a line keeps at rest
	MostHeads   int // that a busy line grows to
	MostEntries int // over all lines
	MostTimers  int
}

// DefaultLimits are those of production.
func DefaultLimits() Limits {
	return Limits{Heads: 4, MostHeads: 512, MostEntries: 200_000, MostTimers: 50_000}
}

// Entry is one task the board holds: because it stands in a window, waits for a moment, or runs.
type Entry struct {
	Row   models.Task
	Lease *Lease

	keep    *keep // keys are kept for it
	line    *Line
	timer   models.Instant // its place in the timers, 0: none
	index   int32          // in the timers' heap
	windows int8           // of its line that it stands in
	starts  bool           // it is about to get a lease: it stays held though it stands nowhere
}

// Starts keeps an entry whose task leaves its line to get a lease, until Grant.
func (e *Entry) Starts() { e.starts = true }

// Windowed says that the entry stands in its line's window.
func (e *Entry) Windowed() bool { return e.line != nil }

// Board is the picture. Its maps may be read freely; they are changed by its methods alone.
type Board struct {
	Limits  Limits
	Tenants map[int32]*models.Tenant
	Envs    map[int32]*models.Environment
	Kinds   [4]models.Kind
	Lanes   map[int32]*Lane
	Classes map[int32]*models.Class
	Workers map[models.ID]*Worker
	Leases  map[models.ID]*Lease // by token
	Pools   map[string]*Pool
	Counted Counted
	Now     models.Instant // of the batch that is decided: by it rates are read

	lanesByName map[laneName]int32
	lanesOf     map[int32][]*Lane // an environment's, by number
	classes     map[string]int32  // by digest
	instances   map[instance]*Worker
	held        map[models.ID]*Entry
	lines       map[models.LineID]*Line
	queues      [4]map[int32]*Queue
	order       [4][]*Queue
	offers      [4]offers
	makes       []*Make
	keys        map[KeyID]*Key
	touched     map[KeyID]bool
	parkedAt    map[queueID]*queue
	keeps       map[models.ID]*keep
	rateLimits  map[models.RateRef]*models.RateLimit
	openings    openings
	shut        shutFlows
	clocks      map[clockID]*fair.Clock
	kindClocks  map[string]*fair.Clock // by pool: of kinds, not of tenants
	timers      timerHeap
	horizon     models.Instant // every timer up to here is held
	entries     int            // in windows
	hungry      []*Line        // of which something was taken
	ready       [4]int64
	parked      int64
	present     map[int32]map[int32]int64 // by environment and class: lines, and tasks behind gates
	uses        map[int32]*Use            // by tenant
	grants      map[int32]*models.Grants
	types       map[typeID]*TypeUse
	typesIn     map[int32]int   // an environment's
	spenders    map[int32]bool  // whose tokens changed since Levels was asked
	rates       Agenda          // when dry tenants' tokens open
	timed       map[int32]*Lane // lanes with windows
	nextHours   models.Instant  // when one of them may open or close
	money       accounts
	kindRules   []*Rule // who yields to whom
	laneRules   map[int32][]*Rule
	bound       int // holds that hold anything back
	models      modelRooms
}

// Counted counts what the board did to stay within its limits and to park tasks.
type Counted struct {
	Refills, Shrinks, Parkings, Unparkings, Rebuilds int64
}

type laneName struct {
	env  int32
	name string
}

type instance struct {
	tenant int32
	name   string
}

type clockID struct {
	pool string
	kind models.KindName
}

// Lane is a lane with what the board counts of it.
type Lane struct {
	models.Lane
	Running int32
	Depth   int64 // ready, ungated
	Parked  int64
	In, Out Rate
	lines   []*Line // with ready tasks
	hours   hours
	rule    *Rule   // by which it yields, nil: only as its kind does
	needed  []*Rule // by which others yield to it
}

// New makes an empty board.
func New(limits Limits) *Board {
	b := &Board{
		Limits: limits, Tenants: map[int32]*models.Tenant{}, Envs: map[int32]*models.Environment{}, Lanes: map[int32]*Lane{},
		Classes: map[int32]*models.Class{}, Workers: map[models.ID]*Worker{}, Leases: map[models.ID]*Lease{}, Pools: map[string]*Pool{},
		lanesByName: map[laneName]int32{}, lanesOf: map[int32][]*Lane{}, classes: map[string]int32{}, instances: map[instance]*Worker{}, held: map[models.ID]*Entry{},
		lines: map[models.LineID]*Line{}, present: map[int32]map[int32]int64{}, keys: map[KeyID]*Key{}, touched: map[KeyID]bool{}, parkedAt: map[queueID]*queue{},
		keeps: map[models.ID]*keep{}, rateLimits: map[models.RateRef]*models.RateLimit{},
		shut: shutFlows{map[models.ID]models.FlowGate{}, map[models.ID]int64{}}, clocks: map[clockID]*fair.Clock{}, kindClocks: map[string]*fair.Clock{},
		uses: map[int32]*Use{}, grants: map[int32]*models.Grants{}, types: map[typeID]*TypeUse{}, typesIn: map[int32]int{}, spenders: map[int32]bool{}, timed: map[int32]*Lane{}, nextHours: never, money: newAccounts(), laneRules: map[int32][]*Rule{},
		models: newModelRooms(),
	}
	for k := range b.queues {
		b.queues[k] = map[int32]*Queue{}
	}
	for _, k := range models.DefaultKinds() {
		b.Kinds[k.Name] = k
	}
	b.ruleKinds()
	return b
}

// PutTenant adds or replaces a tenant.
func (b *Board) PutTenant(t models.Tenant) {
	b.Tenants[t.Number] = &t
	b.regate(func(l *Line) bool { return l.Tenant == t.Number })
}

// PutEnv adds or replaces an environment.
func (b *Board) PutEnv(e models.Environment) {
	b.Envs[e.Env] = &e
	b.regate(func(l *Line) bool { return l.ID.Env == e.Env })
}

// PutLane adds or replaces a lane, keeping its counts.
func (b *Board) PutLane(l models.Lane) {
	if old := b.Lanes[l.Number]; old != nil {
		delete(b.lanesByName, laneName{old.Env, old.Name})
		old.Lane = l
	} else {
		lane := &Lane{Lane: l}
		b.Lanes[l.Number] = lane
		of := b.lanesOf[l.Env]
		at, _ := slices.BinarySearchFunc(of, l.Number, func(o *Lane, n int32) int { return cmp.Compare(o.Number, n) })
		b.lanesOf[l.Env] = slices.Insert(of, at, lane)
	}
	b.lanesByName[laneName{l.Env, l.Name}] = l.Number
	b.setHours(b.Lanes[l.Number])
	if len(b.laneRules[l.Env]) > 0 || b.elasticIn(l.Env) {
		b.reruleLanes(l.Env)
	}
	for _, line := range b.Lanes[l.Number].lines {
		b.offer(line)
	}
}

// DropLane forgets a lane.
func (b *Board) DropLane(number int32) {
	if l := b.Lanes[number]; l != nil {
		delete(b.lanesByName, laneName{l.Env, l.Name})
		delete(b.Lanes, number)
		delete(b.timed, number)
		b.lanesOf[l.Env] = slices.DeleteFunc(b.lanesOf[l.Env], func(o *Lane) bool { return o == l })
		if len(b.laneRules[l.Env]) > 0 {
			b.reruleLanes(l.Env)
		}
	}
}

// LaneNamed finds a lane of an environment.
func (b *Board) LaneNamed(env int32, name string) *Lane {
	if n, ok := b.lanesByName[laneName{env, name}]; ok {
		return b.Lanes[n]
	}
	return nil
}

// LinesOf lists a lane's lines with ready tasks, in no order that means anything.
func (b *Board) LinesOf(lane int32) []*Line {
	if l := b.Lanes[lane]; l != nil {
		return slices.Clone(l.lines)
	}
	return nil
}

// LanesOf lists an environment's lanes by number; the slice is the board's own.
func (b *Board) LanesOf(env int32) []*Lane { return b.lanesOf[env] }

// PutClass adds a class.
func (b *Board) PutClass(c models.Class) {
	b.Classes[c.Number] = &c
	b.classes[c.Digest()] = c.Number
}

// ClassNumber finds a class by its requirements; 0: it is new.
func (b *Board) ClassNumber(c models.Class) int32 { return b.classes[c.Digest()] }

// TenantOf is the tenant of an environment, 0 when there is none.
func (b *Board) TenantOf(env int32) int32 {
	if e := b.Envs[env]; e != nil {
		return e.Tenant
	}
	return 0
}

// Weight is the tenant's weight, 1 when it is unknown.
func (b *Board) Weight(tenant int32) float64 {
	if t := b.Tenants[tenant]; t != nil && t.Weight > 0 {
		return t.Weight
	}
	return 1
}

// Clock is the fair clock of a pool and kind.
func (b *Board) Clock(pool string, kind models.KindName) *fair.Clock {
	id := clockID{pool, kind}
	c := b.clocks[id]
	if c == nil {
		c = fair.NewClock()
		b.clocks[id] = c
	}
	return c
}

// Virtuals lists every virtual time for saving, in a fixed order.
func (b *Board) Virtuals() []models.Virtual {
	var out []models.Virtual
	for id, c := range b.clocks { // any order: sorted below
		out = append(out, c.Save(id.pool, id.kind)...)
	}
	slices.SortFunc(out, func(a, b models.Virtual) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Tenant, b.Tenant))
	})
	return out
}

// KeepClocks takes over the clocks of the board before: virtual times outlive a rebuild inside one process. What is on
// offer already is ordered by them from now on.
func (b *Board) KeepClocks(old *Board) {
	b.clocks, b.kindClocks = old.clocks, old.kindClocks
	for _, m := range b.makes {
		m.reclock(b)
	}
}

// Held is what the board knows of a task, or nil.
func (b *Board) Held(id models.ID) *Entry { return b.held[id] }

func (b *Board) hold(row *models.Task) *Entry {
	e := b.held[row.ID]
	if e == nil {
		e = &Entry{}
		b.held[row.ID] = e
	}
	e.Row = *row
	return e
}

func (b *Board) release(e *Entry) {
	if e.line == nil && e.timer == 0 && e.Lease == nil && e.keep == nil && !e.starts {
		delete(b.held, e.Row.ID)
	}
}

// Entries is how many tasks stand in windows, Lines how many lines have any ready task.
func (b *Board) Entries() int { return b.entries }

// Lines is the number of lines with ready tasks.
func (b *Board) Lines() int { return len(b.lines) }

// ReadyOf counts the ready, ungated tasks of a kind.
func (b *Board) ReadyOf(kind models.KindName) int64 { return b.ready[kind] }

// ParkedTasks counts the parked ones.
func (b *Board) ParkedTasks() int64 { return b.parked }

// Rate counts what passed in the last ten whole seconds.
type Rate struct {
	buckets [10]int32
	second  int64
}

func (r *Rate) roll(now models.Instant) int64 {
	s := int64(now) / 1_000_000
	for ; r.second < s && r.second > s-11; r.second++ {
		r.buckets[(r.second+1)%10] = 0
	}
	if r.second <= s-11 {
		r.buckets = [10]int32{}
	}
	r.second = max(r.second, s)
	return r.second
}

// Add counts one.
func (r *Rate) Add(now models.Instant) { r.buckets[r.roll(now)%10]++ }

// PerSecond is the mean over ten seconds.
func (r *Rate) PerSecond(now models.Instant) float64 {
	r.roll(now)
	sum := int32(0)
	for _, n := range r.buckets {
		sum += n
	}
	return float64(sum) / 10
}
