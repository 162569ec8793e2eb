package body

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"nightshift/models"
	"pgregory.net/rapid"
)

func open(t *testing.T, text string) (Value, *Problems) {
	t.Helper()
	p := &Problems{}
	v, err := Open([]byte(text), "body", p)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v, p
}

func TestOpenRefuses(t *testing.T) {
	for _, text := range []string{"", "  ", "{", `{"a":1}}`, "{\"a\":\"\xff\"}", "nul", `{"a":"` + "\x00" + `"}`} {
		if _, err := Open([]byte(text), "body", &Problems{}); models.CodeOf(err) != models.InvalidJSON {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestMembers(t *testing.T) {
	v, p := open(t, ` { "a" : 1 ,"b":[1, {"x":"]}\""}],"a":2, "\u0063" : "d" } `)
	got := map[string]string{}
	v.Members(func(name string, m Value) { got[name] = string(m.Text) })
	want := map[string]string{"a": "1", "b": `[1, {"x":"]}\""}]`, "c": `"d"`}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if len(p.fields) != 1 || p.fields[0].Location != "body.a" {
		t.Errorf("the second a is wrong: %v", p.fields)
	}
}

func TestManyMembers(t *testing.T) {
	var text strings.Builder
	text.WriteByte('{')
	for i := range 100_000 {
		fmt.Fprintf(&text, `"k%d":%d,`, i, i)
	}
	v, p := open(t, text.String()+`"k7":0}`)
	n := 0
	v.Members(func(string, Value) { n++ })
	if n != 100_000 || len(p.fields) != 1 || p.fields[0].Location != "body.k7" {
		t.Errorf("%d members, %v", n, p.fields)
	}
}

// Walking an object by hand gives what the library gives.
func TestWalkAgreesWithTheLibrary(t *testing.T) {
	leaf := rapid.OneOf(rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return f }),
		rapid.SampledFrom([]any{nil, true, false, []any{}, map[string]any{}}))
	value := rapid.OneOf(leaf, rapid.Map(rapid.SliceOfN(leaf, 0, 4), func(s []any) any { return s }),
		rapid.Map(rapid.MapOfN(rapid.String(), leaf, 0, 4), func(m map[string]any) any { return m }))
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOfN(rapid.String(), value, 0, 6).Draw(t, "object")
		indent := rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "indent")
		encoded, err := json.MarshalIndent(object, "", indent)
		if err != nil {
			t.Fatal(err)
		}
		v, err := Open(encoded, "body", &Problems{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		v.Members(func(name string, m Value) {
			var x any
			if err := json.Unmarshal(m.Text, &x); err != nil {
				t.Fatalf("%s: %q: %v", name, m.Text, err)
			}
			got[name] = x
		})
		again, _ := json.MarshalIndent(got, "", indent)
		if string(again) != string(encoded) {
			t.Fatalf("got %s\nwant %s", again, encoded)
		}
	})
}

func TestReaders(t *testing.T) {
	for _, c := range []struct {
		text  string
		read  func(Value) any
		want  any
		wrong string
	}{
		{`"abc"`, func(v Value) any { return v.String(1, 3) }, "abc", ""},
		{`"\u00e9"`, func(v Value) any { return v.String(1, 3) }, "é", ""},
		{`"abcd"`, func(v Value) any { return v.String(1, 3) }, "", "at most 3"},
		{`"a\u0000"`, func(v Value) any { return v.String(1, 3) }, "", "NUL"},
		{`7`, func(v Value) any { return v.String(1, 3) }, "", "a string"},
		{`"llm.generate"`, func(v Value) any { return v.Name() }, "llm.generate", ""},
		{`"Llm"`, func(v Value) any { return v.Name() }, "", "must match"},
		{`".a"`, func(v Value) any { return v.Name() }, "", "must match"},
		{`50`, func(v Value) any { return v.Int(0, 100) }, int64(50), ""},
		{`5e1`, func(v Value) any { return v.Int(0, 100) }, int64(50), ""},
		{`5.5`, func(v Value) any { return v.Int(0, 100) }, int64(0), "whole"},
		{`101`, func(v Value) any { return v.Int(0, 100) }, int64(0), "from 0 to 100"},
		{`99999999999999999999`, func(v Value) any { return v.Int(0, 100) }, int64(0), "from 0 to 100"},
		{`1e999`, func(v Value) any { return v.Int(0, 100) }, int64(0), "from 0 to 100"},
		{`"5"`, func(v Value) any { return v.Int(0, 100) }, int64(0), "whole"},
		{`0.25`, func(v Value) any { return v.Number(0, 1) }, 0.25, ""},
		{`1e999`, func(v Value) any { return v.Number(0, 1) }, 0.0, "from 0 to 1"},
		{`true`, func(v Value) any { return v.Number(0, 1) }, 0.0, "a number"},
		{`true`, func(v Value) any { return v.Bool() }, true, ""},
		{`1`, func(v Value) any { return v.Bool() }, false, "true or false"},
		{`"2026-09-17T21:00:00Z"`, func(v Value) any { return v.Time() }, models.Instant(1789678800000000), ""},
		{`"2026-09-17T23:00:00.0000019+02:00"`, func(v Value) any { return v.Time() }, models.Instant(1789678800000001), ""},
		{`"tomorrow"`, func(v Value) any { return v.Time() }, models.Instant(0), "RFC 3339"},
		{`"fixed"`, func(v Value) any { return v.OneOf("linear", "fixed") }, "fixed", ""},
		{`"loud"`, func(v Value) any { return v.OneOf("linear", "fixed") }, "", "one of linear, fixed"},
		{`{"a":"1"}`, func(v Value) any { return v.Words(2, 5, 5) }, map[string]string{"a": "1"}, ""},
		{`{"a":1}`, func(v Value) any { return len(v.Words(2, 5, 5)) }, 1, "a string"},
		{`[ ]`, func(v Value) any { return v.Empty() }, true, ""},
		{`{}`, func(v Value) any { return v.Empty() }, true, ""},
		{`[1]`, func(v Value) any { return v.Empty() }, false, ""},
		{`[[]]`, func(v Value) any { return v.Empty() }, false, ""},
		{`null`, func(v Value) any { return v.Empty() }, false, ""},
		{`{"a": [1]}`, func(v Value) any { return string(v.Raw(10)) }, `{"a": [1]}`, ""},
		{`{"a": [1]}`, func(v Value) any { return string(v.Raw(9)) }, "", "at most 9"},
		{`null`, func(v Value) any { return v.Raw(9) == nil }, true, ""},
		{`["\\u0000"]`, func(v Value) any { return string(v.Raw(99)) }, `["\\u0000"]`, ""},
		{`["\\\u0000"]`, func(v Value) any { return string(v.Raw(99)) }, "", "NUL"},
	} {
		v, p := open(t, c.text)
		if got := c.read(v); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.text, got, c.want)
		}
		switch {
		case c.wrong == "" && p.Any():
			t.Errorf("%s: refused: %v", c.text, p.fields)
		case c.wrong != "" && (len(p.fields) != 1 || !strings.Contains(p.fields[0].Message, c.wrong)):
			t.Errorf("%s: want %q, got %v", c.text, c.wrong, p.fields)
		}
	}
}

