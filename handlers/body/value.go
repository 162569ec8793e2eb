package body

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"nightshift/models"
)

// Value is one JSON value at its place. Its text is valid and without space around it.
type Value struct {
	Text []byte
	At   string
	p    *Problems
}

// Open checks that text is JSON and gives its value.
func Open(text []byte, at string, p *Problems) (Value, error) {
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return Value{}, models.Errorf(models.InvalidJSON, "a JSON body is needed here")
	}
	if err := valid(text); err != nil {
		return Value{}, err
	}
	return Value{text, at, p}, nil
}

func valid(text []byte) error {
	switch {
	case !utf8.Valid(text):
		return models.Errorf(models.InvalidJSON, "the body is not UTF-8")
	case !json.Valid(text):
		var any json.RawMessage
		return models.Errorf(models.InvalidJSON, "the body is not JSON: %v", json.Unmarshal(text, &any))
	}
	return nil
}

// Wrong says that something is wrong with the value.
func (v Value) Wrong(format string, args ...any) { v.p.Addf(v.At, format, args...) }

// Null says that the value is null.
func (v Value) Null() bool { return v.Text[0] == 'n' }

// IsObject, IsArray and IsString tell what the value is.
func (v Value) IsObject() bool { return v.Text[0] == '{' }

// IsArray tells whether the value is a list.
func (v Value) IsArray() bool { return v.Text[0] == '[' }

// IsString tells whether the value is a string.
func (v Value) IsString() bool { return v.Text[0] == '"' }

// Members calls f with each member of an object, in order. A name that stands twice is wrong.
func (v Value) Members(f func(name string, m Value)) {
	if !v.IsObject() {
		v.Wrong("must be an object")
		return
	}
	var seen names
	b := v.Text
	for i := space(b, 1); b[i] != '}'; {
		end := skip(b, i)
		name, broken := text(b[i:end]), half(b[i:end], 0) >= 0
		i = space(b, space(b, end)+1) // the colon
		end = skip(b, i)
		m := Value{b[i:end], "", v.p}
		m.At = Dot(v.At, name)
		switch {
		case broken:
			m.Wrong("has a name with " + halfWrong)
		case seen.add(name):
			f(name, m)
		default:
			m.Wrong("is given twice")
		}
		if i = space(b, end); b[i] == ',' {
			i = space(b, i+1)
		}
	}
}

// names are those of one object: few are searched in a row, many by a map.
type names struct {
	few  []string
	many map[string]bool
}

const few = 32

// add tells whether the name is new.
func (n *names) add(name string) bool {
	if n.many == nil {
		if slices.Contains(n.few, name) {
			return false
		}
		if n.few = append(n.few, name); len(n.few) > few {
			n.many = map[string]bool{}
			for _, f := range n.few {
				n.many[f] = true
			}
		}
		return true
	}
	if n.many[name] {
		return false
	}
	n.many[name] = true
	return true
}

// Elements calls f with each element of a list, in order, and tells how many there are.
func (v Value) Elements(f func(i int, e Value)) int {
	if !v.IsArray() {
		v.Wrong("must be a list")
		return 0
	}
	b, n := v.Text, 0
	for i := space(b, 1); b[i] != ']'; n++ {
		end := skip(b, i)
		f(n, Value{b[i:end], At(v.At, n), v.p})
		if i = space(b, end); b[i] == ',' {
			i = space(b, i+1)
		}
	}
	return n
}

// String reads a string of least to most bytes without NUL and without halves of surrogate pairs.
func (v Value) String(least, most int) string {
	if !v.IsString() {
		v.Wrong("must be a string")
		return ""
	}
	s := text(v.Text)
	switch {
	case strings.IndexByte(s, 0) >= 0:
		v.Wrong("must not hold NUL")
	case v.HoldsHalf():
		v.Wrong("must not hold " + halfWrong)
	case len(s) < least && least == 1:
		v.Wrong("must not be empty")
	case len(s) < least:
		v.Wrong("must have at least %d bytes", least)
	case len(s) > most:
		v.Wrong("must have at most %d bytes", most)
	default:
		return s
	}
	return ""
}

// Loose reads a string of any length that may hold NUL: what programs wrote for people. Half of a surrogate pair is U+FFFD.
func (v Value) Loose() string {
	if !v.IsString() {
		v.Wrong("must be a string")
		return ""
	}
	return text(v.Text)
}

// Name reads a name as the whole API has them.
func (v Value) Name() string {
	s := v.String(1, 128)
	if s != "" && !IsName(s) {
		v.Wrong("must match ^[a-z0-9][a-z0-9._:-]{0,127}$")
		return ""
	}
	return s
}

