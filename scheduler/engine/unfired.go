package engine

// The edges of a task with very many dependants move in several batches, as the rows of a cursor do: the store says which
// ends have edges left and keeps them, and the next batch goes on with them after its own.

// fireOn sends on the ends of which edges are left. One that ended anew in this batch begins again instead.
func (e *Engine) fireOn() {
	e.b.plan.MostEdges = e.portion()
	for _, end := range e.unfired {
		if _, anew := e.b.ended[end.Task]; !anew {
			e.b.plan.Ends = append(e.b.plan.Ends, end)
		}
	}
	e.unfired = nil
}
