package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/dag"
	"nightshift/scheduler/estimate"
	"nightshift/scheduler/route"
)

// Config is what an engine is made with. Zero fields take the defaults of production.
type Config struct {
	Seed        [32]byte // of ids, lease tokens and jitter; production draws it from the system
	Heads       int      // tasks a line keeps at rest (4)
	MostEntries int      // on the board (200,000)
	MostTimers  int      // near timers (50,000)
	Slice       int      // rows a cursor moves in a batch (1,000)
	Address     string   // of this replica, for events
	// Peak is the most slots of a pool that kinds are foreseen to need in a span of time; nil: the engine's own forecast says.
	Peak func(pool string, kinds []models.KindName, from, until models.Instant) float64
}

// Engine decides. It is not safe for concurrent use: whoever holds it calls it from one goroutine.
type Engine struct {
	cfg    Config
	board  *board.Board
	rng    *rand.Rand
	book   *estimate.Book
	taught *route.Book // of models
	now    models.Instant

	freed      freed         // pending with nothing left to wait for, decided by the next batch
	unparks    []models.Task // parked tasks whose key has room, decided by the next batch
	modelless  []models.Task // read tasks that wait for a model and are looked at once more
	rechoose   []models.Task // whose models are chosen anew by this batch
	cursors    []models.Cursor
	unfired    []models.End // tasks that ended, of which edges are left to move
	flows      map[models.ID]*flow
	want       map[models.TaskRef]bool // workflows whose counts must be read
	asked      []models.TaskRef        // of want, in the facts of this batch
	again      []*flow                 // workflows to judge once more, when it is known what the last batch freed
	claims     []*parkedClaim
	starts     map[string]*starts // by pool
	usual      int                // events of a batch
	slab       slab
	misfits    []*board.Line // that had no room in this pick
	rows       map[models.ID]*change
	order      []*change
	losses     []loss
	ends       map[models.TaskRef]models.Instant // when workflows end by their run time
	told       map[models.ID]bool                // workers to which a parked claim has something to say
	conditions map[string]*dag.Condition
	numbers    numbers
	plans      plans
	outlook    outlook
	counters   *counters
	awaited    map[int32]map[int32]int64  // tasks that are not ready yet, by environment and class
	reserved   map[models.ID]*reservation // by worker
	lead       [4]models.Instant          // how far ahead deadlines are looked at, by kind
	seals      map[int32]models.Instant   // environments that take nothing for now, because somebody looks whether they are empty
	dirty      bool                       // something may fit a parked claim
	stirred    bool                       // so it is since the last batch
	saved      models.Instant
	swept      models.Instant
	lowered    models.Instant     // when it was last looked at what waits for budgets that downgrade
	announced  bool               // that this brain decides
	silent     map[models.ID]bool // workers told to be silent
	since      models.Instant     // when it took over: signs of life from just before were not saved
	holding
	ease ease
	b    *batch
}

// numbers are the largest small identities given so far.
type numbers struct{ tenant, env, lane, class int32 }

// Reply answers a command. Those of parked claims come with a later batch than the command's own.
type Reply struct {
	To     *Command
	Answer *Answer
	Err    error
}

// New makes an engine with an empty board; Rebuild gives it one.
func New(cfg Config) *Engine {
	limits := board.DefaultLimits()
	if cfg.Heads > 0 {
		limits.Heads = cfg.Heads
	}
	if cfg.MostEntries > 0 {
		limits.MostEntries = cfg.MostEntries
	}
	if cfg.MostTimers > 0 {
		limits.MostTimers = cfg.MostTimers
	}
	if cfg.Slice == 0 {
		cfg.Slice = 1000
	}
	return &Engine{
		cfg: cfg, board: board.New(limits), rng: rand.New(rand.NewChaCha8(cfg.Seed)), book: estimate.NewBook(), taught: route.NewBook(),
		ends: map[models.TaskRef]models.Instant{}, told: map[models.ID]bool{}, silent: map[models.ID]bool{}, rows: map[models.ID]*change{}, flows: map[models.ID]*flow{}, want: map[models.TaskRef]bool{}, starts: map[string]*starts{}, reserved: map[models.ID]*reservation{}, counters: newCounters(), plans: newPlans(), outlook: newOutlook(),
	}
}