// IsName says whether s is a name: ^[a-z0-9][a-z0-9._:-]{0,127}$.
func IsName(s string) bool {
	if len(s) == 0 || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		word := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !word && (i == 0 || c != '.' && c != '_' && c != ':' && c != '-') {
			return false
		}
	}
	return true
}

// OneOf reads a string that is one of the words.
func (v Value) OneOf(words ...string) string {
	if v.IsString() {
		s := text(v.Text)
		for _, w := range words {
			if s == w {
				return s
			}
		}
	}
	v.Wrong("must be one of %s", strings.Join(words, ", "))
	return ""
}

// Bool reads true or false.
func (v Value) Bool() bool {
	switch v.Text[0] {
	case 't':
		return true
	case 'f':
		return false
	}
	v.Wrong("must be true or false")
	return false
}

// Int reads a whole number from least to most; 3.0 and 3e0 are whole.
func (v Value) Int(least, most int64) int64 {
	n, err := strconv.ParseInt(string(v.Text), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(v.Text), 64)
		switch {
		case !number(v.Text) || err == nil && f != math.Trunc(f):
			v.Wrong("must be a whole number")
			return least
		case err != nil || f < float64(least) || f > float64(most):
			v.Wrong("must be from %d to %d", least, most)
			return least
		}
		n = int64(f)
	}
	if n < least || n > most {
		v.Wrong("must be from %d to %d", least, most)
		return least
	}
	return n
}

// Number reads a number from least to most.
func (v Value) Number(least, most float64) float64 {
	f, err := strconv.ParseFloat(string(v.Text), 64)
	switch {
	case !number(v.Text):
		v.Wrong("must be a number")
		return least
	case err != nil || f < least || f > most:
		v.Wrong("must be from %s to %s", plain(least), plain(most))
		return least
	}
	return f
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Time reads a moment in RFC 3339; digits below the microsecond are cut.
func (v Value) Time() models.Instant {
	if v.IsString() {
		if t, err := time.Parse(time.RFC3339, text(v.Text)); err == nil && t.UTC().Year() >= 1970 && t.UTC().Year() <= 9000 {
			return models.NamedInstant(t)
		}
	}
	v.Wrong("must be a time as RFC 3339 writes it, like 2026-09-17T21:00:00Z")
	return 0
}

// Words reads an object of strings.
func (v Value) Words(most, keyBytes, valueBytes int) map[string]string {
	words := map[string]string{}
	n := 0
	v.Members(func(name string, m Value) {
		if n++; n > most {
			return
		}
		if name == "" || len(name) > keyBytes || strings.IndexByte(name, 0) >= 0 {
			m.Wrong("must have a key of 1 to %d bytes without NUL", keyBytes)
		}
		words[name] = m.String(0, valueBytes)
	})
	if n > most {
		v.Wrong("must have at most %d entries", most)
	}
	return words
}

// Raw is the value's own text, copied, of at most most bytes, without NUL and halves of surrogate pairs; nil for null.
func (v Value) Raw(most int) json.RawMessage {
	switch {
	case v.Null():
		return nil
	case len(v.Text) > most:
		v.Wrong("must have at most %d bytes", most)
		return nil
	case !v.free():
		return nil
	}
	return bytes.Clone(v.Text)
}

// Whole is the value's own text, copied, of any length, without NUL and halves of surrogate pairs; also of null.
func (v Value) Whole() []byte {
	v.free()
	return bytes.Clone(v.Text)
}

// holdsNUL finds the escape of NUL in valid JSON; a doubled backslash before "u0000" is none.
func holdsNUL(b []byte) bool {
	for {
		i := bytes.Index(b, []byte(`\u0000`))
		if i < 0 {
			return false
		}
		slashes := 1
		for j := i - 1; j >= 0 && b[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 1 {
			return true
		}
		b = b[i+6:]
	}
}

// Empty says that the value is an empty list or object.
func (v Value) Empty() bool {
	return (v.IsArray() || v.IsObject()) && space(v.Text, 1) == len(v.Text)-1
}

func number(b []byte) bool { return b[0] == '-' || '0' <= b[0] && b[0] <= '9' }

// text is what a JSON string says.
func text(b []byte) string {
	inner := b[1 : len(b)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}

// space is the first place from i on that is no space.
func space(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r' {
		i++
	}
	return i
}

// skip is the place behind the value that begins at i; b is valid JSON.
func skip(b []byte, i int) int {
	depth := 0
	for {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ' ', '\n', '\t', '\r', ',', ':':
			i++
			continue
		default:
			for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}

func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}
