package body

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestHalvesOfSurrogatePairs(t *testing.T) {
	for text, mended := range map[string]string{
		`"a"`: "", `"\ud83d\ude00"`: "", `"\uD83D\uDE00"`: "", `"\\ud800"`: "", `"\n\u00e9"`: "", `{"a":"😀"}`: "", `"\\\\ud800"`: "",
		`"\ud800"`: `"\ufffd"`, `"\uDC00x"`: `"\ufffdx"`, `"a\ud800b"`: `"a\ufffdb"`, `"\ud800\n"`: `"\ufffd\n"`, `"\ud800\ud800\udc00"`: `"\ufffd\ud800\udc00"`,
		`{"\udfff":1}`: `{"\ufffd":1}`, `"\\\ud800"`: `"\\\ufffd"`, `"\ud83d\ude00\ude00"`: `"\ud83d\ude00\ufffd"`, `["\ud800","\udc00"]`: `["\ufffd","\ufffd"]`,
	} {
		v := Value{Text: []byte(text)}
		if got := v.HoldsHalf(); got != (mended != "") {
			t.Errorf("%s: %v", text, got)
		}
		if mended == "" {
			mended = text
		}
		if got := v.Mended(); string(got) != mended || !json.Valid(got) || string(v.Text) != text {
			t.Errorf("%s: mended %s", v.Text, got)
		}
	}
}

// Half of a surrogate pair is told where it stands, and what programs wrote is shown as far as it can be.
func TestHalvesAreRefusedInTheirPlace(t *testing.T) {
	const half = `"a\ud800"`
	for name, read := range map[string]func(Value){
		"String": func(v Value) { v.String(0, 9) }, "Raw": func(v Value) { v.Raw(99) }, "Whole": func(v Value) { v.Whole() }, "Name": func(v Value) { v.Name() },
	} {
		v, p := open(t, half)
		if read(v); len(p.fields) != 1 || !strings.Contains(p.fields[0].Message, halfWrong) {
			t.Errorf("%s: %v", name, p.fields)
		}
	}
	v, p := open(t, `{"b":{"\ud800":"x","\ud801":"y"}}`)
	v.Members(func(_ string, m Value) { m.Words(5, 9, 9) })
	if len(p.fields) != 2 || !strings.Contains(p.fields[1].Message, halfWrong) || !strings.HasPrefix(p.fields[0].Location, "body.b.") {
		t.Errorf("names: %v", p.fields)
	}
	if v, p = open(t, half); v.Loose() != "a\uFFFD" || p.Any() {
		t.Errorf("loose: %q, %v", v.Loose(), p.fields)
	}
}
