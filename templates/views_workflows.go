package templates

import "time"

// WorkflowRow is a workflow in a list.
type WorkflowRow struct {
	ID         string
	Name       string
	State      string
	Counts     []StateCount
	CreatedAt  time.Time
	FinishedAt time.Time
}

// WorkflowsView is the list of workflows.
type WorkflowsView struct {
	State   string // the one filtered by, "" all
	Rows    []WorkflowRow
	Next    string
	Earlier bool
}

// WorkflowView is one workflow.
type WorkflowView struct {
	WorkflowRow
	OnFailure string
	Labels    []Pair
	Budget    []Meter
	Nodes     []Node
	Edges     []Edge
	Beyond    int       // tasks left out of the graph
	Tasks     []TaskRow // those that matter first: dead, running, waiting
	More      int       // tasks not listed

	Pause  bool
	Resume bool
	Cancel bool
	Retry  bool
	Rerun  bool
}

// Meter is what was used of a limit, in words and as a part.
type Meter struct {
	Name  string
	Used  string
	Limit string
	Part  float64
}

// Node is a task in the drawing of its workflow.
type Node struct {
	ID    string
	Key   string
	Type  string
	State string
}

// Edge is a dependency: To waits for From.
type Edge struct {
	From, To string
	On       string
	Fired    bool
}
