package dag

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// build reads "a", "b:a", "c:a,b": a key and what it waits for.
func build(tasks ...string) *Graph {
	g := New()
	for _, t := range tasks {
		key, deps, _ := strings.Cut(t, ":")
		n := g.Declare(key)
		for d := range strings.SplitSeq(deps, ",") {
			if d != "" {
				g.Mention(n, d)
			}
		}
	}
	return g
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		tasks []string
		want  []Fault
	}{
		{"nothing", nil, nil},
		{"one", []string{"a"}, nil},
		{"a diamond", []string{"a", "b:a", "c:a", "d:b,c"}, nil},
		{"backwards", []string{"d:b,c", "c:a", "b:a", "a"}, nil},
		{"a double", []string{"a", "b", "a"}, []Fault{{Double, []string{"a"}, 2}}},
		{"unknown", []string{"a", "b:x"}, []Fault{{Unknown, []string{"x"}, 1}}},
		{"both", []string{"a", "a", "b:x"}, []Fault{{Double, []string{"a"}, 1}, {Unknown, []string{"x"}, 2}}},
		{"itself", []string{"a", "b:b"}, []Fault{{Cycle, []string{"b"}, 1}}},
		{"a ring behind a start", []string{"a", "b:a,d", "c:b", "d:c", "e:d"}, []Fault{{Cycle, []string{"c", "d", "b"}, 1}}},
	} {
		if got := build(c.tasks...).Check(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// A ring names tasks that wait for each other in that order.
func TestRingIsARing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "tasks")
		g, waits := New(), map[[2]string]bool{}
		for i := range n {
			key := fmt.Sprint(i)
			node := g.Declare(key)
			for _, d := range rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, min(n, 3), rapid.ID).Draw(t, "deps") {
				g.Mention(node, fmt.Sprint(d))
				waits[[2]string{key, fmt.Sprint(d)}] = true
			}
		}
		faults := g.Check()
		if len(faults) == 0 {
			if order := sorted(g.Len(), successors(g.Len(), g.from, g.to)); len(order) != n {
				t.Fatalf("no fault, yet only %d of %d can be ordered", len(order), n)
			}
			return
		}
		ring := faults[0].Keys
		for i, key := range ring {
			before := ring[(i+len(ring)-1)%len(ring)]
			if !waits[[2]string{key, before}] {
				t.Fatalf("%v: %s does not wait for %s", ring, key, before)
			}
		}
	})
}

func TestLongChain(t *testing.T) {
	const n = 100_000
	g := New()
	weights, edges := make([]int64, n), make([]Edge, 0, n)
	for i := range n {
		node := g.Declare(fmt.Sprint(i))
		weights[i] = 1
		if i+1 < n {
			g.Mention(node, fmt.Sprint(i+1))
			edges = append(edges, Edge{Node(i + 1), Node(i)})
		}
	}
	if faults := g.Check(); faults != nil {
		t.Fatalf("a chain is sound, got %d faults", len(faults))
	}
	if path := Critical(weights, edges); len(path) != n || path[0] != n-1 || path[n-1] != 0 {
		t.Errorf("the path has %d tasks", len(path))
	}
	g.Mention(g.node(fmt.Sprint(n-1)), "0")
	if faults := g.Check(); len(faults) != 1 || len(faults[0].Keys) != n {
		t.Errorf("the closed chain is one ring of all, got %d faults", len(faults))
	}
}

func TestCritical(t *testing.T) {
	for _, c := range []struct {
		name    string
		weights []int64
		edges   []Edge
		want    []Node
	}{
		{"nothing", nil, nil, nil},
		{"apart", []int64{1, 5, 3}, nil, []Node{1}},
		{"a diamond", []int64{1, 2, 9, 1}, []Edge{{0, 1}, {0, 2}, {1, 3}, {2, 3}}, []Node{0, 2, 3}},
		{"long beats many", []int64{1, 1, 1, 50}, []Edge{{0, 1}, {1, 2}}, []Node{3}},
		{"no weights: the most hops", []int64{0, 0, 0, 0}, []Edge{{0, 1}, {1, 2}}, []Node{0, 1, 2}},
	} {
		if got := Critical(c.weights, c.edges); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
