package body

import (
	"bytes"
	"strconv"
)

// An escape of half a surrogate pair is JSON and stands for no character: many readers refuse the whole text around it, so
// that one value would make an answer that carries it unreadable.

const halfWrong = "half of a surrogate pair"

// HoldsHalf finds an escape of half a surrogate pair in the value.
func (v Value) HoldsHalf() bool { return half(v.Text, 0) >= 0 }

// Mended is the value's own text, copied, with U+FFFD in place of each half of a surrogate pair. It is as long as it was.
func (v Value) Mended() []byte {
	text := bytes.Clone(v.Text)
	for i := half(text, 0); i >= 0; i = half(text, i+6) {
		copy(text[i:], `\ufffd`)
	}
	return text
}

// half is where in valid JSON the next escape of half a surrogate pair begins, from i on; -1 where there is none.
func half(text []byte, i int) int {
	for {
		next := bytes.IndexByte(text[i:], '\\')
		if next < 0 || i+next+1 >= len(text) {
			return -1
		}
		if i += next; text[i+1] != 'u' {
			i += 2 // another escape, a doubled backslash too
			continue
		}
		unit := escaped(text[i:])
		if unit < 0xd800 || unit > 0xdfff {
			i = min(i+6, len(text))
			continue
		}
		if low := escaped(text[min(i+6, len(text)):]); unit > 0xdbff || low < 0xdc00 || low > 0xdfff {
			return i
		}
		i += 12
	}
}

// escaped is the number of the escape that a text begins with, -1 where it begins with none.
func escaped(b []byte) int64 {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseInt(string(b[2:6]), 16, 32)
	if err != nil {
		return -1
	}
	return n
}

// free refuses a value that holds NUL, which no column takes, or half of a surrogate pair, which many readers don't.
func (v Value) free() bool {
	switch {
	case holdsNUL(v.Text):
		v.Wrong("must not hold NUL")
	case v.HoldsHalf():
		v.Wrong("must not hold " + halfWrong)
	default:
		return true
	}
	return false
}
