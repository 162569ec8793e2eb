package inputschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// mostDigits and mostExponent bound numbers: beyond any that a payload means, exact arithmetic costs without bound.
const (
	mostDigits   = 200
	mostExponent = 400
	mostPattern  = 1_000
)

// decoded reads JSON whose numbers stay as they were written.
func decoded(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, errors.New("it is no JSON")
	}
	if decoder.More() {
		return nil, errors.New("it is no JSON")
	}
	return value, numbers(value)
}

// numbers refuses those that are beyond all reason.
func numbers(value any) error {
	switch v := value.(type) {
	case json.Number:
		text := string(v)
		if i := strings.IndexAny(text, "eE"); i >= 0 {
			if n, err := strconv.Atoi(text[i+1:]); err != nil || n > mostExponent || n < -mostExponent {
				return fmt.Errorf("the number %s is out of range", shortened(text))
			}
		}
		if len(text) > mostDigits {
			return errors.New("a number has too many digits")
		}
	case []any:
		for _, item := range v {
			if err := numbers(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v { // any order: whichever is refused
			if err := numbers(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// plain refuses what is resolved only while a payload is looked at, so that all of a schema is known once it is compiled.
func plain(doc any) error {
	switch v := doc.(type) {
	case []any:
		for _, item := range v {
			if err := plain(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, item := range v { // any order: whichever is refused
			if name == "$dynamicRef" || name == "$recursiveRef" {
				return fmt.Errorf("%s is not supported", name)
			}
			if text, ok := item.(string); ok && name == "pattern" && len(text) > mostPattern {
				return fmt.Errorf("a pattern has at most %d bytes", mostPattern)
			}
			if err := plain(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// count makes every part of a schema count what it does: the part's format, which is asked before anything below it. Its
// enum, of whatever length, becomes one look-up.
func (s *Schema) count(part *jsonschema.Schema, seen map[*jsonschema.Schema]bool) error {
	if part == nil || seen[part] {
		return nil
	}
	seen[part] = true
	below, err := partsOf(part)
	if err != nil {
		return err
	}
	inner, allowed := part.Format, enumOf(part)
	steps := 1 + len(part.Required) + len(part.Properties) + len(part.PatternProperties)*8 + len(part.DependentRequired)
	matches := part.Pattern != nil || len(part.PatternProperties) > 0
	part.Enum = nil
	part.Format = &jsonschema.Format{Name: "input", Validate: func(v any) error {
		n := steps
		if text, ok := v.(string); ok && matches {
			n += 4 * len(text)
		}
		s.does(n)
		if allowed != nil && !allowed.has(v) {
			return errors.New("it is " + allowed.words)
		}
		if inner != nil {
			return inner.Validate(v)
		}
		return nil
	}}
	for _, b := range below {
		if err := s.count(b, seen); err != nil {
			return err
		}
	}
	return nil
}

// partsOf are the schemas right below one.
func partsOf(p *jsonschema.Schema) (out []*jsonschema.Schema, err error) {
	if p.DynamicRef != nil || p.RecursiveRef != nil {
		return nil, errors.New("references that are resolved late are not supported")
	}
	out = append(out, p.Ref, p.Not, p.If, p.Then, p.Else, p.PropertyNames, p.UnevaluatedProperties, p.Contains, p.Items2020,
		p.UnevaluatedItems, p.ContentSchema)
	out = slices.Concat(out, p.AllOf, p.AnyOf, p.OneOf, p.PrefixItems)
	for _, of := range []map[string]*jsonschema.Schema{p.Properties, p.DependentSchemas} {
		for _, below := range of { // any order: each is counted
			out = append(out, below)
		}
	}
	for _, below := range p.PatternProperties { // any order: each is counted
		out = append(out, below)
	}
	loose := []any{p.AdditionalProperties, p.Items, p.AdditionalItems}
	for _, below := range p.Dependencies { // any order: each is counted
		loose = append(loose, below)
	}
	for _, v := range loose {
		switch v := v.(type) {
		case *jsonschema.Schema:
			out = append(out, v)
		case []*jsonschema.Schema:
			out = append(out, v...)
		}
	}
	return out, nil
}

// enum is a list of allowed values to be looked up.
type enum struct {
	known map[string]bool
	words string
}

func enumOf(p *jsonschema.Schema) *enum {
	if p.Enum == nil {
		return nil
	}
	e := &enum{known: map[string]bool{}}
	var words []string
	for _, v := range p.Enum.Values {
		e.known[canonical(v)] = true
		words = append(words, canonical(v))
	}
	e.words = "none of " + shortened(strings.Join(words, ", "))
	return e
}

func (e *enum) has(v any) bool { return e.known[canonical(v)] }

// canonical is a text that two equal values share.
func canonical(value any) string {
	switch v := value.(type) {
	case json.Number:
		if r, ok := new(big.Rat).SetString(string(v)); ok {
			return r.RatString()
		}
		return string(v)
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = canonical(item)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		parts := make([]string, 0, len(v))
		for name, item := range v { // any order: sorted below
			parts = append(parts, strconv.Quote(name)+":"+canonical(item))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(value)
}