// Board is the picture, to read.
func (e *Engine) Board() *board.Board { return e.board }

// Limits are the bounds of the board: heads a line and entries in all, as Store.Load wants them.
func (e *Engine) Limits() (heads, most int) { return e.board.Limits.Heads, e.board.Limits.MostEntries }

// Rebuild throws the board away and makes it anew. Within one process the leases keep their renewals and the tenants
// their virtual times; leases the engine did not know get their worker's lease time anew. Parked claims are forgotten:
// a batch that failed may have answered them without anybody hearing of it, so whoever holds the engine asks them again.
func (e *Engine) Rebuild(s *models.Snapshot) {
	old, before := e.board, outageOf(s, e.now)
	e.board = board.Build(old.Limits, s)
	e.board.Counted = old.Counted
	e.board.Counted.Rebuilds++
	e.now = max(e.now, s.Now)
	if e.since == 0 {
		e.since = e.now
	}
	if len(old.Tenants) > 0 {
		e.board.KeepClocks(old)
		e.board.KeepTokens(old, e.now)
		e.board.KeepModels(old, e.now)
	}
	e.restoreHolds(s.Held, old)
	for n, c := range e.board.Classes { // any order: each on its own
		e.book.Knows(n, c.Type, c.Model)
	}
	e.book.Restore(s.Estimates)
	e.outlook.seen.Restore(s.Corrections)
	e.outlook.next, e.outlook.watch = nil, newWatch()
	e.board.Expect(e.learned)
	e.taught.Restore(s.Models.Seen)
	for token, lease := range e.board.Leases { // any order: each on its own
		e.restore(lease, old.Leases[token], &before)
	}
	for _, w := range e.board.Workers { // any order: each on its own
		if before := old.Workers[w.ID]; before != nil {
			w.LastSeen = max(w.LastSeen, before.LastSeen)
		}
	}
	e.restoreSignals(s.Signals)
	e.restoreSchedules(&s.Schedules, s.Waiting)
	e.awaited = map[int32]map[int32]int64{}
	e.freed = freed{}
	e.freed.add(s.Freed)
	e.unparks, e.modelless, e.rechoose = nil, nil, nil
	e.cursors, e.unfired = slices.Clone(s.Cursors), slices.Clone(s.Unfired)
	e.flows, e.want, e.again = map[models.ID]*flow{}, map[models.TaskRef]bool{}, nil
	for i := range s.Freed {
		e.wantFlow(&s.Freed[i])
	}
	for i := range s.Running { // a workflow with a live task is always in hand
		e.wantFlow(&s.Running[i])
	}
	e.ends = map[models.TaskRef]models.Instant{}
	for _, f := range s.HeldFlows {
		if f.EndsAt > 0 {
			e.ends[models.TaskRef{Env: f.Env, ID: f.Workflow}] = f.EndsAt
		}
	}
	e.wantSpenders(s)
	e.board.LookLower()
	e.numbers = numbers{}
	for n := range e.board.Tenants { // any order: a maximum
		e.numbers.tenant = max(e.numbers.tenant, n)
	}
	for n := range e.board.Envs { // any order: a maximum
		e.numbers.env = max(e.numbers.env, n)
	}
	for n := range e.board.Lanes { // any order: a maximum
		e.numbers.lane = max(e.numbers.lane, n)
	}
	for n := range e.board.Classes { // any order: a maximum
		e.numbers.class = max(e.numbers.class, n)
	}
	e.numbers.lane = max(e.numbers.lane, s.MostLane)
	e.claims, e.b, e.dirty = nil, nil, true
}

