package inputschema_test

import (
	"fmt"
	"strings"
	"testing"

	"nightshift/handlers/inputschema"
)

func compiled(t *testing.T, text string) *inputschema.Schema {
	t.Helper()
	s, err := inputschema.Compile([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func TestPayloadsAreChecked(t *testing.T) {
	mail := `{"type": "object", "required": ["to"], "additionalProperties": false, "properties": {
		"to": {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^[^@]+@[^@]+$"}},
		"copies": {"type": "integer", "minimum": 1, "maximum": 10}, "lang": {"enum": ["en", "de", 1, null, {"a": [1]}]}}}`
	for _, c := range []struct{ schema, payload, path, message string }{
		{mail, `{"to": ["a@b"], "copies": 2, "lang": "de"}`, "", ""},
		{mail, `{"to": ["a@b"], "lang": 1.0}`, "", ""},
		{mail, `{"to": ["a@b"], "lang": {"a": [1.0]}}`, "", ""},
		{mail, `{"to": ["a@b", "nobody"]}`, ".to[1]", "pattern"},
		{mail, `{"to": []}`, ".to", "minItems"},
		{mail, `{"copies": 2}`, "", "to"},
		{mail, `{"to": ["a@b"], "copies": 11}`, ".copies", "maximum"},
		{mail, `{"to": ["a@b"], "copies": "2"}`, ".copies", "want integer"},
		{mail, `{"to": ["a@b"], "lang": "fr"}`, ".lang", "none of"},
		{mail, `{"to": ["a@b"], "cc": []}`, "", "cc"},
		{mail, ``, "", "want object"},
		{`true`, ``, "", ""},
		{`false`, `1`, "", "false"},
		{`{"$defs": {"n": {"type": "number"}}, "items": {"$ref": "#/$defs/n"}}`, `[1, "2"]`, "[1]", "want number"},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {"type": "null"}}, "properties": {"a": {"$ref": "#/definitions/n"}}}`, `{"a": 1}`, ".a", "want null"},
		{`{"minimum": 0}`, `1e999999999`, "", "out of range"},
		{`{"minimum": 0}`, `1e-999999999`, "", "out of range"},
		{`{"minimum": 0}`, strings.Repeat("9", 300), "", "digits"},
	} {
		got := compiled(t, c.schema).Check([]byte(c.payload))
		switch {
		case c.message == "" && len(got) > 0:
			t.Errorf("%s: %v", c.payload, got)
		case c.message != "" && (len(got) == 0 || got[0].Path != c.path || !strings.Contains(got[0].Message, c.message)):
			t.Errorf("%s: %v, want %s: %s", c.payload, got, c.path, c.message)
		}
	}
}

func TestSchemasThatAreNone(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": `{`, "a number": `1`, "a text": `"x"`, "null": `null`, "an unknown type": `{"type": "strung"}`, "a bad pattern": `{"pattern": "("}`,
		"an address": `{"$ref": "https://example.com/schema.json"}`, "a file": `{"$ref": "file:///etc/passwd"}`, "a metaschema elsewhere": `{"$schema": "https://example.com/meta"}`,
		"a missing part": `{"$ref": "#/$defs/none"}`, "a late reference": `{"$dynamicRef": "#node"}`, "too large": `{"description": "` + strings.Repeat("x", inputschema.MostBytes) + `"}`,
		"a long pattern": `{"pattern": "` + strings.Repeat("x", 2000) + `"}`, "a huge number": `{"maximum": 1e9999999}`,
	} {
		if _, err := inputschema.Compile([]byte(text)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// However a schema is meant, one payload costs little: exponential ones, wide ones, and many problems.
func TestNoSchemaCostsMuch(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	many := "[" + strings.TrimSuffix(strings.Repeat("{},", 80_000), ",") + "]"
	var names, words []string
	for i := range 5_000 {
		names, words = append(names, fmt.Sprintf(`"n%d"`, i)), append(words, fmt.Sprintf("%d", i))
	}
	for name, c := range map[string]struct{ schema, payload, message string }{
		"twice at each step":      {`{"$defs": {"r": {"allOf": [{"properties": {"a": {"$ref": "#/$defs/r"}}}, {"properties": {"a": {"$ref": "#/$defs/r"}}}]}}, "$ref": "#/$defs/r"}`, deep, "too much work"},
		"twice and unsaid":        {`{"$defs": {"r": {"type": "object", "anyOf": [{"properties": {"a": {"$ref": "#/$defs/r"}}}, {"properties": {"a": {"$ref": "#/$defs/r"}}}]}}, "not": {"$ref": "#/$defs/r"}}`, deep, "too much work"},
		"many names":              {`{"items": {"required": [` + strings.Join(names, ",") + `]}}`, many, "too much work"},
		"many words":              {`{"items": {"enum": [` + strings.Join(words, ",") + `]}}`, many, "none of"},
		"many problems":           {`{"items": {"type": "string"}}`, many, "want string"},
		"a reference to itself":   {`{"$defs": {"r": {"$ref": "#/$defs/r"}}, "$ref": "#/$defs/r"}`, `1`, "cycle"},
		"a long text and pattern": {`{"pattern": "^(a?){500}a{500}$"}`, `"` + strings.Repeat("a", 250_000) + `"`, "too much work"},
	} {
		got := compiled(t, c.schema).Check([]byte(c.payload))
		if len(got) == 0 || len(got) > 20 || !strings.Contains(got[0].Message, c.message) {
			t.Errorf("%s: %d problems, %v", name, len(got), got[:min(len(got), 1)])
		}
	}
}
