package loop

import (
	"sort"
	"sync"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// Histogram counts observations at or below each bound; what is above the last bound is in Count alone.
type Histogram struct {
	Bounds []float64
	Counts []uint64 // cumulative, beside Bounds
	Count  uint64
	Sum    float64
}

func (h *Histogram) observe(v float64) {
	for i := sort.SearchFloat64s(h.Bounds, v); i < len(h.Bounds); i++ {
		h.Counts[i]++
	}
	h.Count++
	h.Sum += v
}

func (h Histogram) copied() Histogram {
	h.Counts = append([]uint64(nil), h.Counts...)
	return h
}

// Figures are what a loop has counted since it was made, and how it stands now.
type Figures struct {
	Role
	Waiting int // commands in the inbox
	Parked  int // claims that wait for work

	Commands  uint64 // decided and answered, ticks among them: the decisions
	Batches   uint64 // committed
	Takeovers uint64
	Rebuilds  uint64
	Refused   map[models.Code]uint64 // by the inbox

	CounterDrift   uint64 // alerts: a plan's row count was not the database's
	Culprits       uint64 // commands that broke their batch
	Unclear        uint64 // commits whose answer was lost
	TicksAside     uint64 // alerts: a tick failed three times
	SchedulesAside uint64 // alerts: a single occurrence could not be made
	OwnWork        uint64 // alerts: a batch failed for what the engine had to do of its own
	HistoryLost    uint64 // alerts: fewer batches than acknowledged
	Behind         uint64 // alerts: a newer version has migrated the database, and this replica decides no more
	AddressTaken   uint64 // alerts: another replica decided under this one's address

	BatchCommands  Histogram
	CommitSeconds  Histogram
	RebuildSeconds Histogram

	Board *engine.Stats // of the brain, at most some seconds old; nil elsewhere
}

type figures struct {
	mu sync.Mutex
	Figures
}

func noFigures() Figures {
	return Figures{
		Refused:        map[models.Code]uint64{},
		BatchCommands:  histogram(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
		CommitSeconds:  histogram(.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1),
		RebuildSeconds: histogram(.01, .05, .1, .25, .5, 1, 2.5, 5, 10),
	}
}

func histogram(bounds ...float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds))}
}

// count changes the figures under their lock.
func (f *figures) count(change func(*Figures)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.Figures)
}

func (f *figures) refused(code models.Code) {
	f.count(func(f *Figures) { f.Refused[code]++ })
}

func (f *figures) committed(commands int, took time.Duration) {
	f.count(func(f *Figures) {
		f.Batches++
		f.BatchCommands.observe(float64(commands))
		f.CommitSeconds.observe(took.Seconds())
	})
}

// Figures is a copy for a collector to read.
func (l *Loop) Figures() Figures {
	l.figures.mu.Lock()
	out := l.figures.Figures
	out.Refused = make(map[models.Code]uint64, len(l.figures.Refused))
	for code, n := range l.figures.Refused {
		out.Refused[code] = n
	}
	out.BatchCommands, out.CommitSeconds, out.RebuildSeconds = out.BatchCommands.copied(), out.CommitSeconds.copied(), out.RebuildSeconds.copied()
	l.figures.mu.Unlock()
	out.Role, out.Waiting = l.Role(), l.inbox.depth()
	return out
}