// Decide turns a batch of commands with the facts they need into one plan and the answers, of which the loop tells none
// before the plan is committed. If it is not, the board is wrong and must be rebuilt.
func (e *Engine) Decide(number, epoch int64, facts *models.Facts, cmds []*Command) (*models.Plan, []Reply) {
	e.begin(number, epoch, facts)
	e.stirred = false
	e.openRates()
	e.keepHours()
	e.board.BeginPeriods(e.now)
	e.announce()
	e.loadFlows()
	e.decideUnparks()
	e.decideChoices()
	if !e.ease.alone {
		e.decideFreed()
		e.decideSlices()
		e.decideSchedules()
		e.decideLate()
	}
	for _, cmd := range cmds {
		e.do(cmd)
	}
	e.match()
	e.tellParked()
	e.expireClaims()
	e.judgeFlows()
	e.fireOn()
	return e.finish()
}

func (e *Engine) do(cmd *Command) {
	e.b.cmd = cmd
	answer, err := e.verb(cmd)
	if answer == nil && err == nil {
		return // it is parked: a later batch answers
	}
	e.reply(cmd, answer, err)
}

func (e *Engine) reply(cmd *Command, answer *Answer, err error) {
	if answer != nil {
		answer.Batch = e.b.plan.Batch
	}
	e.b.replies = append(e.b.replies, Reply{To: cmd, Answer: answer, Err: err})
}

func (e *Engine) verb(cmd *Command) (*Answer, error) {
	switch {
	case cmd.Submit != nil:
		return e.submit(cmd)
	case cmd.Intern != nil:
		return e.intern(cmd.Intern)
	case cmd.Flip != nil:
		return e.flip(cmd)
	case cmd.Claim != nil:
		return e.claim(cmd)
	case cmd.Return != nil:
		return e.giveBack(cmd.Return)
	case cmd.Heartbeat != nil:
		return e.heartbeat(cmd.Heartbeat)
	case cmd.Settle != nil:
		return e.settle(cmd.Settle)
	case cmd.Cancel != nil:
		return e.cancel(cmd)
	case cmd.Redrive != nil:
		return e.redrive(cmd)
	case cmd.Discard != nil:
		return e.discard(cmd)
	case cmd.Bulk != nil:
		return e.bulk(cmd)
	case cmd.Register != nil:
		return e.register(cmd)
	case cmd.Retire != nil:
		return e.retire(cmd)
	case cmd.Configure != nil:
		return e.configure(cmd)
	case cmd.Look != nil:
		return e.look(cmd.Look)
	case cmd.Approve != nil:
		return e.approve(cmd)
	case cmd.Signal != nil:
		return e.signal(cmd)
	case cmd.Edit != nil:
		return e.edit(cmd)
	case cmd.Judge != nil:
		return e.judge(cmd)
	case cmd.Mark != nil:
		return e.mark(cmd)
	case cmd.Unlock != nil:
		return e.unlock(cmd)
	case cmd.SteerBulk != nil:
		return e.steerBulk(cmd)
	case cmd.Spawn != nil:
		return e.spawn(cmd)
	case cmd.Steer != nil:
		return e.steer(cmd)
	case cmd.Skip != nil:
		return e.skip(cmd)
	case cmd.Trigger != nil:
		return e.trigger(cmd)
	case cmd.Backfill != nil:
		return e.backfill(cmd)
	case cmd.Recheck != nil:
		return e.recheck(cmd.Recheck)
	case cmd.Publish != nil:
		return e.publish(cmd)
	case cmd.Tick != nil:
		return e.tick()
	}
	return nil, models.Errorf(models.InvalidRequest, "the command names no verb")
}

