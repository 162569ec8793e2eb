package calendar

import "nightshift/models"

// Overlapping says what an occurrence does while the run before it goes on.
type Overlapping string

// The policies for overlapping runs; the empty one is SkipNew.
const (
	SkipNew        Overlapping = "skip"
	QueueOne       Overlapping = "queue_one"
	Allow          Overlapping = "allow"
	CancelPrevious Overlapping = "cancel_previous"
)

// Check refuses unknown words.
func (o Overlapping) Check() error {
	switch o {
	case "", SkipNew, QueueOne, Allow, CancelPrevious:
		return nil
	}
	return models.Errorf(models.InvalidSchedule, "overlap_policy %.40q is none of skip, queue_one, allow, cancel_previous", string(o))
}

// Meeting is what an occurrence finds: whether a run goes on, its work being neither final nor dead, and whether an
// occurrence waits for it.
type Meeting struct {
	Running bool
	Waiting bool
}

// Verdict is what an occurrence does about the runs before it.
type Verdict struct {
	Start            bool    // its work exists from now on
	Wait             bool    // it starts when the running one ends
	Outcome          Outcome // its own; empty while it waits
	CancelRunning    bool    // the running one's work is cancelled, and that run marked superseded
	SupersedeWaiting bool    // the waiting one is marked superseded
	Cause            string  // of its own outcome, or of the superseded one's
}

// Meet decides one occurrence. Occurrences of one tick meet one after the other, each seeing what the one before it left.
func (o Overlapping) Meet(m Meeting) Verdict {
	free := Verdict{Start: true, Outcome: Dispatched}
	switch o {
	case Allow:
		return free
	case QueueOne:
		switch {
		case m.Waiting:
			return Verdict{Wait: true, SupersedeWaiting: true, Cause: "a newer occurrence waits in its place"}
		case m.Running:
			return Verdict{Wait: true}
		}
		return free
	case CancelPrevious:
		if m.Running || m.Waiting {
			return Verdict{Start: true, Outcome: Dispatched, CancelRunning: m.Running, SupersedeWaiting: m.Waiting, Cause: "a newer occurrence started"}
		}
		return free
	}
	if m.Running || m.Waiting {
		return Verdict{Outcome: SkippedOverlap, Cause: "the run before it has not ended"}
	}
	return free
}
