package figures

import "testing"

func TestBudgetFigures(t *testing.T) {
	for _, f := range budgets(&lab{}) {
		t.Logf("%s: "+f.Format+" (%s)", f.Name, f.Value, f.Note)
		if f.Verdict() != "reached" {
			t.Errorf("%s: "+f.Format+", the goal is "+f.Format, f.Name, f.Value, f.Goal)
		}
	}
}
