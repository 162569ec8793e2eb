package board

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"nightshift/models"
)

// rows is the truth a board is held against: what a store would answer.
type rows []models.Task

func (r rows) sorted(by func(*models.Task) models.Mark) rows {
	out := slices.Clone(r)
	slices.SortFunc(out, func(a, b models.Task) int {
		switch x, y := by(&a), by(&b); {
		case x.Less(y):
			return -1
		case y.Less(x):
			return 1
		}
		return 0
	})
	return out
}

func (r rows) refill(ask models.LineAsk) (out []models.Task) {
	by := byRank
	if ask.ByStart {
		by = byStart
	}
	sorted := r.sorted(by)
	for i := range sorted {
		t := &sorted[i]
		if len(out) < ask.Limit && ask.After.Less(by(t)) && (!ask.ByStart || t.LatestStart > 0) {
			out = append(out, *t)
		}
	}
	return out
}

func (r rows) snapshot(heads int) *models.Snapshot {
	s := worldOf()
	if len(r) == 0 {
		return s
	}
	line := models.LineCount{Line: LineOf(&r[0]), Ready: int64(len(r)), Heads: r.sorted(byRank)[:min(heads, len(r))]}
	var timed rows
	for _, t := range r {
		if t.LatestStart > 0 {
			timed = append(timed, t)
		}
	}
	line.Timed, line.Starts = int64(len(timed)), timed.sorted(byStart)[:min(heads, len(timed))]
	s.Lines = append(s.Lines, line)
	return s
}

func worldOf() *models.Snapshot {
	return &models.Snapshot{
		Tenants: []models.Tenant{{Number: 1, Weight: 1}}, Environments: []models.Environment{{Env: 1, Tenant: 1}},
		Lanes: []models.Lane{{Number: 1, Env: 1, Name: "batch", Kind: models.Batch}}, Classes: []models.Class{{Number: 1, Type: "x"}},
	}
}

// Whatever comes and goes, the head of a line is its best task, the urgent one its most urgent, and the board equals one
// built anew.
func TestALinesHeadIsAlwaysItsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{Heads: rapid.IntRange(1, 4).Draw(t, "heads"), MostHeads: rapid.IntRange(4, 16).Draw(t, "most heads"), MostEntries: rapid.IntRange(4, 40).Draw(t, "entries")}
		b, truth, serial := Build(limits, worldOf()), rows{}, byte(0)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 4).Draw(t, "op"); {
			case op < 2 || len(truth) == 0:
				serial++
				task := models.Task{Env: 1, ID: models.ID{serial}, State: models.Ready, Lane: 1, Class: 1, AgeKey: rapid.Int64Range(-50, 50).Draw(t, "age")}
				if rapid.Bool().Draw(t, "timed") {
					task.LatestStart = models.Instant(rapid.IntRange(1, 50).Draw(t, "start"))
				}
				truth = append(truth, task)
				b.Stand(&task)
			case op == 2:
				i := rapid.IntRange(0, len(truth)-1).Draw(t, "which")
				b.StepOut(&truth[i])
				truth = slices.Delete(truth, i, i+1)
			default:
				if head := b.Line(LineOf(&truth[0])).Head(); head != nil {
					row := head.Row
					b.StepOut(&row)
					truth = slices.DeleteFunc(truth, func(o models.Task) bool { return o.ID == row.ID })
				}
			}
			for {
				asks := b.LineAsks(100)
				if len(asks) == 0 {
					break
				}
				for _, ask := range asks {
					b.Refilled(ask, truth.refill(ask))
				}
			}
			checkHeads(t, b, truth)
			if err := b.Check(truth.snapshot(limits.Heads)); err != nil {
				t.Fatal(err)
			}
			if most := max(limits.MostEntries, 1) + 2*limits.MostHeads; b.Entries() > most {
				t.Fatalf("%d entries, bound %d", b.Entries(), most)
			}
		}
	})
}

func checkHeads(t *rapid.T, b *Board, truth rows) {
	if len(truth) == 0 {
		return
	}
	line := b.Line(LineOf(&truth[0]))
	if head, best := line.Head(), truth.sorted(byRank)[0]; head == nil || head.Row.ID != best.ID {
		t.Fatalf("the head is %v, the best %x", head, best.ID)
	}
	for _, task := range truth.sorted(byStart) {
		if task.LatestStart > 0 {
			if due := line.Urgent(); due == nil || due.Row.ID != task.ID {
				t.Fatalf("the urgent one is %v, must be %x", due, task.ID)
			}
			break
		}
	}
}
