package postgres

import (
	"context"
	"math"

	"nightshift/models"
)

// Refill reads rows for the board between two batches: many lines in one statement.
func (w *Writer) Refill(ctx context.Context, ask *models.RefillAsk) (*models.Refill, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, err := w.connected(ctx, w.epoch)
	if err != nil {
		return nil, err
	}
	out := &models.Refill{Lines: make([][]models.Task, len(ask.Lines))}
	var calls []call
	for _, order := range lineOrders {
		if c, any := linesOf(l, ask.Lines, order, out.Lines); any {
			calls = append(calls, c)
		}
	}
	if t := ask.Timers; t != nil {
		calls = append(calls, call{
			name: "refill_timers", read: func(c *columns) { out.Timers = append(out.Timers, c.task()) },
			params: [][]byte{int8Param(int64(t.After)), int8Param(int64(t.Until)), int8Param(int64(t.Limit))},
		})
	}
	if len(calls) == 0 {
		return out, nil
	}
	return out, w.soon(ctx, calls...)
}

// lineOrders are the statements that read lines, by their names.
var lineOrders = [...]string{"refill_lines", "refill_starts", "refill_parked", "refill_ordered"}

func orderOf(a *models.LineAsk) string {
	switch {
	case a.ByOrder:
		return "refill_ordered"
	case a.Gate != "":
		return "refill_parked"
	case a.ByStart:
		return "refill_starts"
	}
	return "refill_lines"
}

// linesOf asks for all lines that are read in one order at once.
func linesOf(l *link, asks []models.LineAsk, order string, found [][]models.Task) (call, bool) {
	var ask rows
	var index []int // of the asks that go into this statement
	ask.begin(l.types["line_wire"])
	for i := range asks {
		if orderOf(&asks[i]) == order {
			index = append(index, i)
			ask.line(&asks[i])
		}
	}
	return call{name: order, params: [][]byte{ask.param()}, read: func(c *columns) {
		i := index[c.int8()-1]
		found[i] = append(found[i], c.task())
	}}, len(index) > 0
}

func (r *rows) line(a *models.LineAsk) {
	after := a.After
	if after == (models.Mark{}) {
		after.AgeKey = math.MinInt64 // from the head, wherever that is
	}
	r.next(7)
	r.int4(a.Line.Lane)
	r.int4(a.Line.Env)
	r.int4(a.Line.Class)
	r.text(a.Gate)
	r.int8(after.AgeKey)
	r.mustID(after.ID)
	r.int4(int32(a.Limit))
}
