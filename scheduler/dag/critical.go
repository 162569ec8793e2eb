package dag

// Edge says that To waits for From; both number the tasks of a workflow from 0.
type Edge struct{ From, To Node }

// Critical is the longest path by weight, from its first task to its last: what the workflow cannot end before. Weights
// are not negative; among equal paths the one with the smallest numbers is taken. Tasks of a ring are on no path.
func Critical(weights []int64, edges []Edge) []Node {
	from, to := make([]Node, len(edges)), make([]Node, len(edges))
	for i, e := range edges {
		from[i], to[i] = e.From, e.To
	}
	next := successors(len(weights), from, to)
	length := append([]int64(nil), weights...)
	hops := make([]int32, len(weights))
	before := make([]Node, len(weights))
	for n := range before {
		before[n] = -1
	}
	last := Node(-1)
	longer := func(a int64, ah int32, b int64, bh int32) bool { return a > b || a == b && ah > bh }
	for _, n := range sorted(len(weights), next) {
		if last < 0 || longer(length[n], hops[n], length[last], hops[last]) {
			last = n
		}
		for _, t := range next.of(n) {
			if l := length[n] + weights[t]; before[t] < 0 || longer(l, hops[n]+1, length[t], hops[t]) {
				length[t], hops[t], before[t] = l, hops[n]+1, n
			}
		}
	}
	var path []Node
	for n := last; n >= 0; n = before[n] {
		path = append(path, n)
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}
