package worker

import (
	"encoding/json"
	"testing"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// What is reported together is settled in commands of a bounded size, each with one report at least.
func TestReportsAreSettledInParts(t *testing.T) {
	of := func(bytes int) report {
		return report{Result: engine.Result{Result: make(json.RawMessage, bytes/2), Checkpoint: make(json.RawMessage, bytes/4), Error: &models.TaskError{Stack: string(make([]byte, bytes/4))}}}
	}
	for name, c := range map[string]struct {
		bytes, count int
		want         []int
	}{
		"none": {0, 0, nil}, "one": {10, 1, []int{1}}, "many": {10, 1203, []int{500, 500, 203}}, "large": {900_000, 5, []int{2, 2, 1}}, "huge": {3 << 20, 3, []int{1, 1, 1}},
	} {
		reports := make([]report, c.count)
		for i := range reports {
			reports[i] = of(c.bytes)
		}
		for _, want := range c.want {
			if n := atOnce(reports); n != want {
				t.Fatalf("%s: %d of %d, want %d", name, n, len(reports), want)
			}
			reports = reports[want:]
		}
		if len(reports) > 0 {
			t.Errorf("%s: %d are left", name, len(reports))
		}
	}
}
