package forward

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
	"sync"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// protocolHeader tells which form of commands and answers a replica knows.
const protocolHeader = "Nightshift-Protocol"

// Protocol names the form of commands and answers that this program knows: a digest of their fields and types, so that
// nobody has to remember to count it up. What two programs mean by the same form is the same.
var Protocol = sync.OnceValue(func() string {
	return protocolOf(reflect.TypeFor[engine.Command](), reflect.TypeFor[engine.Answer]())
})

func protocolOf(types ...reflect.Type) string {
	hash := sha256.New()
	for _, t := range types {
		writeShape(hash, t, map[reflect.Type]bool{})
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// writeShape writes what JSON makes of a type: its fields with their tags, and theirs.
func writeShape(out io.Writer, t reflect.Type, seen map[reflect.Type]bool) {
	fmt.Fprintf(out, "%s %s;", t.Kind(), t.Name())
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		writeShape(out, t.Elem(), seen)
	case reflect.Array:
		fmt.Fprint(out, t.Len())
		writeShape(out, t.Elem(), seen)
	case reflect.Map:
		writeShape(out, t.Key(), seen)
		writeShape(out, t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				fmt.Fprintf(out, "%s %q:", f.Name, f.Tag.Get("json"))
				writeShape(out, f.Type, seen)
			}
		}
	}
}

// protocolError says that the brain is of another version.
type protocolError struct{ known *models.Error }

func (e *protocolError) Error() string { return e.known.Error() }

// Unwrap gives what callers are told.
func (e *protocolError) Unwrap() error { return e.known }

func otherProtocol(theirs, own string) error {
	err := models.Errorf(models.Unavailable, "the replica that decides is of another version than the one that was asked: it speaks the protocol %s, not %q", own, theirs)
	err.RetryAfterSeconds = 5
	return &protocolError{err}
}