// Commit takes in what applying the plan set free. The answers it gives belong to claims that were parked.
func (e *Engine) Commit(effects *models.Effects) []Reply {
	e.freed.add(e.b.bornFreed)
	if effects != nil {
		e.freed.add(effects.Freed)
		e.unfired = append(e.unfired, effects.Unfired...)
	}
	for _, id := range e.freed.order {
		row := e.freed.rows[id]
		e.wantFlow(&row)
	}
	e.keepDear()
	e.counters.take(&e.b.notes, e.board.Classes)
	e.worked()
	e.announced = true
	e.b = nil
	return nil
}

// Busy says that work of the engine's own waits: the loop runs another batch at once.
func (e *Engine) Busy() bool {
	return e.stirred || len(e.freed.rows) > 0 || len(e.unparks) > 0 || len(e.modelless) > 0 || e.board.Strays() || len(e.unfired) > 0 || e.dueCursor() >= 0 || len(e.want) > 0 || len(e.again) > 0 || e.plans.next() <= e.now
}

// NextWake is when time alone makes another batch worthwhile.
func (e *Engine) NextWake() models.Instant {
	next := min(e.board.NextTimer(), e.board.NextRate(), e.board.NextOpening(), e.board.NextHours(), e.board.NextPeriod(), e.swept+1_000_000, e.plans.next())
	for _, c := range e.claims {
		next = min(next, c.cmd.Claim.Until)
	}
	for i := range e.cursors {
		if c := &e.cursors[i]; !c.Paused && c.NextAt > 0 {
			next = min(next, c.NextAt)
		}
	}
	return max(next, 1) // what is not known yet is looked at now: timers after a rebuild, hours of a lane
}

// Asks is what the board wants read before the next batch, nil when nothing.
func (e *Engine) Asks() *models.RefillAsk {
	ask := &models.RefillAsk{Lines: e.board.LineAsks(200), Timers: e.board.TimerAsk(e.now)}
	keyed, due := e.board.KeyAsks(200)
	ask.Lines, e.unparks = append(ask.Lines, keyed...), append(e.unparks, due...)
	ask.Lines = append(ask.Lines, e.board.MoneyAsks(200)...)
	ask.Lines = append(ask.Lines, e.board.ModelAsks(e.cfg.Slice-len(e.modelless))...)
	ask.Lines = append(ask.Lines, e.board.LowerAsks(e.cfg.Slice-len(e.modelless))...)
	if len(ask.Lines) == 0 && ask.Timers == nil {
		return nil
	}
	return ask
}

// Refilled takes in the answer to Asks.
func (e *Engine) Refilled(ask *models.RefillAsk, refill *models.Refill) {
	for i, line := range ask.Lines {
		if line.Gate == models.ModelGate {
			e.board.ModelsRead(&line, refill.Lines[i])
		}
		if line.Gate == models.ModelGate || line.Lower {
			e.modelless = append(e.modelless, refill.Lines[i]...)
			continue
		}
		if line.Gate != "" {
			e.board.Answered(line)
			e.unparks = append(e.unparks, refill.Lines[i]...)
			continue
		}
		e.board.Refilled(line, refill.Lines[i])
		if len(refill.Lines[i]) > 0 {
			e.dirty, e.stirred = true, len(e.claims) > 0
		}
	}
	if ask.Timers != nil {
		e.board.TimersRead(ask.Timers, refill.Timers)
	}
}

// Check says where the board differs from one rebuilt from a snapshot taken after the last commit, nil when nowhere.
func (e *Engine) Check(s *models.Snapshot) error {
	if err := e.board.Check(s); err != nil {
		return err
	}
	if err := e.checkHeld(s.Held); err != nil {
		return err
	}
	if err := e.checkParked(s.Parked); err != nil {
		return err
	}
	if err := e.checkSchedules(&s.Schedules); err != nil {
		return err
	}
	if err := e.checkFeeds(s.Waiting); err != nil {
		return err
	}
	for i := range s.Freed {
		if _, waits := e.freed.rows[s.Freed[i].ID]; !waits {
			return fmt.Errorf("task %x has nothing left to wait for, but nobody means to decide it", s.Freed[i].ID)
		}
	}
	return nil
}
