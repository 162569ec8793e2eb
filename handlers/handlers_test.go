package handlers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"nightshift/handlers"
	"nightshift/models"
)

func TestThrottleForgives(t *testing.T) {
	throttle := handlers.NewThrottle(3, 10*time.Second)
	now := time.Unix(1_000_000, 0)
	for range 3 {
		if wait := throttle.Fail(now, "a"); wait != 0 {
			t.Fatalf("limited before the third failure was over: %v", wait)
		}
	}
	if throttle.Blocked(now, "b") != 0 || throttle.Blocked(now, "a") == 0 {
		t.Error("the wrong name is blocked")
	}
	if wait := throttle.Fail(now, "a", "b"); wait != 10*time.Second {
		t.Errorf("the fourth failure waits %v", wait)
	}
	if wait := throttle.Blocked(now.Add(40*time.Second), "a"); wait != 0 {
		t.Errorf("not forgiven after 40 s: %v", wait)
	}
	for range 100 {
		throttle.Fail(now, "a")
	}
	if wait := throttle.Blocked(now, "a"); wait > time.Minute {
		t.Errorf("a flood of failures locks out for %v", wait)
	}
	throttle.Forgive("a")
	if throttle.Blocked(now, "a") != 0 {
		t.Error("not forgiven after a success")
	}
}

func TestClockIsTheDatabases(t *testing.T) {
	clock := handlers.NewClock()
	there := models.Instant(5_000_000)
	if err := clock.Set(t.Context(), func(context.Context) (models.Instant, error) { return there, nil }); err != nil {
		t.Fatal(err)
	}
	if ahead := clock.Now().Sub(there); ahead < 0 || ahead > time.Minute {
		t.Errorf("the clock is %v from the database's", ahead)
	}
	gone := errors.New("gone")
	if err := clock.Set(t.Context(), func(context.Context) (models.Instant, error) { return 0, gone }); !errors.Is(err, gone) {
		t.Errorf("without a database: %v", err)
	}
	if ahead := clock.Now().Sub(there); ahead < 0 || ahead > time.Minute {
		t.Errorf("it forgot the database's time: %v", ahead)
	}
}

func TestRateOfACount(t *testing.T) {
	var rate handlers.Rate
	now := time.Unix(1_000_000, 0)
	for i, step := range []struct {
		after time.Duration
		count int64
		want  float64
	}{{0, 100, 0}, {2 * time.Second, 300, 100}, {2500 * time.Millisecond, 900, 100}, {4 * time.Second, 300, 0}, {6 * time.Second, 10, 0}, {8 * time.Second, 30, 10}} {
		if got := rate.Sample(now.Add(step.after), step.count); got != step.want {
			t.Errorf("sample %d: %v, want %v", i, got, step.want)
		}
	}
}

func TestTimesOnTheWire(t *testing.T) {
	for at, want := range map[handlers.Time]string{
		0: "null", 1: `"1970-01-01T00:00:00.000001Z"`, 1_000_000: `"1970-01-01T00:00:01Z"`, 1_500_000: `"1970-01-01T00:00:01.5Z"`,
	} {
		text, err := at.MarshalJSON()
		if err != nil || string(text) != want {
			t.Errorf("%d: %s, %v", at, text, err)
		}
	}
	at, err := handlers.ParseTime("body.run_at", "2026-09-17T23:00:00.1234567+02:00")
	if err != nil || handlers.Time(at).String() != "2026-09-17T21:00:00.123456Z" {
		t.Errorf("parsed %s, %v", handlers.Time(at), err)
	}
	for _, bad := range []string{"", "tomorrow", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z"} {
		if _, err := handlers.ParseTime("body.run_at", bad); models.CodeOf(err) != models.ValidationFailed {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestMergeFields(t *testing.T) {
	type patch struct {
		Weight  handlers.Opt[float64] `json:"weight"`
		Elastic handlers.Later        `json:"elastic"`
	}
	for body, want := range map[string]float64{`{}`: 7, `{"weight":null}`: 1, `{"weight":3}`: 3, `{"elastic":null}`: 7} {
		var ask patch
		if err := handlers.Unmarshal("body", []byte(body), &ask); err != nil {
			t.Fatal(err)
		}
		weight := 7.0
		if ask.Weight.Into(&weight, 1); weight != want {
			t.Errorf("%s gives %v, want %v", body, weight, want)
		}
	}
	var ask patch
	err := handlers.Unmarshal("body", []byte(`{"elastic":true}`), &ask)
	var refused *models.Error
	if !errors.As(err, &refused) || refused.Fields[0].Location != "body.elastic" {
		t.Errorf("what is not built yet: %v", err)
	}
}

// FuzzUnmarshal holds that whatever the strict reader takes is JSON, and whatever it refuses has a code.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":1,"a":2}`, `[`, `{"a":"\u0000"}`, `"\ud800"`, "\xff", `{"a":{"b":[1,{"c":null}]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v any
		err := handlers.Unmarshal("body", text, &v)
		if err == nil {
			if _, again := json.Marshal(v); again != nil {
				t.Errorf("%q was taken and can't be written: %v", text, again)
			}
			return
		}
		if code := models.CodeOf(err); code != models.InvalidJSON && code != models.ValidationFailed {
			t.Errorf("%q: code %s", text, code)
		}
	})
}
