package memory

import (
	"cmp"
	"sync"

	"nightshift/models"
)

// Store holds the rows of one cell.
type Store struct {
	mu    sync.Mutex
	clock func() models.Instant
	last  models.Instant // the clock never goes back
	brain models.Brain
	beats int64
	fault *fault
	rows
}

// fault is what the next Apply shall do instead of answering.
type fault struct {
	code     models.Code
	happened bool
}

// New is an empty store, told the time by clock.
func New(clock func() models.Instant) *Store { return &Store{clock: clock, rows: newRows()} }

// FailNext makes the next Apply answer with this code: without having done anything, or after it happened, as when the
// answer to a commit is lost.
func (s *Store) FailNext(code models.Code, happened bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = &fault{code: code, happened: happened}
}

// now reads the clock. The caller holds the mutex.
func (s *Store) now() models.Instant {
	s.last = max(s.last, s.clock())
	return s.last
}

// rows are the tables and the indexes that keep reads short.
type rows struct {
	tenants      map[int32]models.Tenant
	environments map[int32]models.Environment
	kinds        map[models.KindName]models.Kind
	lanes        map[int32]models.Lane
	mostLane     int32 // the largest number any lane ever had
	classes      map[int32]models.Class
	workers      map[models.ID]models.Worker
	virtual      map[virtualKey]models.Virtual
	held         map[models.HeldRef]models.Held
	estimates    map[estimateKey]models.Estimate
	corrections  map[correctionKey]models.Correction

	workflows map[models.TaskRef]models.Workflow
	tasks     map[models.TaskRef]models.Task
	specs     map[models.TaskRef]models.Spec
	labels    map[models.TaskRef][]models.Label
	edges     map[models.TaskRef][]models.Edge // by their source
	unfired   map[models.TaskRef]models.End    // ends of which edges are left
	attempts  map[models.TaskRef][]models.Attempt
	progress  map[models.TaskRef]models.Progress
	stagings  map[models.ID]models.Staging
	stagingOf map[models.TaskRef]models.ID
	cursors   map[models.ID]models.Cursor
	done      map[models.ID]int64
	once      map[models.OnceRef]models.Once
	batches   map[int64]int64 // batch → epoch
	decidedAt models.Instant  // of the last
	events    []Recorded
	audit     []models.Audit

	lines   indexed[models.LineID, models.Mark] // ready, ungated
	starts  indexed[models.LineID, models.Mark] // of those, the ones with a deadline, by the moment they must start
	parked  indexed[parkedKey, models.Mark]     // ready, gated
	timers  *order[timer]
	running *order[models.TaskRef]
	freed   *order[models.TaskRef]             // pending with nothing left to wait for
	dead    indexed[models.TaskRef, models.ID] // dead letters by environment and fingerprint
	members indexed[models.TaskRef, models.ID] // not final tasks by workflow
	counts  map[models.TaskRef]models.Counts   // by workflow
	staged  indexed[models.ID, models.TaskRef] // by staging
	holders map[models.IdemRef]models.ID       // of business keys

	overrides  map[models.TaskRef]models.Override
	signals    map[models.ID]models.Signal
	qualities  map[qualityKey]models.Quality
	dedupes    map[models.IdemRef]models.Dedupe
	watermarks map[models.IdemRef]models.Watermark
	items      map[models.TaskRef]models.Items
	children   map[models.ChildRef]models.ID
	below      indexed[models.TaskRef, models.ID] // children by parent
	listed     indexed[models.ID, models.ID]      // tasks by the bulk action they were listed for
	spends     map[models.TaskRef]models.Spend    // by workflow
	waitsFor   map[models.TaskRef][]models.ID     // whom a task waited for
	scheduleRows
	quotaRows
	keyRows
	feedRows
	modelRows
	moneyRows
}

// Recorded is an event with the batch that wrote it.
type Recorded struct {
	Batch int64
	models.Event
}

type correctionKey struct {
	pool string
	kind models.KindName
}

type estimateKey struct{ tenant, class int32 }

type virtualKey struct {
	pool   string
	kind   models.KindName
	tenant int32
}

type qualityKey struct {
	task   models.TaskRef
	source string
}

type parkedKey struct {
	line models.LineID
	gate string
}

type wantedKey struct {
	line models.LineID
	key  string
}

// timer is a moment at which time alone changes a task.
type timer struct {
	at  models.Instant
	ref models.TaskRef
}

func newRows() rows {
	return rows{
		tenants: map[int32]models.Tenant{}, environments: map[int32]models.Environment{}, kinds: map[models.KindName]models.Kind{},
		lanes: map[int32]models.Lane{}, classes: map[int32]models.Class{}, workers: map[models.ID]models.Worker{},
		virtual: map[virtualKey]models.Virtual{}, held: map[models.HeldRef]models.Held{}, estimates: map[estimateKey]models.Estimate{}, corrections: map[correctionKey]models.Correction{}, workflows: map[models.TaskRef]models.Workflow{}, tasks: map[models.TaskRef]models.Task{},
		specs: map[models.TaskRef]models.Spec{}, labels: map[models.TaskRef][]models.Label{}, edges: map[models.TaskRef][]models.Edge{}, unfired: map[models.TaskRef]models.End{},
		attempts: map[models.TaskRef][]models.Attempt{}, progress: map[models.TaskRef]models.Progress{},
		stagings: map[models.ID]models.Staging{}, stagingOf: map[models.TaskRef]models.ID{}, cursors: map[models.ID]models.Cursor{},
		done: map[models.ID]int64{}, once: map[models.OnceRef]models.Once{}, batches: map[int64]int64{},
		lines: newIndexed[models.LineID](compareMarks), starts: newIndexed[models.LineID](compareMarks), parked: newIndexed[parkedKey](compareMarks),
		timers: newOrder(compareTimers), running: newOrder(compareRefs), freed: newOrder(compareRefs),
		dead: newIndexed[models.TaskRef](models.ID.Compare), members: newIndexed[models.TaskRef](models.ID.Compare),
		counts: map[models.TaskRef]models.Counts{}, staged: newIndexed[models.ID](compareRefs), holders: map[models.IdemRef]models.ID{},
		overrides: map[models.TaskRef]models.Override{}, signals: map[models.ID]models.Signal{}, qualities: map[qualityKey]models.Quality{},
		dedupes: map[models.IdemRef]models.Dedupe{}, watermarks: map[models.IdemRef]models.Watermark{}, items: map[models.TaskRef]models.Items{}, children: map[models.ChildRef]models.ID{}, below: newIndexed[models.TaskRef](models.ID.Compare), listed: newIndexed[models.ID](models.ID.Compare),
		spends: map[models.TaskRef]models.Spend{}, waitsFor: map[models.TaskRef][]models.ID{}, scheduleRows: newScheduleRows(), quotaRows: newQuotaRows(), keyRows: newKeyRows(), feedRows: newFeedRows(), modelRows: newModelRows(), moneyRows: newMoneyRows(),
	}
}

func compareRefs(a, b models.TaskRef) int {
	return cmp.Or(cmp.Compare(a.Env, b.Env), a.ID.Compare(b.ID))
}

func compareMarks(a, b models.Mark) int {
	return cmp.Or(cmp.Compare(a.AgeKey, b.AgeKey), a.ID.Compare(b.ID))
}

func compareTimers(a, b timer) int {
	return cmp.Or(cmp.Compare(a.at, b.at), a.ref.ID.Compare(b.ref.ID), cmp.Compare(a.ref.Env, b.ref.Env))
}

func compareLines(a, b models.LineID) int {
	return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Env, b.Env), cmp.Compare(a.Class, b.Class))
}
