package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"nightshift/scheduler/engine"
)

// source draws the tasks of an arrival from a stream of its own: whatever the engine does, the same tasks come.
type source struct {
	*Arrival
	t    *tenant
	flow *flow
	rng  *rand.Rand
	made int
	left int // batches still to send; below 0: no end
}

// expect puts an arrival on the agenda.
func (w *World) expect(n int, a *Arrival) {
	t := w.tenants[a.Tenant]
	t.arrives = true
	name := a.Name
	if name == "" {
		name = a.Tenant
	}
	s := &source{
		Arrival: a, t: t, flow: &flow{Flow: Flow{Name: name, Tenant: a.Tenant}},
		rng: rand.New(rand.NewPCG(w.scenario.Seed, 0x61727269+uint64(n))), left: a.Count,
	}
	if s.left == 0 {
		s.left = 1
	}
	w.flows = append(w.flows, s.flow)
	switch {
	case len(a.Items) > 0:
		w.expectItems(s)
	case a.Closed > 0:
		for range a.Closed {
			w.coming++
			w.after(a.At, func() { w.client(s) })
		}
	default:
		w.coming++
		at := a.At
		if a.Poisson {
			at += s.gap()
		}
		w.after(at, func() { w.come(s, at) })
	}
}

// gap is how long it takes to the next batch.
func (s *source) gap() time.Duration {
	if s.Poisson {
		return time.Duration(s.rng.ExpFloat64() * float64(s.Every))
	}
	return s.Every
}

// come sends a batch and waits for the next.
func (w *World) come(s *source, at time.Duration) {
	most := mostCommands
	if len(s.Graph) > 0 {
		most = 1
	}
	for left := max(1, s.Batch); left > 0; left -= most {
		w.submit(s, min(left, most))
	}
	if s.left--; s.left == 0 {
		w.coming--
		return
	}
	next := at + s.gap()
	if next <= at { // nothing comes without an end in no time
		next = at + time.Millisecond
	}
	w.after(next-w.now.Sub(dawn), func() { w.come(s, next) })
}

// client sends a batch, and its next one a while after the last task of it has ended.
func (w *World) client(s *source) {
	if s.left == 0 {
		w.coming--
		return
	}
	s.left--
	made := w.submit(s, max(1, s.Batch))
	open := len(made)
	for _, j := range made {
		j.then = func() {
			if open--; open == 0 {
				w.after(s.gap(), func() { w.client(s) })
			}
		}
	}
}

// draw makes the next task of the source.
func (s *source) draw(mean time.Duration) Item {
	item := Item{Run: s.run(mean), Priority: s.Priority}
	if s.PriorityTo > s.Priority {
		item.Priority += int16(s.rng.IntN(int(s.PriorityTo-s.Priority) + 1))
	}
	if s.Estimated {
		item.Estimate = mean
	}
	if s.Deadline > 0 || s.Slack > 0 {
		item.Deadline = s.Deadline + time.Duration(s.Slack*float64(item.Run))
	}
	s.tell(&item)
	return item
}

// tell says what the caller believes of a task's run time.
func (s *source) tell(item *Item) {
	switch {
	case s.Wrong > 0:
		item.Estimate = time.Duration(float64(item.Run) * math.Exp(s.Wrong*s.rng.NormFloat64()))
	case s.Exact:
		item.Estimate = item.Run
	default:
		return
	}
	item.Estimate = max(item.Estimate, time.Millisecond)
}

func (s *source) run(mean time.Duration) time.Duration {
	factor := 1.0
	switch {
	case s.Shape == Exponential:
		factor = s.rng.ExpFloat64()
	case s.Shape == Lognormal:
		factor = math.Exp(s.Spread*s.rng.NormFloat64() - s.Spread*s.Spread/2)
	case s.Spread > 0:
		factor = 1 + s.Spread*(2*s.rng.Float64()-1)
	}
	return max(time.Duration(float64(mean)*factor), time.Millisecond)
}

// expectItems puts tasks that were seen elsewhere on the agenda: those of a moment come in one body, a workflow's too.
func (w *World) expectItems(s *source) {
	for from := 0; from < len(s.Items); {
		to := from + 1
		for to < len(s.Items) && s.Items[to].At == s.Items[from].At && s.Items[to].Group == s.Items[from].Group && (s.Items[from].Group != 0 || to-from < mostCommands) {
			to++
		}
		first, last := from, to
		w.coming++
		w.after(s.At+s.Items[from].At, func() {
			w.coming--
			w.sendItems(s, first, last)
		})
		from = to
	}
}

func (w *World) sendItems(s *source, from, to int) {
	items := s.Items[from:to]
	body, made := w.body(s, len(items), items[0].Group != 0), make([]*job, len(items))
	for i := range items {
		item := items[i]
		s.tell(&item)
		made[i] = w.job(s, item)
	}
	w.fill(s, body, made, func(i int) (after []int) {
		for _, n := range items[i].After {
			after = append(after, n-from)
		}
		return after
	})
}

// fill writes the tasks of a body and sends it. As at the edge, each task of a workflow carries the told run times of the
// longest path from it to the end.
func (w *World) fill(s *source, body *engine.Submit, made []*job, after func(int) []int) {
	if body.Workflow != nil {
		for i := len(made) - 1; i >= 0; i-- {
			j := made[i]
			j.ahead += time.Duration(j.row.EstimateMS) * time.Millisecond
			for _, n := range after(i) {
				made[n].ahead = max(made[n].ahead, j.ahead)
			}
		}
	}
	for i := range made {
		body.Tasks[i] = w.task(s, made, i, after(i), body.Tasks)
	}
	w.open += len(made)
	w.send(body, made)
}

// submit sends n tasks of an arrival in one body, or one graph of them.
func (w *World) submit(s *source, n int) []*job {
	if len(s.Graph) > 0 {
		n = len(s.Graph)
	}
	body, made := w.body(s, n, s.Chain || len(s.Graph) > 0), make([]*job, n)
	for i := range n {
		mean := s.Run
		if len(s.Graph) > 0 {
			mean = s.Graph[i].Run
		}
		made[i] = w.job(s, s.draw(mean))
	}
	w.fill(s, body, made, func(i int) []int {
		switch {
		case len(s.Graph) > 0:
			return s.Graph[i].After
		case s.Chain && i > 0:
			return []int{i - 1}
		}
		return nil
	})
	return made
}

func (w *World) body(s *source, n int, flow bool) *engine.Submit {
	body := &engine.Submit{Env: s.t.env, InBatch: true, Tasks: make([]engine.NewTask, n)}
	if flow {
		body.Workflow = &engine.NewWorkflow{ID: w.id(), Name: "flow", Input: []byte(`{}`)}
	}
	return body
}
