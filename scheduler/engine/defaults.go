package engine

import (
	"cmp"
	"encoding/json"

	"nightshift/models"
)

// HardSeconds is the hard timeout of tasks of a lane that name none: the lane's, else its kind's.
func HardSeconds(d *models.LaneDefaults, kind models.KindName) int32 {
	if d == nil {
		return kind.DefaultHardSeconds()
	}
	return cmp.Or(d.HardSeconds, kind.DefaultHardSeconds())
}

// SoftInTime refuses a soft timeout that would never come: the task names no hard one, and the one that it gets passes first. A
// run of a schedule is made all the same, for its lane may have been edited since.
func SoftInTime(d *models.LaneDefaults, kind models.KindName, t *NewTask, at string) error {
	hard := HardSeconds(d, kind)
	if t.HardSeconds > 0 || t.SoftSeconds <= hard || !t.Schedule.IsZero() {
		return nil
	}
	return models.Invalid(at+".timeout.soft_seconds", "must not be above the hard timeout, which is %d s in its lane: give hard_seconds too", hard)
}

// Fill gives a task what its lane has for those that say nothing themselves. What it gets is written down with the task: an
// edit of the lane changes none that is there.
func Fill(d *models.LaneDefaults, t *NewTask) {
	if d == nil {
		return
	}
	if t.HardSeconds == 0 {
		t.HardSeconds = d.HardSeconds
	}
	if t.SoftSeconds == 0 && (t.HardSeconds == 0 || d.SoftSeconds <= t.HardSeconds) { // one past the hard timeout says nothing
		t.SoftSeconds = d.SoftSeconds
	}
	if t.TotalSeconds == 0 {
		t.TotalSeconds = d.TotalSeconds
	}
	told := map[string]any{}
	if t.ExpiresInSeconds == 0 && d.ExpiresInSeconds > 0 {
		t.ExpiresInSeconds = d.ExpiresInSeconds
		told["expires_in_seconds"] = d.ExpiresInSeconds
	}
	if !t.HasPolicy && d.RetryPolicy != nil {
		t.HasPolicy, t.MaxAttempts = true, d.RetryPolicy.MaxAttempts
		told["retry_policy"] = d.RetryPolicy
	}
	if len(told) > 0 {
		t.Input = withMembers(t.Input, told)
	}
}

// withMembers adds members to what is kept of a task's input.
func withMembers(input json.RawMessage, more map[string]any) json.RawMessage {
	all := map[string]json.RawMessage{}
	if len(input) > 0 && json.Unmarshal(input, &all) != nil {
		return input // the edge writes nothing but objects
	}
	for name, value := range more { // any order: encoding sorts them
		text, err := json.Marshal(value)
		if err != nil {
			panic(err) // numbers and texts always encode
		}
		all[name] = text
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // it was JSON before
	}
	return text
}
