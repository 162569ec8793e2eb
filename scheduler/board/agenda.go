package board

import (
	"container/heap"
	"slices"

	"nightshift/models"
)

// Agenda says who is due when: one moment each. What is asked of it costs by what is due, not by how many there are.
type Agenda struct {
	heap  []appointment
	place map[models.ID]int
}

type appointment struct {
	at models.Instant
	id models.ID
}

func (a appointment) before(o appointment) bool {
	return a.at < o.at || a.at == o.at && a.id.Compare(o.id) < 0
}

func (a *Agenda) Len() int           { return len(a.heap) }
func (a *Agenda) Less(i, j int) bool { return a.heap[i].before(a.heap[j]) }
func (a *Agenda) Swap(i, j int) {
	a.heap[i], a.heap[j] = a.heap[j], a.heap[i]
	a.place[a.heap[i].id], a.place[a.heap[j].id] = i, j
}

// Push and Pop are the heap's own.
func (a *Agenda) Push(x any) {
	entry := x.(appointment)
	a.place[entry.id] = len(a.heap)
	a.heap = append(a.heap, entry)
}

// Pop takes the last entry off.
func (a *Agenda) Pop() any {
	last := a.heap[len(a.heap)-1]
	a.heap = a.heap[:len(a.heap)-1]
	delete(a.place, last.id)
	return last
}

// Set gives somebody a moment in place of the one before; 0 or Forever: none.
func (a *Agenda) Set(id models.ID, at models.Instant) {
	if a.place == nil {
		a.place = map[models.ID]int{}
	}
	i, known := a.place[id]
	switch {
	case at == 0 || at == models.Forever:
		if known {
			heap.Remove(a, i)
		}
	case known:
		a.heap[i].at = at
		heap.Fix(a, i)
	default:
		heap.Push(a, appointment{at, id})
	}
}

// Next is the first moment, Forever when there is none.
func (a *Agenda) Next() models.Instant {
	if len(a.heap) == 0 {
		return models.Forever
	}
	return a.heap[0].at
}

// At is somebody's moment, 0 when there is none.
func (a *Agenda) At(id models.ID) models.Instant {
	if i, known := a.place[id]; known {
		return a.heap[i].at
	}
	return 0
}

// Due are the first of those that are due, at most so many, in order of their moments. They stay.
func (a *Agenda) Due(now models.Instant, most int) (ids []models.ID) {
	if a.Next() > now {
		return nil
	}
	edge := []int{0} // places in the heap whose parents were taken, latest first
	for len(edge) > 0 && len(ids) < most {
		i := edge[len(edge)-1]
		edge = edge[:len(edge)-1]
		ids = append(ids, a.heap[i].id)
		for child := 2*i + 1; child <= 2*i+2 && child < len(a.heap); child++ {
			if a.heap[child].at > now {
				continue
			}
			at, _ := slices.BinarySearchFunc(edge, child, func(have, want int) int {
				if a.heap[want].before(a.heap[have]) {
					return -1
				}
				return 1
			})
			edge = slices.Insert(edge, at, child)
		}
	}
	return ids
}
