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
