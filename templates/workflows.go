package templates

import "time"

func lasted(now time.Time, row WorkflowRow) string {
	if row.FinishedAt.IsZero() {
		return between(row.CreatedAt, now)
	}
	return between(row.CreatedAt, row.FinishedAt)
}

// graphPace is the least time between two drawings in milliseconds.
func graphPace(nodes []Node) string {
	if len(nodes) > dagMost {
		return "5000"
	}
	return "1000"
}

func donePart(counts []StateCount) float64 {
	whole := total(counts)
	if whole == 0 {
		return 0
	}
	return float64(over(counts)) / float64(whole)
}

// keysMost is how many keys a field suggests.
const keysMost = 200

// keys are those of the tasks that are drawn or listed.
func (v WorkflowView) keys() []string {
	var keys []string
	seen := map[string]bool{}
	add := func(key string) {
		if key != "" && !seen[key] && len(keys) < keysMost {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	for _, node := range v.Nodes {
		add(node.Key)
	}
	for _, row := range v.Tasks {
		add(row.Key)
	}
	return keys
}
