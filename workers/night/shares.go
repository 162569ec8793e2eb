package night

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// event is a row of GET /v1/events, as far as it is used.
type event struct {
	ID             string    `json:"id"`
	Name           string    `json:"name"`
	TaskID         string    `json:"task_id"`
	At             time.Time `json:"at"`
	Pool           string    `json:"pool"`
	Class          string    `json:"class"`
	Reason         string    `json:"reason"`
	ChargedSeconds *float64  `json:"charged_seconds"`
}

// charge is what the scheduler charged for one attempt when it ended.
type charge struct {
	at      time.Time
	seconds float64
}

// ledger is what a tenant's events say about the class the shares are read
// from, and how many retries there were.
type ledger struct {
	first, last time.Time // starts of the class
	started     map[string]time.Time
	charges     []charge
	retries     int  // attempts that failed and are made again
	again       int  // attempts that were lost or given back, and are made again
	charged     bool // the seconds are the scheduler's own
}

// ends are the events by which an attempt ends, beside its loss.
var ends = []string{"task.succeeded", "task.retrying", "task.failed", "task.dead_lettered"}

func (l *ledger) book(e event, taskType string) {
	lost := e.Name == "task.ready" && e.Class == "worker_lost" || e.Name == "task.released" && e.Reason == "" // with a reason it left a hold
	switch {
	case e.Name == "task.retrying":
		l.retries++
	case lost:
		l.again++
	}
	if taskType != sharedType {
		return
	}
	switch {
	case e.Name == "task.started":
		if l.first.IsZero() || e.At.Before(l.first) {
			l.first = e.At
		}
		if e.At.After(l.last) {
			l.last = e.At
		}
		l.started[e.TaskID] = e.At
	case lost || slices.Contains(ends, e.Name):
		if e.Pool != "" && e.Pool != sharedPool {
			return
		}
		seconds, known := 0.0, false
		if e.ChargedSeconds != nil {
			seconds, known, l.charged = *e.ChargedSeconds, true, true
		} else if begun, ok := l.started[e.TaskID]; ok {
			seconds, known = e.At.Sub(begun).Seconds(), true
		}
		if known {
			l.charges = append(l.charges, charge{e.At, seconds})
		}
		delete(l.started, e.TaskID)
	}
}

// Shares compares what each tenant got with its weight, over the time in which
// all of them had ready work of one class: from the latest first start to the
// earliest last one.
type Shares struct {
	Type    string
	Pool    string
	From    time.Time
	Seconds float64
	Charged bool // from the events' charged_seconds; else from start to end
	Tenants []Share
}

// Share is one tenant's part: Got and Due are between 0 and 1.
type Share struct {
	Slug    string
	Weight  int
	Seconds float64
	Got     float64
	Due     float64
}

func sharesOf(customers []*customer) Shares {
	s := Shares{Type: sharedType, Pool: sharedPool, Charged: true}
	var until time.Time
	for _, c := range customers {
		if c.ledger.first.IsZero() {
			return s
		}
		if c.ledger.first.After(s.From) {
			s.From = c.ledger.first
		}
		if until.IsZero() || c.ledger.last.Before(until) {
			until = c.ledger.last
		}
		s.Charged = s.Charged && c.ledger.charged
	}
	if !until.After(s.From) {
		return s
	}
	s.Seconds = until.Sub(s.From).Seconds()
	total, weights := 0.0, 0
	for _, c := range customers {
		one := Share{Slug: c.tenant.Slug, Weight: c.tenant.Weight}
		for _, charge := range c.ledger.charges {
			if charge.at.After(s.From) && !charge.at.After(until) {
				one.Seconds += charge.seconds
			}
		}
		total += one.Seconds
		weights += one.Weight
		s.Tenants = append(s.Tenants, one)
	}
	for i := range s.Tenants {
		if total > 0 && weights > 0 {
			s.Tenants[i].Got = s.Tenants[i].Seconds / total
			s.Tenants[i].Due = float64(s.Tenants[i].Weight) / float64(weights)
		}
	}
	return s
}

// Deviation is the largest relative difference between a share and its due.
func (s Shares) Deviation() float64 {
	most := 0.0
	for _, t := range s.Tenants {
		if t.Due > 0 {
			most = max(most, math.Abs(t.Got/t.Due-1))
		}
	}
	return most
}

const leastShared = 5.0 // seconds of common work below which shares mean nothing

func (s Shares) String() string {
	if len(s.Tenants) == 0 {
		return "Shares: the tenants never had ready work of one class at the same time."
	}
	if s.Seconds < leastShared {
		return fmt.Sprintf("Shares: the tenants had ready work of one class for %.1f s together, too short to say anything.", s.Seconds)
	}
	parts := make([]string, len(s.Tenants))
	for i, t := range s.Tenants {
		parts[i] = fmt.Sprintf("%s %.1f s = %.1f %% (due %.1f %%)", t.Slug, t.Seconds, 100*t.Got, 100*t.Due)
	}
	basis := "charged"
	if !s.Charged {
		basis = "running"
	}
	return fmt.Sprintf("Shares of %s in pool %s over %.1f s with ready work of all, in %s seconds: %s; off by %.1f %%",
		s.Type, s.Pool, s.Seconds, basis, strings.Join(parts, ", "), 100*s.Deviation())
}
