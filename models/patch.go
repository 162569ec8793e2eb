package models

import (
	"bytes"
	"encoding/json"
)

// PayloadMost is how many bytes a payload has at most.
const PayloadMost = 256 << 10

// MergePatch merges a patch into a JSON text as RFC 7396 says: members of objects replace or, being null, remove those of
// their name; anything else replaces the whole. Members that the patch does not touch keep their text.
func MergePatch(text, patch json.RawMessage) (json.RawMessage, error) {
	if !isObject(patch) {
		return patch, nil
	}
	out := map[string]json.RawMessage{}
	if isObject(text) {
		if err := json.Unmarshal(text, &out); err != nil {
			return nil, err
		}
	}
	var changes map[string]json.RawMessage
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, err
	}
	for name, value := range changes { // any order: each member for itself
		if string(bytes.TrimSpace(value)) == "null" {
			delete(out, name)
			continue
		}
		merged, err := MergePatch(out[name], value)
		if err != nil {
			return nil, err
		}
		out[name] = merged
	}
	return json.Marshal(out)
}

func isObject(text json.RawMessage) bool {
	text = bytes.TrimSpace(text)
	return len(text) > 0 && text[0] == '{'
}
