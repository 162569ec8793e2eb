package templates

import "time"

// SchedulesView is the list of schedules.
type SchedulesView struct {
	Rows     []ScheduleRow
	Next     string
	Earlier  bool
	Filter   map[string]string // q, kind, state
	Total    int               // that match
	Forecast *ForecastView     // nil: it is asked for by the page
}

// ScheduleRow is a schedule in a list.
type ScheduleRow struct {
	ID       string
	Name     string
	Words    string // the rule in words
	Kind     string
	Timezone string
	Enabled  bool
	PausedBy string
	Reason   string
	NextAt   time.Time
	Failures int
	P50, P95 float64 // 0: none has ended yet
	Marks    []RunMark
	Lately   Lately
}

// Lately sums up the last runs of a schedule.
type Lately struct {
	Tone, Words string // of the last one; empty: it has not run yet
	At          time.Time
	Missed      int    // of those that are marked, how many came to nothing
	Why         string // the last of them did
}

// RunMark is a run as a small mark: its tone is the name of a state.
type RunMark struct {
	Tone  string
	Title string
}

// ScheduleView is one schedule.
type ScheduleView struct {
	ScheduleRow
	Description   string
	RunbookURL    string
	Facts         []Pair
	Next          PreviewView
	Task          string // JSON
	Runs          []RunRow
	RunsNext      string
	RunsEarlier   bool
	Versions      []VersionRow
	Version       int64
	LastFor       time.Time
	LastOutcome   string
	Late          float64 // of the last run by the clock
	Timed         bool    // there is one
	LastSuccessAt time.Time
}

// RunRow is one occurrence and what became of it.
type RunRow struct {
	ID           string
	ScheduledFor time.Time
	Local        string
	Origin       string
	Outcome      string // empty while it waits
	Cause        string
	Task         Ref
	Workflow     Ref
	State        string
	Late         float64
	FinishedAt   time.Time
	Tone         string
}

// VersionRow is a schedule as an edit left it.
type VersionRow struct {
	Version int64
	At      time.Time
	By      string
	Changes []Change
	Current bool
}

// Change is a field in two versions, as JSON.
type Change struct{ Name, Before, After string }

// PreviewView is when a rule fires, or why it can't.
type PreviewView struct {
	Words string
	Wrong string
	Zone  string
	Rows  []NextRun
	Notes []string // what the next changes of the clock do to it
}

// NextRun is an occurrence to come.
type NextRun struct {
	At     time.Time
	Local  string
	Tenant string // the same on the tenant's clock, where that is another one
	Note   string
}

// QuieterView is how much is foreseen when a rule runs next, and where near it is quieter.
type QuieterView struct {
	At       time.Time // zero: it does not run in the time that is foreseen
	Peak     float64
	Capacity int64
	Over     bool // it lies in a collision that asks for more than there is
	Better   time.Time
	Least    float64
}

// ScheduleForm is a schedule as it is edited: values by the names of its fields, as typed.
type ScheduleForm struct {
	ID      string // empty: a new one
	Version string // what the editor began with
	JSON    bool   // the whole as one text
	Values  map[string]string
	Wrong   map[string]string
	Zones   []string
	Lanes   []string
	Theirs  []VersionRow // what others saved meanwhile
	Freezes []Freeze     // of its environment, those to come
}

// Freeze is a time of an environment in which no schedule fires.
type Freeze struct {
	From, To time.Time
	Reason   string
}

// BackfillView asks for a range and says how many occurrences it has.
type BackfillView struct {
	ID, Name, Timezone string
	Words              string    // the rule
	Some               []NextRun // the first of the range
	Values             map[string]string
	Wrong              map[string]string
	Counted            bool
	Matched            int64
}
