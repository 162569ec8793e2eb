package rival

import (
	"cmp"
	"container/heap"
	"time"
)

// Task is one piece of work.
type Task struct {
	At       time.Duration
	Run      time.Duration
	Deadline time.Duration // a moment; 0: none
	Needs    int           // of one machine's room; 0: one
	Tenant   int
	After    []int
}

// Ran is when a task began and ended.
type Ran struct{ Start, End time.Duration }

// Order says which of two ready tasks goes first.
type Order func(tasks []Task, a, b int) int

// First lets whoever came first go first.
func First(tasks []Task, a, b int) int {
	return cmp.Or(cmp.Compare(tasks[a].At, tasks[b].At), cmp.Compare(a, b))
}

// Earliest lets the earliest deadline go first; tasks without one come last, as they came.
func Earliest(tasks []Task, a, b int) int {
	da, db := tasks[a].Deadline, tasks[b].Deadline
	if (da == 0) != (db == 0) {
		return cmp.Compare(db, da)
	}
	return cmp.Or(cmp.Compare(da, db), First(tasks, a, b))
}

// Longest lets the task with the longest path behind it go first.
func Longest(tasks []Task) Order {
	path := paths(tasks)
	return func(tasks []Task, a, b int) int { return cmp.Or(cmp.Compare(path[b], path[a]), First(tasks, a, b)) }
}

// paths are the run times from the beginning of a task to the end of the last that waits for it. After names earlier ones.
func paths(tasks []Task) []time.Duration {
	path := make([]time.Duration, len(tasks))
	for i := len(tasks) - 1; i >= 0; i-- {
		path[i] += tasks[i].Run
		for _, before := range tasks[i].After {
			path[before] = max(path[before], path[i])
		}
	}
	return path
}

// Bound is what no schedule of the tasks on so many machines can be shorter than: the longest path, or the work evenly
// spread.
func Bound(tasks []Task, machines int) time.Duration {
	work, longest := time.Duration(0), time.Duration(0)
	for i, path := range paths(tasks) {
		work += tasks[i].Run
		longest = max(longest, path)
	}
	return max(longest, work/time.Duration(machines))
}

// list is a schedule in the making.
type list struct {
	tasks []Task
	order Order
	ready []int // a heap by order
	free  []int // room of each machine
	live  ends
	waits []int
	next  [][]int
	ran   []Ran
}

// List runs tasks without ever stopping one: whenever there is room, the ready ones in order, those that do not fit being
// passed over. Machines are given by the room each has; the fullest that fits is taken.
func List(machines []int, tasks []Task, order Order) []Ran {
	l := &list{tasks: tasks, order: order, free: append([]int(nil), machines...), ran: make([]Ran, len(tasks))}
	l.waits, l.next = make([]int, len(tasks)), make([][]int, len(tasks))
	for i := range tasks {
		l.waits[i] = len(tasks[i].After)
		for _, before := range tasks[i].After {
			l.next[before] = append(l.next[before], i)
		}
	}
	at, come := time.Duration(0), moments(tasks)
	for len(come) > 0 || len(l.live) > 0 {
		switch {
		case len(come) == 0 || len(l.live) > 0 && l.live[0].at <= tasks[come[0]].At:
			at = l.live[0].at
		default:
			at = tasks[come[0]].At
		}
		for len(l.live) > 0 && l.live[0].at == at {
			l.end(heap.Pop(&l.live).(end))
		}
		for ; len(come) > 0 && tasks[come[0]].At <= at; come = come[1:] {
			if l.waits[come[0]]--; l.waits[come[0]] < 0 {
				heap.Push(l, come[0])
			}
		}
		l.start(at)
	}
	return l.ran
}

func (l *list) end(e end) {
	l.free[e.machine] += l.need(e.task)
	for _, n := range l.next[e.task] {
		if l.waits[n]--; l.waits[n] < 0 {
			heap.Push(l, n)
		}
	}
}

func (l *list) need(task int) int { return max(1, l.tasks[task].Needs) }

func (l *list) start(at time.Duration) {
	var passed []int
	for len(l.ready) > 0 && l.room() > 0 {
		task := heap.Pop(l).(int)
		machine := l.fullest(l.need(task))
		if machine < 0 {
			passed = append(passed, task)
			continue
		}
		l.free[machine] -= l.need(task)
		l.ran[task] = Ran{Start: at, End: at + l.tasks[task].Run}
		heap.Push(&l.live, end{l.ran[task].End, task, machine})
	}
	for _, task := range passed {
		heap.Push(l, task)
	}
}

func (l *list) room() (most int) {
	for _, n := range l.free {
		most = max(most, n)
	}
	return most
}

func (l *list) fullest(need int) int {
	best := -1
	for i, n := range l.free {
		if n >= need && (best < 0 || n < l.free[best]) {
			best = i
		}
	}
	return best
}

var _ heap.Interface = (*list)(nil)

func (l *list) Len() int           { return len(l.ready) }
func (l *list) Less(i, j int) bool { return l.order(l.tasks, l.ready[i], l.ready[j]) < 0 }
func (l *list) Swap(i, j int)      { l.ready[i], l.ready[j] = l.ready[j], l.ready[i] }
func (l *list) Push(x any)         { l.ready = append(l.ready, x.(int)) }
func (l *list) Pop() any {
	last := l.ready[len(l.ready)-1]
	l.ready = l.ready[:len(l.ready)-1]
	return last
}

// end is when a running task frees its machine.
type end struct {
	at            time.Duration
	task, machine int
}

type ends []end

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].task < e[j].task
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}
