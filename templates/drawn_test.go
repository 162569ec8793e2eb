package templates

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func anyDAG(t *rapid.T, most int) ([]Node, []Edge) {
	n := rapid.IntRange(1, most).Draw(t, "tasks")
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{ID: fmt.Sprintf("task_%d", i), Type: fmt.Sprintf("type%d", i%4), State: stateOrder[i%len(stateOrder)]}
	}
	var edges []Edge
	for i := 1; i < n; i++ {
		for range rapid.IntRange(0, 2).Draw(t, "edges") {
			from := rapid.IntRange(0, i-1).Draw(t, "from")
			edges = append(edges, Edge{From: nodes[from].ID, To: nodes[i].ID, Fired: i%2 == 0})
		}
	}
	return nodes, edges
}

func TestEveryTaskStandsBehindThoseItWaitsFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, edges := anyDAG(t, 60)
		d := drawDAG(nodes, edges)
		at := map[string]box{}
		for _, b := range d.Boxes {
			at[b.ID] = b
		}
		if len(at) != len(nodes) {
			t.Fatalf("%d tasks, %d boxes", len(nodes), len(at))
		}
		for _, edge := range edges {
			if at[edge.From].X >= at[edge.To].X {
				t.Fatalf("%s at %d is not before %s at %d", edge.From, at[edge.From].X, edge.To, at[edge.To].X)
			}
		}
		inside(t, d)
	})
}

func inside(t *rapid.T, d drawing) {
	taken := map[[2]int]bool{}
	for _, b := range d.Boxes {
		if b.X < 0 || b.Y < 0 || b.X+boxWidth > d.Width || b.Y+boxHeight > d.Height {
			t.Fatalf("the box %s at %d,%d leaves the drawing of %d × %d", b.label(), b.X, b.Y, d.Width, d.Height)
		}
		if taken[[2]int{b.X, b.Y}] {
			t.Fatalf("two boxes stand at %d,%d", b.X, b.Y)
		}
		taken[[2]int{b.X, b.Y}] = true
	}
}

func TestALargeWorkflowIsDrawnInGroupsThatCountEveryTask(t *testing.T) {
	nodes, edges := sampleNight(20_000)
	d := drawDAG(nodes, edges)
	sum := 0
	for _, b := range d.Boxes {
		sum += total(b.Counts)
	}
	if !d.Grouped || sum != len(nodes) || len(d.Boxes) > 20 {
		t.Errorf("grouped %v, %d of %d tasks counted in %d boxes", d.Grouped, sum, len(nodes), len(d.Boxes))
	}
}

func TestARingIsDrawnAndNotFollowedForEver(t *testing.T) {
	d := drawDAG([]Node{{ID: "a"}, {ID: "b"}}, []Edge{{From: "a", To: "b"}, {From: "b", To: "a"}, {From: "a", To: "a"}, {From: "gone", To: "a"}})
	if len(d.Boxes) != 2 || len(d.Curves) != 2 {
		t.Errorf("%d boxes, %d edges", len(d.Boxes), len(d.Curves))
	}
}

func TestTreeKeepsOrderAndBounds(t *testing.T) {
	root := tree(`{"b":1,"a":[true,null,"x"],"n":12345678901234567890.5}`)
	if root.Kind != "object" || root.Inner[0].Name != "b" || root.Inner[1].Inner[2].Text != "x" || root.Inner[2].Text != "12345678901234567890.5" {
		t.Errorf("%+v", root)
	}
	long := tree("[" + strings.Repeat("1,", 5000) + "1]")
	if len(long.Inner) >= treeNodes+1 || len(long.Inner)+long.Hidden != 5001 {
		t.Errorf("%d drawn, %d hidden", len(long.Inner), long.Hidden)
	}
	deep := tree(strings.Repeat("[", 2000) + strings.Repeat("]", 2000))
	levels := 0
	for node := deep; len(node.Inner) > 0; node = node.Inner[0] {
		levels++
	}
	if levels > treeDepth {
		t.Errorf("%d levels drawn", levels)
	}
	for _, text := range []string{"", "not json", `{"a":`, `1 2`, `{"a":1}}`} {
		if got := tree(text); got.Kind != "string" || got.Text != text {
			t.Errorf("%q became %+v", text, got)
		}
	}
}

func TestWordsForPeople(t *testing.T) {
	now := sampleNow
	for _, c := range []struct{ got, want string }{
		{count(1234567), "1,234,567"},
		{count(-1234), "-1,234"},
		{short(9999), "9,999"},
		{short(23840), "23.8k"},
		{short(4_100_000), "4.1M"},
		{span(0.0004), "0 s"},
		{span(0.25), "250 ms"},
		{span(4.24), "4.2 s"},
		{span(59.7), "60 s"},
		{span(61), "1 min 01 s"},
		{span(5400), "1 h 30 min"},
		{span(90000), "1 d 01 h"},
		{rate(0), "0/s"},
		{rate(0.02), "1.2/min"},
		{rate(812.4), "812/s"},
		{ago(now, now.Add(-3*time.Second)), "3 s ago"},
		{ago(now, now.Add(45*time.Second)), "in 45 s"},
		{ago(now, now), "just now"},
		{memory(512), "512 MB"},
		{memory(24576), "24 GB"},
		{money(0.004821), "$0.004821"},
		{money(2), "$2.00"},
		{bytesOf(45), "45 B"},
		{bytesOf(2048), "2 kB"},
		{brief("task_01k9h2m3n4p5q6r7s8t9v0w1x2"), "task_…t9v0w1x2"},
		{brief("nightly"), "nightly"},
		{plural(1, "worker", "workers"), "1 worker"},
		{withState("state:failed lane:io", "running"), "state:running lane:io"},
		{withState("state:failed", ""), ""},
		{samplePage("", "").Object("/tasks", "a/b?c"), "/tasks/a%2Fb%3Fc?environment=production&tenant=northwind"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestEachStateIsDrawnOnceAndTheTakenWaysAreMarked(t *testing.T) {
	v := sampleDeadTask()
	current, visited := 0, 0
	for _, s := range stations(v.State, v.Steps) {
		if s.Current {
			current++
		}
		if s.Visited {
			visited++
		}
	}
	taken := 0
	for _, w := range ways(v.Steps) {
		if w.Taken {
			taken++
		}
	}
	if current != 1 || visited != 5 || taken != 5 {
		t.Errorf("%d current, %d visited, %d ways taken", current, visited, taken)
	}
}
