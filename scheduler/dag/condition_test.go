package dag

import (
	"encoding/json"
	"strings"
	"testing"
)

func scope() *Scope {
	return &Scope{
		Deps: []Dep{
			{Key: "a", State: "succeeded", Result: json.RawMessage(`{"score":0.9,"n":3,"tags":["x","y"]}`)},
			{Key: "b", State: "failed"},
		},
		Payload: json.RawMessage(`{"least":3,"deep":{"on":true}}`), Labels: map[string]string{"customer": "a"},
	}
}

func TestConditions(t *testing.T) {
	for text, want := range map[string]bool{
		`true`:                                true,
		`false`:                               false,
		`deps.exists(d, d.state == "failed")`: true,
		`deps.all(d, d.state == "succeeded")`: false,
		`deps.filter(d, d.state == "succeeded").size() >= payload.least`:               false,
		`deps.exists(d, d.key == "a" && d.result.score > 0.5 && "x" in d.result.tags)`: true,
		`deps[0].result.n == payload.least`:                                            true,
		`deps[1].result == null`:                                                       true,
		`labels.customer == "a" && !("night" in labels)`:                               true,
		`payload.deep.on`:      true,
		`has(payload.missing)`: false,
		`deps.exists(d, d.state == "succeeded" && d.result.n < 2) || payload.least > 2`: true,
	} {
		c, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for range 2 { // it may be judged again
			if got, err := c.Holds(scope()); err != nil || got != want {
				t.Errorf("%s is %v, %v; want %v", text, got, err, want)
			}
		}
	}
}

func TestConditionsThatDoNotCompile(t *testing.T) {
	for _, text := range []string{
		``, `deps.`, `other == 1`, `1 + 1`, `"yes"`, `deps.all(d, d)`, `payload.a == `, strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200),
		`"` + strings.Repeat("x", MostConditionBytes) + `" == ""`,
	} {
		if _, err := Compile(text); err == nil {
			t.Errorf("%.40q compiles", text)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is no sentence: %v", text, err)
		}
	}
}

func TestConditionsThatCannotBeJudged(t *testing.T) {
	for _, text := range []string{`payload.missing == 1`, `deps[7].state == "x"`, `payload.least`, `deps[0].result.n`, `1 / 0 == 1`} {
		c, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := c.Holds(scope()); err == nil || got {
			t.Errorf("%s is %v", text, got)
		}
	}
	if c, err := Compile(`true`); err != nil {
		t.Error(err)
	} else if _, err := c.Holds(&Scope{Payload: json.RawMessage(`{`)}); err == nil {
		t.Error("a payload that is no JSON was read")
	}
}

// What would take for ever takes no longer than its bound allows.
func TestConditionsAreBounded(t *testing.T) {
	c, err := Compile(`deps.all(a, deps.all(b, deps.all(c, a.key + b.key + c.key != "")))`)
	if err != nil {
		t.Fatal(err)
	}
	s := &Scope{}
	for range 1000 {
		s.Deps = append(s.Deps, Dep{Key: "k", State: "succeeded"})
	}
	if _, err := c.Holds(s); err == nil || !strings.Contains(err.Error(), "cost") {
		t.Errorf("a billion steps end with %v", err)
	}
	c, err = Compile(`deps.all(d, d.state == "succeeded") && deps.size() == 1000`)
	if err != nil {
		t.Fatal(err)
	}
	if holds, err := c.Holds(s); err != nil || !holds {
		t.Errorf("a thousand dependencies: %v, %v", holds, err)
	}
}
