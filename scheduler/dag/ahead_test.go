package dag

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAheadIsTheRestOfTheCriticalPath(t *testing.T) {
	//   0 ─ 1 ─ 3
	//    └─ 2 ─┘
	got := Ahead([]int64{1, 2, 5, 1}, []Edge{{0, 1}, {0, 2}, {1, 3}, {2, 3}})
	if !slices.Equal(got, []int64{7, 3, 6, 1}) {
		t.Fatalf("%v", got)
	}
}

func TestAheadFallsAlongEveryEdgeAndItsMostIsTheCriticalPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Int64Range(0, 100), 1, 40).Draw(t, "weights")
		var edges []Edge
		for range rapid.IntRange(0, 80).Draw(t, "edges") {
			a, b := rapid.IntRange(0, len(weights)-1).Draw(t, "a"), rapid.IntRange(0, len(weights)-1).Draw(t, "b")
			if a < b {
				edges = append(edges, Edge{Node(a), Node(b)})
			}
		}
		ahead := Ahead(weights, edges)
		for _, e := range edges {
			if ahead[e.From] < weights[e.From]+ahead[e.To] {
				t.Fatalf("task %d has %d ahead, but %d follows with %d", e.From, ahead[e.From], e.To, ahead[e.To])
			}
		}
		length := int64(0)
		for _, n := range Critical(weights, edges) {
			length += weights[n]
		}
		if slices.Max(ahead) != length {
			t.Fatalf("the most ahead is %d, the critical path %d", slices.Max(ahead), length)
		}
	})
}
