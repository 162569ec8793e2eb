package models

import "fmt"

// State is where a task stands. The numbers are those of the database and never change.
type State int16

// The states. Staged rows are not yet part of the world: no list shows them.
const (
	Staged State = iota
	Scheduled
	Pending
	Ready
	Running
	RetryWait
	CancelRequested
	DeadLetter
	Succeeded
	Failed
	Cancelled
	Expired
	Skipped
	states
)

var stateNames = [states]string{"staged", "scheduled", "pending", "ready", "running", "retry_wait", "cancel_requested", "dead_letter", "succeeded", "failed", "cancelled", "expired", "skipped"}

func (s State) String() string {
	if s < 0 || s >= states {
		return fmt.Sprintf("state(%d)", int(s))
	}
	return stateNames[s]
}

// ParseState reads a state's name. Staged has none for callers.
func ParseState(name string) (State, bool) {
	for s, n := range stateNames {
		if n == name && s != int(Staged) {
			return State(s), true
		}
	}
	return 0, false
}

// States lists every state that callers can see, in order.
func States() []State {
	all := make([]State, 0, states-1)
	for s := Scheduled; s < states; s++ {
		all = append(all, s)
	}
	return all
}

// Final says that nothing can change the task any more.
func (s State) Final() bool { return s >= Succeeded }

// Live says that an attempt holds a lease.
func (s State) Live() bool { return s == Running || s == CancelRequested }

// Waiting says that the task waits for time, others or a worker.
func (s State) Waiting() bool {
	return s == Scheduled || s == Pending || s == Ready || s == RetryWait || s == Staged
}

// Cause is why a state changes: the first column of the Law.
type Cause string

// The causes.
const (
	Entered         Cause = "entered"          // a staged row enters the world
	Due             Cause = "due"              // its moment has come
	Freed           Cause = "freed"            // nothing left to wait for
	Claimed         Cause = "claimed"          // a worker got it
	Reported        Cause = "reported"         // its worker reported success
	ReportedFailure Cause = "reported_failure" // its worker reported an error
	Gone            Cause = "lost"             // its lease ended without a report
	TimedOut        Cause = "timed_out"        // its hard timeout came
	GivenBack       Cause = "released"         // its worker gave it back
	Suspends        Cause = "suspended"        // it waits for its children
	AskedToStop     Cause = "cancel"           // somebody cancelled it
	TooLate         Cause = "expired"          // it did not start in time
	DependencyDied  Cause = "dependency_died"  // an edge it needs can no longer fire
	Redriven        Cause = "redriven"         // a dead letter gets another life
	Discarded       Cause = "discarded"        // a dead letter is given up
	Edited          Cause = "edited"           // its run_at changed
	PassedOver      Cause = "skip"             // somebody skipped it
	RunIfSaysNo     Cause = "run_if"           // its condition says no
)

// Transition is one row of the Law. Fenced rows need the live lease's token.
type Transition struct {
	On     Cause
	From   []State
	To     State
	Fenced bool
}

// Law is every transition there is. The step function, the SQL guards, the CHECKs and the diagram come from it.
var Law = []Transition{
	{On: Entered, From: []State{Staged}, To: Scheduled},
	{On: Entered, From: []State{Staged}, To: Pending},
	{On: Entered, From: []State{Staged}, To: Ready},
	{On: AskedToStop, From: []State{Staged, Scheduled, Pending, Ready, RetryWait, DeadLetter}, To: Cancelled},
	{On: Due, From: []State{Scheduled, RetryWait}, To: Ready},
	{On: Freed, From: []State{Pending}, To: Ready},
	{On: Freed, From: []State{Pending}, To: Scheduled}, // its delay counts from the end of the dependencies
	{On: DependencyDied, From: []State{Scheduled, Pending}, To: Skipped},
	{On: RunIfSaysNo, From: []State{Pending}, To: Skipped},
	{On: PassedOver, From: []State{Scheduled, Pending, Ready, RetryWait, DeadLetter}, To: Skipped},
	{On: TooLate, From: []State{Scheduled, Pending, Ready, RetryWait}, To: Expired},
	{On: Edited, From: []State{Scheduled, Ready}, To: Scheduled},
	{On: Edited, From: []State{Scheduled}, To: Ready},
	{On: Claimed, From: []State{Ready}, To: Running},

	{On: Reported, From: []State{Running, CancelRequested}, To: Succeeded, Fenced: true},
	{On: ReportedFailure, From: []State{Running}, To: RetryWait, Fenced: true},
	{On: ReportedFailure, From: []State{Running}, To: DeadLetter, Fenced: true},
	{On: ReportedFailure, From: []State{Running}, To: Failed, Fenced: true},
	{On: ReportedFailure, From: []State{CancelRequested}, To: Cancelled, Fenced: true},
	{On: TimedOut, From: []State{Running}, To: RetryWait, Fenced: true},
	{On: TimedOut, From: []State{Running}, To: DeadLetter, Fenced: true},
	{On: TimedOut, From: []State{Running}, To: Failed, Fenced: true},
	{On: TimedOut, From: []State{CancelRequested}, To: Cancelled, Fenced: true},
	{On: TimedOut, From: []State{Scheduled, Pending, Ready, RetryWait}, To: DeadLetter}, // the time of all its attempts is over
	{On: TimedOut, From: []State{Scheduled, Pending, Ready, RetryWait}, To: Failed},
	{On: Gone, From: []State{Running}, To: Ready, Fenced: true},
	{On: Gone, From: []State{Running}, To: DeadLetter, Fenced: true},
	{On: Gone, From: []State{CancelRequested}, To: Cancelled, Fenced: true},
	{On: GivenBack, From: []State{Running}, To: Ready, Fenced: true},
	{On: GivenBack, From: []State{CancelRequested}, To: Cancelled, Fenced: true},
	{On: Suspends, From: []State{Running}, To: Pending, Fenced: true},
	{On: Suspends, From: []State{CancelRequested}, To: Cancelled, Fenced: true},
	{On: AskedToStop, From: []State{Running}, To: CancelRequested, Fenced: true},

	{On: Redriven, From: []State{DeadLetter}, To: Ready},
	{On: Discarded, From: []State{DeadLetter}, To: Failed},
}

// Step says whether the Law lets cause move a task from one state to another, and whether that needs the lease's token.
func Step(cause Cause, from, to State) (fenced, ok bool) {
	for _, t := range Law {
		if t.On != cause || t.To != to {
			continue
		}
		for _, f := range t.From {
			if f == from {
				return t.Fenced, true
			}
		}
	}
	return false, false
}

// Reachable says whether any cause moves a task from one state to another, and whether all such rows are fenced.
// A plan may merge several steps of one batch, so it also follows two.
func Reachable(from, to State) bool {
	for _, t := range Law {
		for _, f := range t.From {
			if f == from && t.To == to {
				return true
			}
		}
	}
	return false
}

// Diagram is the Law as a Mermaid state diagram, for the documentation.
func Diagram() string {
	out := "stateDiagram-v2\n    [*] --> scheduled\n    [*] --> pending\n    [*] --> ready\n"
	for _, t := range Law {
		for _, f := range t.From {
			if f == Staged {
				continue
			}
			out += fmt.Sprintf("    %s --> %s: %s\n", f, t.To, t.On)
		}
	}
	for _, s := range States() {
		if s.Final() {
			out += fmt.Sprintf("    %s --> [*]\n", s)
		}
	}
	return out
}
