package dag

// Node numbers a key in the order in which it was first seen.
type Node int32

// Graph is built while a body is read: Declare each task, Mention what it waits for.
type Graph struct {
	nodes    map[string]Node
	keys     []string
	position []int32 // where in the body a node was declared; -1: only mentioned so far
	by       []Node  // the first that mentioned it
	from, to []Node  // edges
	faults   []Fault
	declared int32
}

// Wrong says what is wrong with a graph.
type Wrong string

// What can be wrong.
const (
	Double  Wrong = "double"  // a key stands twice
	Unknown Wrong = "unknown" // a key is waited for and stands nowhere
	Cycle   Wrong = "cycle"   // tasks wait for each other in a ring
)

// Fault is one thing wrong. Keys are the key concerned, or the ring in order, each waiting for the one before it and the
// first for the last. Position is where the task stands in the body: the second of a double, the first that mentions an
// unknown key, the first of the ring.
type Fault struct {
	Wrong    Wrong
	Keys     []string
	Position int
}

// New makes an empty graph.
func New() *Graph { return &Graph{nodes: map[string]Node{}} }

func (g *Graph) node(key string) Node {
	if n, ok := g.nodes[key]; ok {
		return n
	}
	n := Node(len(g.keys))
	g.nodes[key] = n
	g.keys = append(g.keys, key)
	g.position = append(g.position, -1)
	g.by = append(g.by, -1)
	return n
}

// Declare adds the body's next task under its key. A key that stands already is a fault, found by Check.
func (g *Graph) Declare(key string) Node {
	n := g.node(key)
	if g.position[n] >= 0 {
		g.faults = append(g.faults, Fault{Wrong: Double, Keys: []string{key}, Position: int(g.declared)})
	} else {
		g.position[n] = g.declared
	}
	g.declared++
	return n
}

// Mention says that task waits for the task of that key, which may be declared later.
func (g *Graph) Mention(task Node, key string) Node {
	n := g.node(key)
	if g.by[n] < 0 {
		g.by[n] = task
	}
	g.from = append(g.from, n)
	g.to = append(g.to, task)
	return n
}

// Undeclared are the nodes that have been mentioned alone so far.
func (g *Graph) Undeclared() (nodes []Node) {
	for n, p := range g.position {
		if p < 0 {
			nodes = append(nodes, Node(n))
		}
	}
	return nodes
}

// Stands says that the task of a node stands outside the body.
func (g *Graph) Stands(n Node) { g.position[n] = g.declared }

// Faulty says that something is wrong already, before all has been read.
func (g *Graph) Faulty() bool { return len(g.faults) > 0 }

// Len is how many keys have been seen.
func (g *Graph) Len() int { return len(g.keys) }

// Key is the key of a node.
func (g *Graph) Key(n Node) string { return g.keys[n] }

// Check tells everything that is wrong: all doubles, all unknown keys and, where those are none, one ring.
func (g *Graph) Check() []Fault {
	faults := g.faults
	for n, p := range g.position {
		if p < 0 {
			faults = append(faults, Fault{Wrong: Unknown, Keys: []string{g.keys[n]}, Position: int(g.position[g.by[n]])})
		}
	}
	if len(faults) > 0 {
		return faults
	}
	next := successors(len(g.keys), g.from, g.to)
	if order := sorted(len(g.keys), next); len(order) < len(g.keys) {
		return []Fault{g.ring(order)}
	}
	return nil
}

// ring follows what waits among the nodes that no order could place: each of them waits for another one of them, so the
// walk must meet itself.
func (g *Graph) ring(placed []Node) Fault {
	free := make([]bool, len(g.keys))
	for _, n := range placed {
		free[n] = true
	}
	waitsFor := make([]Node, len(g.keys))
	for n := range waitsFor {
		waitsFor[n] = -1
	}
	for i, from := range g.from {
		if !free[from] && !free[g.to[i]] {
			waitsFor[g.to[i]] = from
		}
	}
	at := Node(0)
	for waitsFor[at] < 0 {
		at++
	}
	seen := make([]bool, len(g.keys))
	for !seen[at] {
		seen[at] = true
		at = waitsFor[at]
	}
	var back []Node
	for n := at; len(back) == 0 || n != at; n = waitsFor[n] {
		back = append(back, n)
	}
	fault := Fault{Wrong: Cycle, Keys: make([]string, len(back)), Position: int(g.position[back[0]])}
	for i, n := range back {
		fault.Keys[len(back)-1-i] = g.keys[n]
		fault.Position = min(fault.Position, int(g.position[n]))
	}
	return fault
}

// list holds the successors of all nodes in one slice: those of n are flat[start[n]:start[n+1]].
type list struct {
	start []int32
	flat  []Node
}

func (l *list) of(n Node) []Node { return l.flat[l.start[n]:l.start[n+1]] }

func successors(nodes int, from, to []Node) *list {
	l := &list{start: make([]int32, nodes+1), flat: make([]Node, len(from))}
	for _, f := range from {
		l.start[f+1]++
	}
	for n := range nodes {
		l.start[n+1] += l.start[n]
	}
	fill := append([]int32(nil), l.start...)
	for i, f := range from {
		l.flat[fill[f]] = to[i]
		fill[f]++
	}
	return l
}

// sorted places nodes behind everything they wait for; nodes of a ring and behind one are left out.
func sorted(nodes int, next *list) []Node {
	waits := make([]int32, nodes)
	for _, t := range next.flat {
		waits[t]++
	}
	order := make([]Node, 0, nodes)
	for n, w := range waits {
		if w == 0 {
			order = append(order, Node(n))
		}
	}
	for i := 0; i < len(order); i++ {
		for _, t := range next.of(order[i]) {
			if waits[t]--; waits[t] == 0 {
				order = append(order, t)
			}
		}
	}
	return order
}
