package templates

import "time"

// StateCount is a state with how many are in it.
type StateCount struct {
	State string
	Count int
	More  bool // at least so many
}

// Ref points at another object.
type Ref struct {
	ID    string
	Name  string // what to write; the id where empty
	State string // "" draws no badge
	Note  string // how it hangs together, as "on finished"
}

// TaskRow is a task in a list.
type TaskRow struct {
	ID          string
	Type        string
	Key         string // in its workflow
	State       string
	Lane        string
	Attempt     int
	MaxAttempts int
	Priority    int
	Worker      Ref
	Workflow    Ref
	CreatedAt   time.Time
	ReadyAt     time.Time
	StartedAt   time.Time
	FinishedAt  time.Time
	ErrorClass  string
	Error       string
	Waits       string // the first reason that it waits
	OverSoft    bool   // it runs past its soft timeout
}

// TasksView is the list of tasks.
type TasksView struct {
	Query   string // the query line as typed
	Wrong   string // what the query line got wrong
	States  []StateCount
	Total   string // "1,204", "10,000+"; "" where not counted
	Rows    []TaskRow
	Types   []string // suggestions for the query line
	Lanes   []string
	Next    string // cursor of the next page
	Earlier bool   // not on the first page
}

// TaskView is one task with all that is known of it.
type TaskView struct {
	ID             string
	Type           string
	Key            string
	Description    string
	State          string
	Kind           string
	Lane           string
	Priority       int
	Attempt        int
	MaxAttempts    int
	AttemptsUsed   int
	CreatedAt      time.Time
	ReadyAt        time.Time
	StartedAt      time.Time
	FinishedAt     time.Time
	RunAt          time.Time
	NextAttemptAt  time.Time
	LeaseExpiresAt time.Time
	Deadline       time.Time
	ExpiresAt      time.Time

	Worker    Ref
	Workflow  Ref
	Parent    Ref
	RedriveOf Ref
	Schedule  Ref

	Steps     []Step
	Why       []Reason
	Position  int // in its line; 0 unknown
	StartsAt  time.Time
	Attempts  []Attempt
	Error     *Failure
	Progress  string // JSON
	Payload   string
	Result    string
	Resources []Pair
	Labels    []Pair
	Rules     []Pair // timeout, retries, keys: name and words
	Cost      *Cost

	Dependencies []Ref
	Dependants   []Ref
	Children     []Ref

	Cancel  bool
	Retry   bool
	Discard bool
	Approve bool // and reject
	Edit    bool // its priority and lane
	Skip    bool // it is a task of a workflow that can be passed over
	Rerun   bool // its workflow can be run again from here

	SoftSeconds int // the soft timeout that it has run past; 0: none
	Curl        string
}

// RetryView is a task whose payload is edited before it runs again.
type RetryView struct {
	Task, Type, State string
	Payload           string
	Reason            string
	Checkpoint        bool // it may go on from its checkpoint
	Afresh            bool
	Wrong             map[string]string
}

// Pair is a name with its value.
type Pair struct{ Name, Value string }

// Step is a state that the task was in; Times counts entries.
type Step struct {
	State string
	At    time.Time
	Times int
}

// Reason is one thing that keeps a task waiting.
type Reason struct {
	Code   string
	Detail string
	Until  time.Time
	Link   string // path of what holds it
}

// Attempt is one execution.
type Attempt struct {
	Number     int
	Outcome    string
	Worker     Ref
	Version    string
	Model      string
	StartedAt  time.Time
	FinishedAt time.Time
	Error      *Failure
	Usage      []Pair
}

// Failure is what went wrong.
type Failure struct {
	Class    string
	Message  string
	Stack    string
	Response string // of the provider
}

// Cost is what a task was thought to take and took.
type Cost struct {
	EstimatedUSD float64
	ActualUSD    float64
	TokensIn     int
	TokensOut    int
}
