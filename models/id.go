package models

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// ID is a UUIDv7: 48 bits of milliseconds, then version, variant and random bits, so ids sort by when they were made.
// On the wire it is a TypeID: a prefix, an underscore and 26 characters of base32.
type ID [16]byte

// The prefixes of TypeIDs, one a noun.
const (
	TaskPrefix        = "task"
	WorkflowPrefix    = "wf"
	SchedulePrefix    = "sch"
	RunPrefix         = "run"
	WorkerPrefix      = "wrk"
	AttemptPrefix     = "att"
	TenantPrefix      = "ten"
	EnvironmentPrefix = "env"
	UserPrefix        = "usr"
	KeyPrefix         = "key"
	BulkPrefix        = "blk"
	EventPrefix       = "evt"
	ItemPrefix        = "itm"
	BudgetPrefix      = "bud"
)

const base32 = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID makes a UUIDv7 of the moment at from ten random bytes.
func NewID(at Instant, entropy [10]byte) ID {
	var id ID
	ms := uint64(at) / 1000
	id[0], id[1], id[2] = byte(ms>>40), byte(ms>>32), byte(ms>>24)
	id[3], id[4], id[5] = byte(ms>>16), byte(ms>>8), byte(ms)
	copy(id[6:], entropy[:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// At is the moment the id was made, to the millisecond.
func (id ID) At() Instant {
	return Instant(binary.BigEndian.Uint64(id[:8])>>16) * 1000
}

// IsZero says that there is no id.
func (id ID) IsZero() bool { return id == ID{} }

// Compare orders ids by their bytes, as PostgreSQL orders uuid.
func (id ID) Compare(other ID) int {
	for i := range id {
		if id[i] != other[i] {
			if id[i] < other[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// Text is the TypeID: prefix_ and 26 characters; the empty string for the zero id.
func (id ID) Text(prefix string) string {
	if id.IsZero() {
		return ""
	}
	var out [26]byte
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	for i := 25; i >= 0; i-- {
		out[i] = base32[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return prefix + "_" + string(out[:])
}

// ParseID reads a TypeID with exactly this prefix. Anything else is not_found: a malformed id names nothing,
// and the zero id is nobody's.
func ParseID(prefix, text string) (ID, error) {
	rest, ok := strings.CutPrefix(text, prefix+"_")
	if !ok || len(rest) != 26 || rest[0] > '7' {
		return ID{}, Errorf(NotFound, "there is no %q here", text)
	}
	var hi, lo uint64
	for i := range len(rest) {
		v := strings.IndexByte(base32, rest[i])
		if v < 0 {
			return ID{}, Errorf(NotFound, "there is no %q here", text)
		}
		hi = hi<<5 | lo>>59
		lo = lo<<5 | uint64(v)
	}
	var id ID
	binary.BigEndian.PutUint64(id[:8], hi)
	binary.BigEndian.PutUint64(id[8:], lo)
	if id.IsZero() {
		return ID{}, Errorf(NotFound, "there is no %q here", text)
	}
	return id, nil
}

// MarshalText writes 32 hexadecimal digits: the form between replicas, never shown to callers.
func (id ID) MarshalText() ([]byte, error) {
	return hex.AppendEncode(nil, id[:]), nil
}

// UnmarshalText reads what MarshalText wrote.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) != 32 {
		return Errorf(InvalidRequest, "an id has 32 hexadecimal digits, not %d", len(text))
	}
	_, err := hex.Decode(id[:], text)
	return err
}
