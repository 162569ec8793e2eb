package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"nightshift/scheduler/sim"
)

// at is an error with its line.
func at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...))
}

// strictly decodes a mapping that has these fields and no others.
func strictly(n *yaml.Node, into any, fields ...string) error {
	if n.Kind != yaml.MappingNode {
		return at(n, "want one value, or %s", strings.Join(fields, ", "))
	}
	for i := 0; i < len(n.Content); i += 2 {
		if !slices.Contains(fields, n.Content[i].Value) {
			return at(n.Content[i], "there is no field %q here, only %s", n.Content[i].Value, strings.Join(fields, ", "))
		}
	}
	return n.Decode(into)
}

// Read reads a scenario.
func Read(r io.Reader) (sim.Scenario, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return sim.Scenario{}, err
	}
	var f file
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); errors.Is(err, io.EOF) {
		return sim.Scenario{}, errors.New("the file is empty")
	} else if err != nil {
		return sim.Scenario{}, plain(err)
	}
	if err := decoder.Decode(&file{}); !errors.Is(err, io.EOF) {
		return sim.Scenario{}, errors.New("a scenario is one document")
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return sim.Scenario{}, plain(err)
	}
	return compile(&f, places(&root))
}

var (
	unknown = regexp.MustCompile(`field (\S+) not found in type \S+`)
	wrong   = regexp.MustCompile("cannot unmarshal \\S+ (`[^`]*`)? ?into (\\S+)")
)

// plain says what YAML's reader found in words that name no type of this program.
func plain(err error) error {
	var list *yaml.TypeError
	lines := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if errors.As(err, &list) {
		lines = list.Errors
	}
	for i := range lines {
		lines[i] = unknown.ReplaceAllString(lines[i], `there is no field "$1" here`)
		lines[i] = wrong.ReplaceAllString(lines[i], "$1 cannot be read as $2")
		lines[i] = strings.NewReplacer("scenario.", "", "time.Duration", "a span of time like 90s").Replace(lines[i])
	}
	return errors.New(strings.Join(lines, "; "))
}

// where tells the line of the n-th entry of a section.
type where map[string][]int

func places(root *yaml.Node) where {
	out := where{}
	if len(root.Content) == 0 || root.Content[0].Kind != yaml.MappingNode {
		return out
	}
	top := root.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		for _, entry := range top[i+1].Content {
			out[top[i].Value] = append(out[top[i].Value], entry.Line)
		}
	}
	return out
}

func (w where) wrong(section string, n int, format string, args ...any) error {
	said := fmt.Sprintf(format, args...)
	if n < len(w[section]) {
		return fmt.Errorf("line %d: %s", w[section][n], said)
	}
	return errors.New(said)
}
