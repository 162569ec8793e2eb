package api

import "nightshift/scheduler/engine"

// foresee says whether the tasks of a new workflow that must start by some moment are expected to.
func (v *FlowView) foresee(tasks []engine.SubmittedTask) {
	known, all := false, true
	for i := range tasks {
		f := tasks[i].Foresight
		switch {
		case f == nil:
		case f.Feasible == nil:
			all = false
		case *f.Feasible:
			known = true
		default:
			v.Late = append(v.Late, tasks[i].Row.Key)
		}
	}
	if in := len(v.Late) == 0; !in || known && all {
		v.Feasible = &in
	}
}
