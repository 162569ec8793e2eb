package web

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"nightshift/handlers"
)

// shapes turns Go types into JSON schemas; named structs become components.
type shapes struct {
	named object
	names map[string]string // name → the type that has it
}

func (s *shapes) of(v any) any {
	switch v := v.(type) {
	case handlers.Schema:
		return object(v)
	case handlers.Either:
		forms := make([]any, len(v))
		for i := range v {
			forms[i] = s.of(v[i])
		}
		return object{"anyOf": forms}
	}
	return s.schema(reflect.TypeOf(v))
}

var (
	timeType    = reflect.TypeFor[handlers.Time]()
	typedIDType = reflect.TypeFor[handlers.TypedID]()
	laterType   = reflect.TypeFor[handlers.Later]()
	rawType     = reflect.TypeFor[json.RawMessage]()
	goTimeType  = reflect.TypeFor[time.Time]()
)

func (s *shapes) schema(t reflect.Type) object {
	switch t {
	case timeType:
		return object{"type": []string{"string", "null"}, "format": "date-time"}
	case goTimeType:
		return object{"type": "string", "format": "date-time"}
	case typedIDType:
		return object{"type": []string{"string", "null"}}
	case rawType:
		return object{}
	case laterType:
		return object{"type": "null", "description": "not built yet"}
	}
	if wrapped, ok := reflect.Zero(t).Interface().(interface{ Inner() reflect.Type }); ok {
		return nullable(s.schema(wrapped.Inner()))
	}
	switch t.Kind() {
	case reflect.Pointer:
		return nullable(s.schema(t.Elem()))
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "items": s.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.schema(t.Elem())}
	case reflect.Struct:
		return s.structure(t)
	}
	return object{} // an interface: anything
}

func nullable(schema object) object {
	switch kind := schema["type"].(type) {
	case string:
		schema["type"] = []string{kind, "null"}
		return schema
	case []string:
		return schema
	}
	if len(schema) == 0 {
		return schema
	}
	return object{"anyOf": []object{schema, {"type": "null"}}}
}

// structure describes a struct as a component, or in place where it has no name.
func (s *shapes) structure(t reflect.Type) object {
	if t.Name() == "" {
		return s.members(t)
	}
	name := s.componentName(t)
	if _, done := s.named[name]; !done {
		s.named[name] = object{} // it may hold itself
		s.named[name] = s.members(t)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

var packagePath = regexp.MustCompile(`[a-zA-Z0-9_/.-]*/?[a-zA-Z0-9_-]+\.`)

// componentName is the type's name, with its package where two packages use the same.
func (s *shapes) componentName(t reflect.Type) string {
	name := notWord.ReplaceAllString(packagePath.ReplaceAllString(t.Name(), ""), "")
	full := t.PkgPath() + "." + t.Name()
	for base, i := name, 2; s.names[name] != "" && s.names[name] != full; i++ {
		name = base + strconv.Itoa(i)
	}
	s.names[name] = full
	return name
}

func (s *shapes) members(t reflect.Type) object {
	properties, required := object{}, []string{}
	s.collect(t, properties, &required)
	out := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func (s *shapes) collect(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",") // presence is said by `required`, not by omitempty
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			s.collect(f.Type, properties, required)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		properties[name] = s.member(f)
		if f.Tag.Get("required") == "true" {
			*required = append(*required, name)
		}
	}
}

func (s *shapes) member(f reflect.StructField) object {
	schema := s.schema(f.Type)
	if _, isRef := schema["$ref"]; isRef {
		if doc := f.Tag.Get("doc"); doc != "" {
			schema["description"] = doc
		}
		return schema
	}
	if doc := f.Tag.Get("doc"); doc != "" {
		schema["description"] = doc
	}
	if words := f.Tag.Get("enum"); words != "" {
		target := schema
		if items, ok := schema["items"].(object); ok {
			target = items
		}
		target["enum"] = strings.Split(words, ",")
	}
	for _, bound := range []string{"minimum", "maximum", "maxLength", "minLength", "maxItems"} {
		if n, err := strconv.ParseFloat(f.Tag.Get(bound), 64); err == nil {
			schema[bound] = n
		}
	}
	return schema
}
