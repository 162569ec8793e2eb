package engine

import (
	"cmp"
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
)

// mostHeads bounds what is explained of a lane at once.
const mostHeads = 20

// Head is the first task of a line with why it did not start, and how many are ready behind it and with it.
type Head struct {
	Task  models.TaskRef `json:"task"`
	Type  string         `json:"type"`
	Ready int64          `json:"ready"`
	Why   Explained      `json:"why"`
}

// heads says why the first task of each line of a lane does not run, those that have waited longest by rank first. The
// answer is empty where nothing stands in the lane's lines: what is behind gates of its own is counted as parked.
func (e *Engine) heads(number int32) ([]Head, error) {
	out := []Head{}
	for _, line := range e.firstLines(number) {
		row := &line.Head().Row
		ref := models.TaskRef{Env: row.Env, ID: row.ID}
		why, err := e.explain(ref)
		if err != nil {
			return nil, err
		}
		head := Head{Task: ref, Ready: line.Ready, Why: *why}
		if class := e.board.Classes[row.Class]; class != nil {
			head.Type = class.Type
		}
		out = append(out, head)
	}
	return out, nil
}

// firstLines are the lines of a lane with a task at hand, in the order of their heads, twenty at most.
func (e *Engine) firstLines(number int32) []*board.Line {
	lines := slices.DeleteFunc(e.board.LinesOf(number), func(l *board.Line) bool { return l.Head() == nil })
	slices.SortFunc(lines, func(a, b *board.Line) int {
		x, y := &a.Head().Row, &b.Head().Row
		return cmp.Or(cmp.Compare(x.AgeKey, y.AgeKey), x.ID.Compare(y.ID))
	})
	return lines[:min(len(lines), mostHeads)]
}
