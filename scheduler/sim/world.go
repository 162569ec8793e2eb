package sim

import (
	"container/heap"
	"crypto/sha256"
	"fmt"
	"hash"
	"math/rand/v2"
	"time"

	"nightshift/models"
	"nightshift/models/memory"
	"nightshift/scheduler/engine"
)

// dawn is when every world begins.
const dawn = models.Instant(1_790_000_000_000_000)

// latency is what a message takes on its way.
const latency = time.Millisecond

// World is a scenario on its way.
type World struct {
	scenario Scenario
	rng      *rand.Rand
	now      models.Instant
	store    *memory.Store
	engine   *engine.Engine
	config   engine.Config
	epoch    int64
	batch    int64

	agenda agenda
	deeds  int64
	inbox  []*engine.Command
	waits  map[models.ID]func(*engine.Answer, error) // what becomes of an answer, by command
	parked []*engine.Command                         // claims that wait for an answer

	tenants map[string]*tenant
	order   []*tenant // as the scenario names them
	fleet   []*process
	jobs    map[models.ID]*job
	all     []*job // in order of their making
	open    int    // jobs acknowledged and not ended
	coming  int    // arrivals still to come

	flows  []*flow
	watch  watch
	gauge  gauge
	lag    lags
	ranks  ranks
	yield  yielding
	ticked models.Instant
	hash   hash.Hash
	trace  []string
	result Result
}

// tenant is a customer of the world.
type tenant struct {
	Tenant
	number, env int32
	index       int
	ready       int64 // in lines
	running     int64
	served      float64 // slot seconds while everybody had work
	rate        float64 // dominant parts of pools that its running tasks take
	work        float64 // dominant seconds it got so far
	largest     float64 // of a task
	waits       []time.Duration
	arrives     bool
	holds       holds
}

// New makes a world.
func New(s Scenario) *World {
	w := &World{
		scenario: s, rng: rand.New(rand.NewPCG(s.Seed, 0x776f726c64)), now: dawn, waits: map[models.ID]func(*engine.Answer, error){},
		tenants: map[string]*tenant{}, jobs: map[models.ID]*job{}, hash: sha256.New(), watch: newWatch(),
		gauge: newGauge(&s), lag: lags{pairs: map[[2]int]*pair{}, most: map[[2]int]float64{}}, ranks: newRanks(),
		config: engine.Config{Heads: s.Board.Heads, MostEntries: s.Board.MostEntries, Slice: s.Board.Slice, Address: "here", Peak: s.Peak},
	}
	for i := range 8 {
		w.config.Seed[i] = byte(s.Seed >> (8 * i))
	}
	w.store = memory.New(func() models.Instant { return w.now })
	w.result = Result{Shares: map[string]float64{}, Waits: map[string]Wait{}, Counters: map[string]int64{}}
	return w
}

// Store is where the rows stand, to look at afterwards.
func (w *World) Store() *memory.Store { return w.store }

// Run lives through the scenario.
func (w *World) Run() Result {
	if !w.begin() {
		return w.finish()
	}
	end := dawn.Add(w.scenario.Until)
	for len(w.agenda) > 0 && !w.over() {
		at := w.agenda[0].at
		if at > end {
			break
		}
		w.pass(at)
		for len(w.agenda) > 0 && w.agenda[0].at == at {
			heap.Pop(&w.agenda).(*deed).do()
		}
		w.decide()
	}
	return w.finish()
}

// over says that everything has come and ended.
func (w *World) over() bool { return w.coming == 0 && w.open == 0 && len(w.inbox) == 0 }

// pass lets time go on. While every tenant has ready work, what runs counts for the shares.
func (w *World) pass(to models.Instant) {
	if to == w.now {
		return
	}
	seconds := to.Sub(w.now).Seconds()
	w.passGauge(to)
	w.passYield(seconds)
	for _, t := range w.order {
		t.work += t.rate * seconds
	}
	if w.scenario.Lag {
		w.lag.look(w.order)
	}
	contended := len(w.order) > 1
	for _, t := range w.order {
		contended = contended && (t.ready > 0 || !t.arrives)
	}
	if contended {
		w.result.Contended += to.Sub(w.now)
		for _, t := range w.order {
			t.served += float64(t.running) * seconds
		}
	}
	w.now = to
}

// after puts something on the agenda, on a whole millisecond so that what happens together is decided together.
func (w *World) after(d time.Duration, do func()) {
	at := w.now.Add(d)
	at += (1000 - at%1000) % 1000
	w.deeds++
	heap.Push(&w.agenda, &deed{at: at, n: w.deeds, do: do})
}

// ask sends a command; then is what becomes of its answer.
func (w *World) ask(c *engine.Command, then func(*engine.Answer, error)) {
	c.ID = w.id()
	w.waits[c.ID] = then
	w.inbox = append(w.inbox, c)
}

func (w *World) id() models.ID {
	var entropy [10]byte
	a, b := w.rng.Uint64(), w.rng.Uint64()
	for i := range entropy {
		entropy[i] = byte(a >> (8 * (i % 8)))
		if i > 7 {
			entropy[i] = byte(b >> (8 * (i - 8)))
		}
	}
	return models.NewID(w.now, entropy)
}

// note writes a line of the trace.
func (w *World) note(format string, args ...any) {
	line := fmt.Sprintf("%9d ", w.now.Sub(dawn).Milliseconds()) + fmt.Sprintf(format, args...)
	w.hash.Write([]byte(line))
	w.hash.Write([]byte{'\n'})
	if w.scenario.Keep {
		w.trace = append(w.trace, line)
	}
}

// deed is something that will happen.
type deed struct {
	at models.Instant
	n  int64 // what was put on the agenda first happens first
	do func()
}

type agenda []*deed

var _ heap.Interface = (*agenda)(nil)

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].n < a[j].n
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(d any)   { *a = append(*a, d.(*deed)) }
func (a *agenda) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}
