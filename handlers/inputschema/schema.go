package inputschema

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

const (
	// MostBytes is how large a schema may be.
	MostBytes = 64 << 10
	// mostProblems is how many are told of one payload.
	mostProblems = 20
	// mostWork bounds a check, in steps of about a tenth of a microsecond.
	mostWork = 500_000
)

// Schema is one that was compiled. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema

	mu   sync.Mutex
	work int // that the running check did
}

// Problem is what is wrong with a payload, and where: Path is like ".items[3].name", empty for the payload itself.
type Problem struct{ Path, Message string }

// errWork ends a check that costs too much.
var errWork = errors.New("too much work")

// nothing is the loader of schemas that refer to nothing outside themselves.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s: a schema stands alone", shortened(url))
}

// Compile reads a schema. The error says what is wrong with it.
func Compile(text []byte) (s *Schema, err error) {
	if len(text) > MostBytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), MostBytes)
	}
	doc, err := decoded(text)
	if err != nil {
		return nil, err
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, errors.New("a schema is an object, or true or false")
	}
	if err := plain(doc); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	const name = "schema:input"
	if err := c.AddResource(name, doc); err != nil {
		return nil, errors.New(shortened(err.Error()))
	}
	compiled, err := c.Compile(name)
	if err != nil {
		return nil, errors.New(shortened(strings.ReplaceAll(err.Error(), name+"#", "")))
	}
	s = &Schema{compiled: compiled}
	if err := s.count(compiled, map[*jsonschema.Schema]bool{}); err != nil {
		return nil, err
	}
	return s, nil
}

// Check says what is wrong with a payload; nothing: it is as the schema wants it. No payload is null.
func (s *Schema) Check(payload []byte) []Problem {
	if len(bytes.TrimSpace(payload)) == 0 {
		payload = []byte("null")
	}
	value, err := decoded(payload)
	if err != nil {
		return []Problem{{"", err.Error()}}
	}
	err = s.validate(value)
	var failed *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return problems(failed, nil)
	}
	return []Problem{{"", "it takes too much work to check it by its input schema"}}
}

func (s *Schema) validate(value any) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = 0
	defer func() {
		if p := recover(); p != nil {
			if p != errWork { //nolint:errorlint // it is our own, as it was thrown
				panic(p)
			}
			err = errWork
		}
	}()
	return s.compiled.Validate(value)
}

func (s *Schema) does(steps int) {
	if s.work += steps; s.work > mostWork {
		panic(errWork)
	}
}

var english = message.NewPrinter(language.English)

// problems lists the innermost causes of a failure.
func problems(e *jsonschema.ValidationError, out []Problem) []Problem {
	if len(out) >= mostProblems {
		return out
	}
	if len(e.Causes) == 0 {
		return append(out, Problem{pathOf(e.InstanceLocation), shortened(e.ErrorKind.LocalizedString(english))})
	}
	for _, cause := range e.Causes {
		out = problems(cause, out)
	}
	return out
}

func pathOf(location []string) string {
	var path strings.Builder
	for _, step := range location {
		if strings.Trim(step, "0123456789") == "" && step != "" {
			path.WriteString("[" + step + "]")
		} else {
			path.WriteString("." + step)
		}
	}
	return shortened(path.String())
}

func shortened(text string) string {
	const most = 300
	text = strings.ToValidUTF8(text, "")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
