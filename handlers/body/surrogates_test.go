package body

import "testing"

func TestHalvesOfSurrogatePairs(t *testing.T) {
	for text, want := range map[string]bool{
		`"a"`: false, `"\ud83d\ude00"`: false, `"\uD83D\uDE00"`: false, `"\\ud800"`: false, `"\n\u00e9"`: false, `{"a":"😀"}`: false, `"\\\\ud800"`: false,
		`"\ud800"`: true, `"\uDC00x"`: true, `"a\ud800b"`: true, `"\ud800\n"`: true, `"\ud800\ud800\udc00"`: true, `{"\udfff":1}`: true, `"\\\ud800"`: true,
		`"\ud83d\ude00\ude00"`: true,
	} {
		if got := (Value{Text: []byte(text)}).HoldsHalf(); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
