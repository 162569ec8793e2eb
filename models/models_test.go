package models

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func drawID(t *rapid.T, name string) ID {
	return ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name))
}

func TestIDsReadBackAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := drawID(t, "id")
		if id.IsZero() {
			return
		}
		got, err := ParseID(TaskPrefix, id.Text(TaskPrefix))
		if err != nil || got != id {
			t.Fatalf("%x came back as %x, %v", id, got, err)
		}
		if _, err := ParseID(WorkflowPrefix, id.Text(TaskPrefix)); CodeOf(err) != NotFound {
			t.Fatalf("a task's id was taken for a workflow's: %v", err)
		}
	})
}

func TestTheZeroIDIsNobodys(t *testing.T) {
	_, err := ParseID(TaskPrefix, "task_00000000000000000000000000")
	if CodeOf(err) != NotFound || !strings.Contains(err.Error(), "task_00000000000000000000000000") {
		t.Fatalf("%v", err)
	}
}

func TestIDsSortByWhenTheyWereMade(t *testing.T) {
	a, b := NewID(1_700_000_000_000_000, [10]byte{255}), NewID(1_700_000_000_001_000, [10]byte{})
	if a.Compare(b) >= 0 || a.Text("task") >= b.Text("task") {
		t.Fatalf("%s is not before %s", a.Text("task"), b.Text("task"))
	}
	if a.At() != 1_700_000_000_000_000 {
		t.Fatalf("made at %d", a.At())
	}
}

func TestWireTokensReadBackAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref := TaskRef{Env: rapid.Int32Min(0).Draw(t, "env"), ID: drawID(t, "task")}
		token := drawID(t, "token")
		gotRef, gotToken, ok := ParseWireToken(WireToken(ref, token))
		if !ok || gotRef != ref || gotToken != token {
			t.Fatalf("%v %x came back as %v %x %v", ref, token, gotRef, gotToken, ok)
		}
	})
	for _, bad := range []string{"", "lt_", "lt_" + string(make([]byte, 58)), "task_0123"} {
		if _, _, ok := ParseWireToken(bad); ok {
			t.Errorf("%q was taken for a token", bad)
		}
	}
}

func TestLawNeverLeavesAFinalState(t *testing.T) {
	for _, row := range Law {
		for _, from := range row.From {
			if from.Final() {
				t.Errorf("%s leaves the final state %s", row.On, from)
			}
			if from.Live() && !row.Fenced {
				t.Errorf("%s changes a live task (%s) without its lease's token", row.On, from)
			}
			if !from.Live() && row.Fenced {
				t.Errorf("%s asks for a token in %s, where there is none", row.On, from)
			}
		}
	}
}

func TestEveryStateCanEnd(t *testing.T) {
	ends := map[State]bool{}
	for s := Succeeded; s < states; s++ {
		ends[s] = true
	}
	for range Law {
		for _, row := range Law {
			for _, from := range row.From {
				ends[from] = ends[from] || ends[row.To]
			}
		}
	}
	for s := Staged; s < states; s++ {
		if !ends[s] {
			t.Errorf("no way leads from %s to an end", s)
		}
	}
}

func TestEdgesFireAtMostByTheirRule(t *testing.T) {
	want := map[State][3]EdgeState{ // succeeded, failed, finished
		Running:    {EdgeOpen, EdgeOpen, EdgeOpen},
		Succeeded:  {EdgeFired, EdgeKilled, EdgeFired},
		Failed:     {EdgeKilled, EdgeFired, EdgeFired},
		DeadLetter: {EdgeOpen, EdgeFired, EdgeFired},
		Cancelled:  {EdgeKilled, EdgeKilled, EdgeFired},
		Expired:    {EdgeKilled, EdgeKilled, EdgeFired},
		Skipped:    {EdgeKilled, EdgeKilled, EdgeFired},
	}
	for state, row := range want {
		for on, edge := range row {
			if got := On(on).After(state); got != edge {
				t.Errorf("on %s after %s: %d, want %d", On(on), state, got, edge)
			}
		}
	}
}

func TestAmountsTurnNoSumRound(t *testing.T) {
	most := Amount{Micro: MostAmount, Tokens: MostAmount}
	if got := most.Plus(most).Plus(most); got != most {
		t.Errorf("the sum is %+v", got)
	}
	if got := (Amount{}).Minus(most).Minus(most).Plus(most); got != (Amount{}) {
		t.Errorf("the rest is %+v", got)
	}
}
