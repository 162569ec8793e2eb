package rival

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// moments are the tasks in the order in which they come.
func moments(tasks []Task) []int {
	out := make([]int, len(tasks))
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out, func(a, b int) int { return First(tasks, a, b) })
	return out
}

// Fluid shares the slots without grain: at each moment every tenant with work gets its weight's part, what it cannot use
// goes to the others, and its tasks are served in the order in which they came, each by one slot at most. It answers when
// each began; what waits longer in a real schedule waits longer than is fair.
func Fluid(slots int, weights []float64, tasks []Task) []Ran {
	f := &fluid{slots: float64(slots), weights: weights, tasks: tasks, queues: make([][]int, len(weights)), left: make([]float64, len(tasks)), ran: make([]Ran, len(tasks))}
	at, come := 0.0, moments(tasks)
	for i := range tasks {
		f.left[i] = tasks[i].Run.Seconds()
		f.ran[i].Start = -1
	}
	for {
		for len(come) > 0 && tasks[come[0]].At.Seconds() <= at {
			t := tasks[come[0]].Tenant
			f.queues[t] = append(f.queues[t], come[0])
			come = come[1:]
		}
		rates := f.rates()
		next := f.serve(at, rates, 0)
		if len(come) > 0 {
			next = min(next, tasks[come[0]].At.Seconds()-at)
		}
		if math.IsInf(next, 1) {
			return f.ran
		}
		f.serve(at, rates, next)
		at += next
	}
}

type fluid struct {
	slots   float64
	weights []float64
	tasks   []Task
	queues  [][]int
	left    []float64 // seconds
	ran     []Ran
}

// rates fills the slots: tenants that want less than their part get all they want, the others share the rest.
func (f *fluid) rates() []float64 {
	rates := make([]float64, len(f.weights))
	var order []int
	weight := 0.0
	for t := range f.weights {
		if len(f.queues[t]) > 0 {
			order = append(order, t)
			weight += f.weights[t]
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(float64(len(f.queues[a]))/f.weights[a], float64(len(f.queues[b]))/f.weights[b]), cmp.Compare(a, b))
	})
	left := f.slots
	for _, t := range order {
		rates[t] = min(float64(len(f.queues[t])), left*f.weights[t]/weight)
		left -= rates[t]
		weight -= f.weights[t]
	}
	return rates
}

// serve serves for so many seconds; with 0 it only answers how long it takes until the first task ends.
func (f *fluid) serve(at float64, rates []float64, seconds float64) float64 {
	first := math.Inf(1)
	for t, rate := range rates {
		kept := f.queues[t][:0:0]
		for _, i := range f.queues[t] {
			got := min(1, rate)
			rate -= got
			if got > 1e-12 {
				if f.ran[i].Start < 0 {
					f.ran[i].Start = span(at)
				}
				first = min(first, f.left[i]/got)
				f.left[i] -= got * seconds
			}
			if f.left[i] > 1e-9 || seconds == 0 {
				kept = append(kept, i)
			} else {
				f.ran[i].End = span(at + seconds)
			}
			if rate <= 1e-12 && seconds == 0 {
				break
			}
		}
		if seconds > 0 {
			f.queues[t] = kept
		}
	}
	return first
}

func span(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
