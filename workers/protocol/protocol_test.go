package protocol

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestSlotsBothForms(t *testing.T) {
	for _, c := range []struct {
		wire  string
		total int
	}{{`8`, 8}, {`{"compute":2,"io":200}`, 202}} {
		var s Slots
		if err := json.Unmarshal([]byte(c.wire), &s); err != nil {
			t.Fatal(err)
		}
		back, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if string(back) != c.wire || s.Total() != c.total {
			t.Errorf("%s came back as %s, total %d", c.wire, back, s.Total())
		}
	}
	var s Slots
	if err := json.Unmarshal([]byte(`"many"`), &s); err == nil {
		t.Error("a word passed as slots")
	}
}

func TestSignalBothForms(t *testing.T) {
	wire := `["cancel",{"name":"pause","data":{"for":3}}]`
	var got []Signal
	if err := json.Unmarshal([]byte(wire), &got); err != nil {
		t.Fatal(err)
	}
	want := []Signal{WordSignal(SignalCancel), {Name: "pause", Data: json.RawMessage(`{"for":3}`)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v", got)
	}
	back, err := json.Marshal(got)
	if err != nil || string(back) != wire {
		t.Errorf("wrote %s, %v", back, err)
	}
}

func TestDependsOnForms(t *testing.T) {
	wire := `["a",{"key":"b","on":"finished"},{"task":"task_1","on":"failed"}]`
	var got []DependsOn
	if err := json.Unmarshal([]byte(wire), &got); err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(got)
	if err != nil || string(back) != wire {
		t.Errorf("wrote %s, %v", back, err)
	}
}

func TestCardsFromSugar(t *testing.T) {
	r := Resources{GPU: 2, VRAMMB: 49152}
	if got := r.Cards(); !reflect.DeepEqual(got, []GPU{{24576}, {24576}}) {
		t.Errorf("two cards that share 49,152 MB are %v", got)
	}
	if got := (Resources{}).Cards(); len(got) != 0 {
		t.Errorf("no card became %v", got)
	}
}

// An answer names every member, so that a reader never has to tell "absent"
// from "null".
func TestLeaseNamesEveryMember(t *testing.T) {
	b, err := json.Marshal(Lease{})
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"task_id", "attempt_id", "attempt", "lease_token", "lease_expires_at", "type", "payload", "model", "gpus",
		"timeout", "deadline", "traceparent", "permissions", "secrets", "checkpoint", "watermark", "dependencies",
		"dependencies_url", "children", "events", "items", "partition", "run", "verify", "idempotency_key", "labels",
	} {
		if _, ok := members[name]; !ok {
			t.Errorf("a claim's task lacks %q", name)
		}
	}
}

func TestHeartbeatAlwaysListsLeases(t *testing.T) {
	b, err := json.Marshal(HeartbeatRequest{Leases: []HeartbeatLease{}})
	if err != nil || string(b) != `{"leases":[]}` {
		t.Errorf("an idle beat is %s, %v", b, err)
	}
}
