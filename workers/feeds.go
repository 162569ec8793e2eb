package workers

import (
	"encoding/json"

	"nightshift/workers/protocol"
)

// QueueItem is one item that a task took out of a queue.
type QueueItem struct {
	Data      json.RawMessage `json:"data"`
	DedupeKey *string         `json:"dedupe_key"` // nil: none
}

// QueueItems are the items that the task of a schedule of kind drain took out
// of its queue, in their order. The triggers of one of kind event are in
// Events, and which run it is in Run.
func (t *Task) QueueItems() ([]QueueItem, error) {
	out := make([]QueueItem, len(t.Items))
	for i, raw := range t.Items {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, Errorf(protocol.ClassInvalidInput, "item %d: %w", i, err)
		}
	}
	return out, nil
}
