package rival

import (
	"testing"
	"time"
)

const s = time.Second

func TestAListIsFilledInOrder(t *testing.T) {
	tasks := []Task{{Run: 4 * s}, {Run: 2 * s, Deadline: 9 * s}, {Run: s, Deadline: 3 * s}, {At: s, Run: s}}
	first := List([]int{1}, tasks, First)
	for i, want := range []time.Duration{0, 4 * s, 6 * s, 7 * s} {
		if first[i].Start != want {
			t.Errorf("first come: task %d began at %s, want %s", i, first[i].Start, want)
		}
	}
	earliest := List([]int{1}, tasks, Earliest)
	for i, want := range []time.Duration{3 * s, s, 0, 7 * s} {
		if earliest[i].Start != want {
			t.Errorf("earliest deadline: task %d began at %s, want %s", i, earliest[i].Start, want)
		}
	}
}

func TestTheLongestPathGoesFirst(t *testing.T) {
	// 0 and 1 are free; 2 and 3 wait for 1, 4 for both.
	tasks := []Task{{Run: 3 * s}, {Run: s}, {Run: 4 * s, After: []int{1}}, {Run: s, After: []int{1}}, {Run: s, After: []int{2, 3}}}
	ran := List([]int{1, 1}, tasks, Longest(tasks))
	if ran[1].Start != 0 || ran[2].Start != s || ran[4].End != 6*s || Bound(tasks, 2) != 6*s || Bound(tasks, 1) != 10*s {
		t.Errorf("%v, bound %s", ran, Bound(tasks, 2))
	}
}

func TestWhatDoesNotFitIsPassedOver(t *testing.T) {
	tasks := []Task{{Run: 2 * s}, {Run: s, Needs: 2}, {Run: 3 * s}}
	ran := List([]int{2}, tasks, First)
	if ran[1].Start != 3*s || ran[2].Start != 0 {
		t.Errorf("%v", ran)
	}
}

func TestAFluidIsSharedByWeight(t *testing.T) {
	tasks := []Task{{Run: 3 * s}, {Run: 3 * s}, {Tenant: 1, Run: 2 * s}}
	ran := Fluid(1, []float64{3, 1}, tasks)
	// Three quarters for the first tenant: its tasks end after 4 and 8 s; the other's two seconds end after 8 s too.
	if ran[0].End != 4*s || ran[1].Start != 4*s || ran[1].End != 8*s || ran[2].Start != 0 || ran[2].End != 8*s {
		t.Errorf("%v", ran)
	}
	// What one cannot use the other gets: of four slots tenant 1 can use one only.
	wide := Fluid(4, []float64{1, 1}, []Task{{Run: s}, {Run: s}, {Run: s}, {Run: s}, {Tenant: 1, Run: s}, {Run: s}})
	if wide[2].Start != 0 || wide[2].End != s || wide[3].Start != s || wide[4].End != s {
		t.Errorf("%v", wide)
	}
}
