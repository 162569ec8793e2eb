package sim

import (
	"container/heap"

	"nightshift/models"
)

// ranks see whether a task starts while a better one of its line stands ready, and stood ready before the batch.
type ranks struct {
	lines      map[models.LineID]*standing
	starts     map[models.LineID]models.Mark // the worst that started in this batch, by line
	inversions int64
}

// standing is the ready tasks of a line, the best first; those that have left are dropped when they come to the top.
type standing []*stand

type stand struct {
	mark  models.Mark
	batch int64 // in which it came
	gone  bool
}

func newRanks() ranks {
	return ranks{lines: map[models.LineID]*standing{}, starts: map[models.LineID]models.Mark{}}
}

func lineOf(row *models.Task) models.LineID {
	return models.LineID{Lane: row.Lane, Env: row.Env, Class: row.Class}
}

func (r *ranks) enter(row *models.Task, batch int64) *stand {
	line := r.lines[lineOf(row)]
	if line == nil {
		line = &standing{}
		r.lines[lineOf(row)] = line
	}
	s := &stand{mark: models.Mark{AgeKey: row.AgeKey, ID: row.ID}, batch: batch}
	heap.Push(line, s)
	return s
}

// start notes that a task has started.
func (r *ranks) start(row *models.Task) {
	id, mark := lineOf(row), models.Mark{AgeKey: row.AgeKey, ID: row.ID}
	if worst, seen := r.starts[id]; !seen || worst.Less(mark) {
		r.starts[id] = mark
	}
}

// judge counts the lines in which a better task was passed over in this batch.
func (r *ranks) judge(batch int64) {
	for id, worst := range r.starts { // any order: a sum
		line := r.lines[id]
		for line != nil && len(*line) > 0 && (*line)[0].gone {
			heap.Pop(line)
		}
		if line != nil && len(*line) > 0 && (*line)[0].batch < batch && (*line)[0].mark.Less(worst) {
			r.inversions++
		}
	}
	clear(r.starts)
}

var _ heap.Interface = (*standing)(nil)

func (s standing) Len() int           { return len(s) }
func (s standing) Less(i, j int) bool { return s[i].mark.Less(s[j].mark) }
func (s standing) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *standing) Push(x any)        { *s = append(*s, x.(*stand)) }
func (s *standing) Pop() any {
	old := *s
	last := old[len(old)-1]
	*s = old[:len(old)-1]
	return last
}
