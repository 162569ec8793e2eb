package dag

// Ahead is, for each task, the weight of the longest path from its own start to the end of the workflow: list scheduling
// by it, longest first, is critical-path-first. Weights are not negative; tasks of a ring have their own weight.
func Ahead(weights []int64, edges []Edge) []int64 {
	from, to := make([]Node, len(edges)), make([]Node, len(edges))
	for i, e := range edges {
		from[i], to[i] = e.From, e.To
	}
	next := successors(len(weights), from, to)
	ahead := append([]int64(nil), weights...)
	order := sorted(len(weights), next)
	for i := len(order) - 1; i >= 0; i-- {
		n := order[i]
		for _, t := range next.of(n) {
			ahead[n] = max(ahead[n], weights[n]+ahead[t])
		}
	}
	return ahead
}
