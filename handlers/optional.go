package handlers

import (
	"errors"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Opt is a field of a merge: not given, given as null, or given with a value.
type Opt[T any] struct {
	Given bool
	Null  bool
	Value T
}

// UnmarshalJSONFrom reads the field, as strictly as what is around it.
func (o *Opt[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	o.Given = true
	if dec.PeekKind() == 'n' {
		o.Null = true
		return dec.SkipValue()
	}
	return json.UnmarshalDecode(dec, &o.Value)
}

// Inner is the type on the wire, for the OpenAPI document.
func (Opt[T]) Inner() reflect.Type { return reflect.TypeFor[T]() }

// Into merges the field into what stands: null gives the preset.
func (o Opt[T]) Into(stands *T, preset T) {
	switch {
	case o.Null:
		*stands = preset
	case o.Given:
		*stands = o.Value
	}
}

// Or is the value, or the preset where none was given.
func (o Opt[T]) Or(preset T) T {
	if !o.Given || o.Null {
		return preset
	}
	return o.Value
}

// Later is a field of the contract that is not built yet: it is refused by name, never accepted and ignored. Null, which
// asks for nothing, passes.
type Later struct{}

var errLater = errors.New("this is not built yet")

// UnmarshalJSONFrom refuses all but null.
func (*Later) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == 'n' {
		return dec.SkipValue()
	}
	return errLater
}
