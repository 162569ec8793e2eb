package board

import (
	"nightshift/models"
)

// Stranded says that the tasks of a line are to get other models.
func (b *Board) Stranded(id models.LineID) bool { return b.models.stranded[id] }

// StrandedHeads are tasks of such lines that are at hand, at most most of them, a few of each line.
func (b *Board) StrandedHeads(most int) (out []*Entry) {
	for _, id := range sortedLines(b.models.stranded) {
		l := b.lines[id]
		if l == nil {
			continue
		}
		for n := 0; len(out) < most && l.At(n) != nil; n++ {
			out = append(out, l.At(n))
		}
	}
	return out
}

// Strays says that a task of such a line is at hand.
func (b *Board) Strays() bool {
	for id := range b.models.stranded { // any order: whether there is one
		if l := b.lines[id]; l != nil && l.Head() != nil {
			return true
		}
	}
	return false
}

// parkModel counts tasks for which no model fits.
func (b *Board) parkModel(line models.LineID, n int64) {
	if b.models.parked[line] += n; b.models.parked[line] <= 0 {
		delete(b.models.parked, line)
		delete(b.models.looks, line)
	}
}

// LookAgain has the tasks of a line looked at for which no model fitted.
func (b *Board) LookAgain(line models.LineID) {
	if b.models.parked[line] > 0 {
		b.models.looks[line] = models.Mark{}
	}
}

// ModelAsks asks for the next tasks that wait for a model and are to be looked at once more, at most most rows of them.
func (b *Board) ModelAsks(most int) (asks []models.LineAsk) {
	if len(b.models.looks) == 0 {
		return nil
	}
	for _, line := range sortedLines(b.models.looks) {
		if most <= 0 {
			break
		}
		n := int(min(int64(most), b.models.parked[line]))
		asks = append(asks, models.LineAsk{Line: line, Gate: models.ModelGate, After: b.models.looks[line], Limit: n})
		most -= n
	}
	return asks
}

// ModelsRead takes note of how far an ask of ModelAsks has come.
func (b *Board) ModelsRead(ask *models.LineAsk, rows []models.Task) {
	if len(rows) < ask.Limit || len(rows) == 0 {
		delete(b.models.looks, ask.Line)
		return
	}
	last := &rows[len(rows)-1]
	b.models.looks[ask.Line] = models.Mark{AgeKey: last.AgeKey, ID: last.ID}
}
