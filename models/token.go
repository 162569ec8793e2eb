package models

import "encoding/binary"

// WireToken is a lease's token as workers carry it: environment, task and the secret part, 58 characters of base32
// behind "lt_". Naming the task lets a report be judged by its row alone when no board knows the lease any more.
func WireToken(ref TaskRef, token ID) string {
	var raw [36]byte
	binary.BigEndian.PutUint32(raw[:4], uint32(ref.Env))
	copy(raw[4:20], ref.ID[:])
	copy(raw[20:], token[:])
	out := make([]byte, 0, 61)
	out = append(out, "lt_"...)
	var acc uint32
	bits := 0
	for _, b := range raw {
		acc = acc<<8 | uint32(b)
		for bits += 8; bits >= 5; bits -= 5 {
			out = append(out, base32[acc>>(bits-5)&31])
		}
		acc &= 1<<bits - 1
	}
	return string(append(out, base32[acc<<(5-bits)&31]))
}

// digitOf is the value of each character of base32, -1 for the others.
var digitOf = func() (of [256]int8) {
	for i := range of {
		of[i] = -1
	}
	for v := range len(base32) {
		of[base32[v]] = int8(v)
	}
	return of
}()

// ParseWireToken reads what WireToken wrote; anything else names no lease.
func ParseWireToken(text string) (ref TaskRef, token ID, ok bool) {
	if len(text) != 61 || text[:3] != "lt_" {
		return ref, token, false
	}
	raw := make([]byte, 0, 37)
	var acc uint32
	bits := 0
	for i := 3; i < len(text); i++ {
		v := digitOf[text[i]]
		if v < 0 {
			return ref, token, false
		}
		acc = acc<<5 | uint32(v)
		if bits += 5; bits >= 8 {
			bits -= 8
			raw = append(raw, byte(acc>>bits))
			acc &= 1<<bits - 1
		}
	}
	if len(raw) != 36 || acc != 0 {
		return ref, token, false
	}
	ref.Env = int32(binary.BigEndian.Uint32(raw[:4]))
	copy(ref.ID[:], raw[4:20])
	copy(token[:], raw[20:])
	return ref, token, true
}