func TestStream(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string
		code       models.Code
	}{
		{"in order", `{"name":"n","tasks":[{"a":1}, 2],"x":null}`, `name="n" 0={"a":1} 1=2 x=null `, ""},
		{"no list", `{"name":"n"}`, `name="n" `, ""},
		{"empty", ``, ``, models.InvalidJSON},
		{"cut", `{"tasks":[1,`, `0=1 `, models.InvalidJSON},
		{"behind", `{"tasks":[]} 1`, ``, models.InvalidJSON},
		{"twice", `{"tasks":[1],"tasks":[2]}`, `0=1 `, models.ValidationFailed},
		{"no object", `[1]`, ``, models.ValidationFailed},
		{"no list but a number", `{"tasks":1}`, ``, models.ValidationFailed},
		{"no UTF-8", "{\"tasks\":[\"\xff\"]}", ``, models.InvalidJSON},
		{"no UTF-8 behind", "{\"tasks\":[1,\"\xff\"]}", `0=1 `, models.InvalidJSON},
		{"no UTF-8 in a name", "{\"\xff\":1}", ``, models.InvalidJSON},
		{"no UTF-8 in a member", "{\"a\":\"\xff\"}", ``, models.InvalidJSON},
		{"half a surrogate pair", `{"\ud800":1,"a":"\ud800","tasks":["\udfff",2]}`, "\uFFFD=1 a=\"\\ud800\" 0=\"\\udfff\" 1=2 ", ""},
	} {
		var got strings.Builder
		err := Stream(strings.NewReader(c.text), "body", "tasks", &Problems{},
			func(name string, v Value) error { fmt.Fprintf(&got, "%s=%s ", name, v.Text); return nil },
			func(i int, v Value) error { fmt.Fprintf(&got, "%d=%s ", i, v.Text); return nil })
		if got.String() != c.want || models.CodeOf(err) != c.code {
			t.Errorf("%s: got %q, %v", c.name, got.String(), err)
		}
	}
}

func TestStreamKeepsTheReadersRefusal(t *testing.T) {
	large := models.Errorf(models.BodyTooLarge, "too large")
	r := io.MultiReader(strings.NewReader(`{"tasks":[1,`), failing{large})
	err := Stream(r, "body", "tasks", &Problems{}, nil, func(int, Value) error { return nil })
	if !errors.Is(err, large) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestProblems(t *testing.T) {
	p := &Problems{}
	if p.Err(models.ValidationFailed) != nil {
		t.Error("nothing is wrong yet")
	}
	for i := range 150 {
		p.Addf(At("body", i), "is odd")
	}
	err := p.Err(models.ValidationFailed)
	var e *models.Error
	if !errors.As(err, &e) || len(e.Fields) != mostProblems || !strings.HasSuffix(e.Detail, "(and 149 more)") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkMembers(b *testing.B) {
	text := []byte(`{"type":"llm.generate","payload":{"prompt":"a quite ordinary prompt of some words"},"lane":"batch","priority":50,"labels":{"customer":"a"}}`)
	for b.Loop() {
		v, err := Open(text, "body", &Problems{})
		if err != nil {
			b.Fatal(err)
		}
		v.Members(func(string, Value) {})
	}
}

func BenchmarkStream(b *testing.B) {
	var text strings.Builder
	text.WriteString(`{"tasks":[`)
	for i := range 500 {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"type":"llm.generate","payload":{"text":"%s"},"lane":"batch","priority":50}`, strings.Repeat("lorem ipsum ", 40))
	}
	text.WriteString(`]}`)
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		err := Stream(strings.NewReader(text.String()), "body", "tasks", &Problems{}, nil, func(_ int, v Value) error {
			v.Members(func(string, Value) {})
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
