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
func difference(a, b any) string { return differ("", reflect.ValueOf(a), reflect.ValueOf(b)) }

var rawJSON = reflect.TypeFor[json.RawMessage]()

func differ(path string, a, b reflect.Value) string {
	if !a.IsValid() || !b.IsValid() {
		if a.IsValid() != b.IsValid() {
			return fmt.Sprintf("%s: only one is there", path)
		}
		return ""
	}
	if a.Type() != b.Type() {
		return fmt.Sprintf("%s: %s and %s", path, a.Type(), b.Type())
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				return fmt.Sprintf("%s: %s and %s", path, show(a), show(b))
			}
			return ""
		}
		return differ(path, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if d := differ(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i)); d != "" {
				return d
			}
		}
		return ""
	case reflect.Slice:
		if a.Type() == rawJSON && bytes.Equal(text(a), text(b)) {
			return ""
		}
		return differList(path, a, b)
	case reflect.Array:
		return differList(path, a, b)
	case reflect.Map:
		return differMap(path, a, b)
	}
	if !a.Equal(b) {
		return fmt.Sprintf("%s: %s and %s", path, show(a), show(b))
	}
	return ""
}

// text is a JSON text; null, which nothing becomes on its way between replicas, is nothing.
func text(v reflect.Value) []byte {
	if bytes.Equal(v.Bytes(), []byte("null")) {
		return nil
	}
	return v.Bytes()
}

func differList(path string, a, b reflect.Value) string {
	if a.Len() != b.Len() {
		return fmt.Sprintf("%s: %d and %d of them: %s and %s", path, a.Len(), b.Len(), show(a), show(b))
	}
	if a.Type().Elem().Kind() == reflect.Uint8 {
		if !bytes.Equal(octets(a), octets(b)) {
			return fmt.Sprintf("%s: %x and %x", path, octets(a), octets(b))
		}
		return ""
	}
	for i := range a.Len() {
		if d := differ(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i)); d != "" {
			return d
		}
	}
	return ""
}

// octets copies a list of bytes, addressable or not.
func octets(v reflect.Value) []byte {
	out := make([]byte, v.Len())
	reflect.Copy(reflect.ValueOf(out), v)
	return out
}

func differMap(path string, a, b reflect.Value) string {
	keys := a.MapKeys()
	for _, k := range b.MapKeys() {
		if !a.MapIndex(k).IsValid() {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b reflect.Value) int { return bytes.Compare(fmt.Append(nil, a), fmt.Append(nil, b)) })
	for _, k := range keys {
		if d := differ(fmt.Sprintf("%s[%v]", path, k), a.MapIndex(k), b.MapIndex(k)); d != "" {
			return d
		}
	}
	return ""
}

// show is a value in few enough words for one line.
func show(v reflect.Value) string {
	text := fmt.Sprintf("%+v", v)
	if len(text) > 400 {
		text = text[:400] + "…"
	}
	return text
}
