package trace

import (
	"fmt"
	"strings"

	"nightshift/scheduler/sim"
)

// node is a task of a workflow as the file says it.
type node struct {
	name    string
	task    Task
	parents []string
}

// readGraphs reads workflows, each a tenant's; a task names its parents, which may stand after it.
func readGraphs(t *table) (out Trace, err error) {
	workflow, group := "", 0
	var nodes []node
	for {
		more, err := t.next()
		if err != nil {
			return out, err
		}
		if len(nodes) > 0 && (!more || t.text("workflow") != workflow) {
			if err := out.addGraph(workflow, nodes); err != nil {
				return out, err
			}
			nodes = nil
		}
		if !more {
			return out, nil
		}
		if workflow = t.text("workflow"); len(nodes) == 0 {
			group++
		}
		run, err := t.number("runtime_s")
		if err != nil {
			return out, err
		}
		nodes = append(nodes, node{
			name: t.text("task"), parents: strings.Fields(t.text("parents")),
			task: Task{Item: sim.Item{Run: seconds(run), Group: group}, Tenant: workflow},
		})
	}
}

// addGraph adds the tasks of a workflow, each after its parents and otherwise as they stand.
func (out *Trace) addGraph(workflow string, nodes []node) error {
	at := map[string]int{}
	for i, n := range nodes {
		at[n.name] = i
	}
	waits, next := make([]int, len(nodes)), make([][]int, len(nodes))
	for i, n := range nodes {
		for _, p := range n.parents {
			parent, known := at[p]
			if !known {
				return fmt.Errorf("workflow %s: task %s waits for %s, which is not there", workflow, n.name, p)
			}
			next[parent] = append(next[parent], i)
			waits[i]++
		}
	}
	var ready []int
	for i := range nodes {
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	place, placed := make([]int, len(nodes)), 0
	for ; len(ready) > 0; ready = ready[1:] {
		i := ready[0]
		task := nodes[i].task
		for _, p := range nodes[i].parents {
			task.After = append(task.After, place[at[p]])
		}
		place[i] = len(out.Tasks)
		out.Tasks = append(out.Tasks, task)
		placed++
		for _, n := range next[i] {
			if waits[n]--; waits[n] == 0 {
				ready = append(ready, n)
			}
		}
	}
	if placed < len(nodes) {
		return fmt.Errorf("workflow %s: tasks wait for each other", workflow)
	}
	return nil
}
