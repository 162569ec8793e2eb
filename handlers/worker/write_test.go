package worker

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/workers/protocol"
	"pgregory.net/rapid"
)

// What is written by hand is what the protocol's types say, member for member.
func TestAClaimIsWrittenAsTheProtocolSays(t *testing.T) {
	at := models.InstantOf(time.Date(2026, 9, 17, 21, 0, 0, 123_000, time.UTC))
	row := models.Task{
		Env: 3, ID: models.ID{6: 0x70, 15: 1}, AttemptID: models.ID{2}, Token: models.ID{3}, Attempt: 2, LeaseUntil: at,
		Workflow: models.ID{4}, SoftSeconds: 5,
	}
	ref := models.TaskRef{Env: 3, ID: row.ID}
	briefs := map[models.TaskRef]*postgres.Brief{ref: {
		Payload: json.RawMessage(`{"p":"é"}`), Input: json.RawMessage(`{"labels":{"a":"\"b\""}}`), Trace: "00-x", Checkpoint: json.RawMessage(`[1]`),
		Dependencies: []postgres.Dependency{{Key: `k"`, Task: models.ID{5}, State: models.Succeeded, Result: json.RawMessage(`7`)}, {Task: models.ID{6}, State: models.Failed}},
	}}
	text := appendClaim(nil, &engine.Claimed{Leases: []engine.Lease{{Row: row, GPUs: []int{0, 2}, Model: "small", Type: "a.b"}, {Row: models.Task{ID: models.ID{9}}}}}, briefs)
	var got protocol.ClaimAnswer
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	key, model, trace, soft := `k"`, "small", "00-x", 5.0
	want := protocol.ClaimAnswer{Signals: []protocol.LeaseSignal{}, Tasks: []protocol.Lease{{
		TaskID: row.ID.Text("task"), AttemptID: row.AttemptID.Text("att"), Attempt: 2, LeaseToken: models.WireToken(ref, row.Token),
		LeaseExpiresAt: at.Time(), Type: "a.b", Payload: json.RawMessage(`{"p":"é"}`), Model: &model, GPUs: []int{0, 2},
		Timeout: protocol.Timeout{SoftSeconds: &soft}, Traceparent: &trace, Permissions: []string{}, Secrets: map[string]string{}, Checkpoint: json.RawMessage(`[1]`),
		Dependencies: []protocol.Dependency{
			{Key: &key, TaskID: models.ID{5}.Text("task"), State: "succeeded", Result: json.RawMessage(`7`)},
			{TaskID: models.ID{6}.Text("task"), State: "failed", Result: json.RawMessage(`null`)},
		},
		Children: []protocol.ChildState{}, Events: []protocol.TriggerEvent{},
		IdempotencyKey: row.Workflow.Text("wf") + ":" + row.ID.Text("task"), Labels: map[string]string{"a": `"b"`},
	}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	var members struct{ Tasks []map[string]json.RawMessage }
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	lease := reflect.TypeFor[protocol.Lease]()
	if len(members.Tasks[0]) != lease.NumField() {
		t.Errorf("%d members of %d", len(members.Tasks[0]), lease.NumField())
	}
	for i := range lease.NumField() {
		if name := lease.Field(i).Tag.Get("json"); members.Tasks[0][name] == nil {
			t.Errorf("a lease lacks %q", name)
		}
	}
	briefs[ref].Many = true
	if text = appendClaim(nil, &engine.Claimed{Leases: []engine.Lease{{Row: row}}}, briefs); !strings.Contains(string(text), `"dependencies_url":"/v1/tasks/`+row.ID.Text("task")+`/dependencies"`) {
		t.Errorf("no url: %s", text)
	}
}

func TestVerdictsAreWrittenAsTheProtocolSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		optional := func(name string) *string { return rapid.Ptr(rapid.String(), true).Draw(t, name) }
		want := protocol.ResultsAnswer{Results: []protocol.ResultAnswer{}}
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			want.Results = append(want.Results, protocol.ResultAnswer{
				LeaseToken: rapid.String().Draw(t, "token"), Accepted: rapid.Bool().Draw(t, "accepted"),
				State: optional("state"), Code: optional("code"), UsageRecorded: rapid.Bool().Draw(t, "booked"),
			})
		}
		var got protocol.ResultsAnswer
		if err := json.Unmarshal(appendResults(nil, want.Results), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

// Every member of the requests that the SDK writes is known here.
func TestRequestsOfTheProtocolAreKnown(t *testing.T) {
	register := reflect.TypeFor[protocol.RegisterRequest]()
	for i := range register.NumField() {
		name, _, _ := strings.Cut(register.Field(i).Tag.Get("json"), ",")
		if registerMembers[name] == nil {
			t.Errorf("registration does not know %q", name)
		}
	}
	result := reflect.TypeFor[protocol.Result]()
	known := []string{"lease_token", "status"}
	for i := range result.NumField() {
		name, _, _ := strings.Cut(result.Field(i).Tag.Get("json"), ",")
		if !slices.Contains(known, name) && !knowsMember(name) {
			t.Errorf("a result does not know %q", name)
		}
	}
}

func knowsMember(name string) bool {
	p := &body.Problems{}
	v, err := body.Open([]byte("null"), "body", p)
	if err != nil {
		return false
	}
	return (&report{}).member(name, v)
}
