package scenario

import (
	"cmp"
	"math"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

func arrivals(f *file, w where, s *sim.Scenario, tenants map[string]bool) error {
	total := 0.0
	for i := range f.Arrivals {
		a := &f.Arrivals[i]
		wrong := func(format string, args ...any) error { return w.wrong("arrivals", i, format, args...) }
		if !tenants[a.Tenant] {
			return wrong("there is no tenant %q", a.Tenant)
		}
		out := sim.Arrival{
			Name: a.Name, Tenant: a.Tenant, Lane: a.Lane, At: a.At, MaxAttempts: a.MaxAttempts, FailPercent: a.FailPercent, Hard: a.Timeout,
			Class: models.Class{
				Type: cmp.Or(a.Type, "sim.task"), CPUMilli: milli(a.Needs.CPU), MemoryMB: a.Needs.MemoryMB, DiskMB: a.Needs.DiskMB, GPU: a.Needs.GPU,
				VRAMMB: a.Needs.VRAMMB, Tokens: a.Needs.Tokens > 0, Model: a.Needs.Model, Selector: a.Needs.Labels, Permissions: a.Needs.Permissions,
			},
			Tokens: a.Needs.Tokens, Deadline: a.Deadline.After, Slack: a.Deadline.Slack, Priority: defaultPriority, PriorityTo: defaultPriority,
		}
		if a.Priority.Given {
			out.Priority, out.PriorityTo = a.Priority.From, a.Priority.To
		}
		if a.At < 0 || a.FailPercent < 0 || a.FailPercent > 100 || a.Timeout < 0 || a.Deadline.After < 0 || a.Deadline.Slack < 0 || a.MaxAttempts < 0 || a.Needs.Tokens < 0 ||
			out.Priority < 0 || out.PriorityTo > 100 || out.PriorityTo < out.Priority {
			return wrong("nothing is negative, priorities are 0 to 100, fail_percent is at most 100")
		}
		for _, step := range []func(*arrival, *sim.Arrival, func(string, ...any) error) error{comes, takes, tells, keyed, shaped} {
			if err := step(a, &out, wrong); err != nil {
				return err
			}
		}
		if total += tasksOf(&out, s.Until.Seconds()); total > mostTasks {
			return wrong("with it about %.0f tasks come; a simulation takes at most %d", total, mostTasks)
		}
		s.Arrivals = append(s.Arrivals, out)
	}
	return nil
}

// comes reads when work comes: exactly one of poisson, burst, backlog and closed.
func comes(a *arrival, out *sim.Arrival, wrong func(string, ...any) error) error {
	ways := 0
	repeat := func(f *flow) error {
		ways++
		if f.Every <= 0 && f.Count != 1 || f.Count < 0 || f.Batch < 0 {
			return wrong("every is above 0, count and batch are not negative")
		}
		out.Every, out.Batch, out.Count = f.Every, f.Batch, f.Count
		if f.Count == 0 {
			out.Count = -1
		}
		return nil
	}
	if a.Poisson != nil {
		out.Poisson = true
		if err := repeat(a.Poisson); err != nil {
			return err
		}
	}
	if a.Burst != nil {
		if err := repeat(a.Burst); err != nil {
			return err
		}
	}
	if a.Backlog != 0 {
		ways++
		out.Batch = a.Backlog
		if a.Backlog < 0 {
			return wrong("a backlog is not negative")
		}
	}
	if c := a.Closed; c != nil {
		ways++
		if c.Clients < 1 || c.Clients > 100_000 || c.Think < 0 || c.Count < 0 || c.Batch < 0 || c.Batch > 1000 {
			return wrong("closed: 1 to 100000 clients, batches of at most 1000, nothing negative")
		}
		out.Closed, out.Every, out.Batch, out.Count = c.Clients, c.Think, c.Batch, c.Count*c.Clients
		if c.Count == 0 {
			out.Count = -1
		}
	}
	if len(a.Recorded) > 0 {
		ways++
		if err := recorded(a, out, wrong); err != nil {
			return err
		}
	}
	if ways != 1 {
		return wrong("work comes in exactly one way: poisson, burst, backlog, closed or recorded")
	}
	return nil
}

// recorded reads work that really came: when, and how long each task ran.
func recorded(a *arrival, out *sim.Arrival, wrong func(string, ...any) error) error {
	if a.Run != (run{}) || a.Chain != 0 || len(a.Graph) > 0 || a.Estimate.Word == "mean" {
		return wrong("recorded tasks have run times of their own, and are no workflows: run, chain, graph and an estimate of the mean do not go with them")
	}
	for _, pair := range a.Recorded {
		if !(pair[0] >= 0 && pair[0] <= mostSeconds && pair[1] >= 0 && pair[1] <= mostSeconds) {
			return wrong("a recorded task is [seconds after the beginning, seconds it ran], neither negative nor above %d", int(mostSeconds))
		}
		item := sim.Item{
			At: seconds(pair[0]), Run: max(seconds(pair[1]), time.Millisecond), Priority: out.Priority,
		}
		if out.Deadline > 0 || out.Slack > 0 {
			item.Deadline = out.Deadline + time.Duration(out.Slack*float64(item.Run))
		}
		out.Items = append(out.Items, item)
	}
	slices.SortStableFunc(out.Items, func(a, b sim.Item) int { return cmp.Compare(a.At, b.At) })
	return nil
}

// mostSeconds is as far as recorded work may go: a year.
const mostSeconds = 366 * 86400.0

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// takes reads how long work takes.
func takes(a *arrival, out *sim.Arrival, wrong func(string, ...any) error) error {
	out.Run, out.Shape, out.Spread = a.Run.Mean, sim.Shape(cmp.Or(a.Run.Shape, string(sim.Even))), a.Run.Spread
	switch out.Shape {
	case sim.Even:
		if !(out.Spread >= 0 && out.Spread <= 1) || a.Run.Sigma != 0 {
			return wrong("an even run time has a spread of 0 to 1 and no sigma")
		}
	case sim.Exponential:
		if out.Spread != 0 || a.Run.Sigma != 0 {
			return wrong("an exponential run time has a mean alone")
		}
	case sim.Lognormal:
		if out.Spread = a.Run.Sigma; !(out.Spread > 0 && out.Spread <= 3) {
			return wrong("a lognormal run time has a sigma above 0, at most 3")
		}
	default:
		return wrong("run times are even, exponential or lognormal, not %q", a.Run.Shape)
	}
	if out.Run <= 0 && len(a.Graph) == 0 && len(a.Recorded) == 0 {
		return wrong("the run time is above 0")
	}
	return nil
}

// tells reads what callers know.
func tells(a *arrival, out *sim.Arrival, wrong func(string, ...any) error) error {
	switch a.Estimate.Word {
	case "", "none":
	case "mean":
		out.Estimated = true
	case "exact":
		out.Exact = true
	default:
		return wrong("an estimate is none, mean, exact, or a sigma, not %q", a.Estimate.Word)
	}
	if out.Wrong = a.Estimate.Sigma; !(out.Wrong >= 0 && out.Wrong <= 3) {
		return wrong("the sigma of an estimate is 0 to 3")
	}
	return nil
}

// shaped reads chains and graphs. Of a graph each task names earlier ones.
func shaped(a *arrival, out *sim.Arrival, wrong func(string, ...any) error) error {
	switch {
	case a.Chain != 0 && len(a.Graph) > 0:
		return wrong("a workflow is a chain or a graph")
	case a.Chain < 0 || a.Chain > 10_000 || len(a.Graph) > 10_000:
		return wrong("a workflow has at most 10000 tasks")
	}
	for range a.Chain {
		n := sim.Node{Run: out.Run}
		if k := len(out.Graph); k > 0 {
			n.After = []int{k - 1}
		}
		out.Graph = append(out.Graph, n)
	}
	known := map[string]int{}
	for i, n := range a.Graph {
		node := sim.Node{Run: cmp.Or(n.Run, out.Run)}
		for _, name := range n.After {
			before, ok := known[name]
			if !ok {
				return wrong("task %q of the graph waits for %q, which does not stand before it", n.Name, name)
			}
			node.After = append(node.After, before)
		}
		if _, double := known[n.Name]; double || n.Name == "" || node.Run <= 0 {
			return wrong("every task of a graph has a name of its own and a run time")
		}
		known[n.Name] = i
		out.Graph = append(out.Graph, node)
	}
	return nil
}

// tasksOf is about how many tasks come.
func tasksOf(a *sim.Arrival, seconds float64) float64 {
	batches := float64(max(1, a.Count))
	switch {
	case len(a.Items) > 0:
		return float64(len(a.Items))
	case a.Count < 0 && a.Closed > 0:
		batches = float64(a.Closed) * seconds / max(0.001, a.Run.Seconds()+a.Every.Seconds())
	case a.Count < 0:
		batches = seconds / max(1e-9, a.Every.Seconds())
	case a.Every > 0 && a.Closed == 0:
		batches = math.Min(batches, seconds/a.Every.Seconds()+1)
	}
	return batches * float64(max(1, a.Batch)) * float64(max(1, len(a.Graph)))
}
