package body

import (
	"bytes"
	"strconv"
)

// HoldsHalf finds an escape of half a surrogate pair in valid JSON. JSON allows it, and it stands for no character: what
// looks into the text, as a column of type jsonb does, can't read it.
func (v Value) HoldsHalf() bool {
	for b := v.Text; ; {
		i := bytes.IndexByte(b, '\\')
		if i < 0 || i+1 >= len(b) {
			return false
		}
		if b = b[i:]; b[1] != 'u' {
			b = b[2:] // another escape, a doubled backslash too
			continue
		}
		unit := escaped(b)
		if b = b[min(6, len(b)):]; unit < 0xd800 || unit > 0xdfff {
			continue
		}
		if low := escaped(b); unit > 0xdbff || low < 0xdc00 || low > 0xdfff {
			return true
		}
		b = b[6:]
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
