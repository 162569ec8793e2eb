package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// difference says where two values differ first; empty when they are the same. Nothing and an empty list are the same,
// because a database knows no difference.
func difference(a, b any) string { return differ(reflect.ValueOf(a), reflect.ValueOf(b)) }

var rawJSON = reflect.TypeFor[json.RawMessage]()

// differ is difference below. The place is put together on the way out, so that what is the same costs no words.
func differ(a, b reflect.Value) string {
	if !a.IsValid() || !b.IsValid() {
		if a.IsValid() != b.IsValid() {
			return ": only one is there"
		}
		return ""
	}
	if a.Type() != b.Type() {
		return fmt.Sprintf(": %s and %s", a.Type(), b.Type())
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				return unlike(a, b)
			}
			return ""
		}
		return differ(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if d := differ(a.Field(i), b.Field(i)); d != "" {
				return "." + a.Type().Field(i).Name + d
			}
		}
		return ""
	case reflect.Slice:
		if a.Type() == rawJSON && bytes.Equal(text(a), text(b)) {
			return ""
		}
		return differList(a, b)
	case reflect.Array:
		return differList(a, b)
	case reflect.Map:
		return differMap(a, b)
	}
	if !a.Equal(b) {
		return unlike(a, b)
	}
	return ""
}

func unlike(a, b reflect.Value) string { return fmt.Sprintf(": %s and %s", show(a), show(b)) }

// text is a JSON text; null, which nothing becomes on its way between replicas, is nothing.
func text(v reflect.Value) []byte {
	if bytes.Equal(v.Bytes(), []byte("null")) {
		return nil
	}
	return v.Bytes()
}

func differList(a, b reflect.Value) string {
	if a.Len() != b.Len() {
		return fmt.Sprintf(": %d and %d of them: %s and %s", a.Len(), b.Len(), show(a), show(b))
	}
	if a.Type().Elem().Kind() == reflect.Uint8 {
		if !bytes.Equal(octets(a), octets(b)) {
			return fmt.Sprintf(": %x and %x", octets(a), octets(b))
		}
		return ""
	}
	for i := range a.Len() {
		if d := differ(a.Index(i), b.Index(i)); d != "" {
			return fmt.Sprintf("[%d]%s", i, d)
		}
	}
	return ""
}

// octets are a list of bytes; of an array that can't be pointed to, a copy.
func octets(v reflect.Value) []byte {
	if v.Kind() == reflect.Slice || v.CanAddr() {
		return v.Bytes()
	}
	out := make([]byte, v.Len())
	reflect.Copy(reflect.ValueOf(out), v)
	return out
}

// differMap tells of the first key in their order that makes a difference.
func differMap(a, b reflect.Value) string {
	var keys []reflect.Value
	for k, v := range a.Seq2() {
		if differ(v, b.MapIndex(k)) != "" {
			keys = append(keys, k)
		}
	}
	for k := range b.Seq() {
		if !a.MapIndex(k).IsValid() {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	k := slices.MinFunc(keys, func(a, b reflect.Value) int { return bytes.Compare(fmt.Append(nil, a), fmt.Append(nil, b)) })
	return fmt.Sprintf("[%v]%s", k, differ(a.MapIndex(k), b.MapIndex(k)))
}

// show is a value in few enough words for one line.
func show(v reflect.Value) string {
	text := fmt.Sprintf("%+v", v)
	if len(text) > 400 {
		text = text[:400] + "…"
	}
	return text
}
