package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/templates"
)

// docs is the reference, drawn once at the start from the document itself. It lives under the policy of every page.
func (s *Server) docs(_ *handlers.Deps, c *fiber.Ctx) error {
	secureHeaders(c, nonceOf(c))
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	return c.Send(s.spec.page)
}

// described is the part of an OpenAPI document that the page shows.
type described struct {
	Info struct {
		Version     string `json:"version"`
		Description string `json:"description"`
	} `json:"info"`
	Tags []struct {
		Name string `json:"name"`
	} `json:"tags"`
	Paths      map[string]map[string]*describedOp `json:"paths"`
	Components struct {
		Schemas map[string]*shape `json:"schemas"`
	} `json:"components"`
}

type describedOp struct {
	ID          string   `json:"operationId"`
	Summary     string   `json:"summary"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	Parameters  []struct {
		Name        string `json:"name"`
		In          string `json:"in"`
		Required    bool   `json:"required"`
		Description string `json:"description"`
		Schema      *shape `json:"schema"`
	} `json:"parameters"`
	Body *struct {
		Required bool                    `json:"required"`
		Content  map[string]describedUse `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Description string                  `json:"description"`
		Content     map[string]describedUse `json:"content"`
	} `json:"responses"`
	Security []json.RawMessage `json:"security"`
}

type describedUse struct {
	Schema *shape `json:"schema"`
}

// shape is a JSON schema, as far as it is shown.
type shape struct {
	Ref         string            `json:"$ref"`
	Type        any               `json:"type"` // a word or several
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Enum        []any             `json:"enum"`
	Items       *shape            `json:"items"`
	Properties  map[string]*shape `json:"properties"`
	Required    []string          `json:"required"`
	AnyOf       []*shape          `json:"anyOf"`
	OneOf       []*shape          `json:"oneOf"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	Minimum     *float64          `json:"minimum"`
	Maximum     *float64          `json:"maximum"`
	MaxLength   *float64          `json:"maxLength"`
}

// drawDocs draws the page of a document.
func drawDocs(text []byte) ([]byte, error) {
	var d described
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("the OpenAPI document can't be drawn: %w", err)
	}
	var page bytes.Buffer
	err := templates.Docs(d.view()).Render(context.Background(), &page)
	return page.Bytes(), err
}

func (d *described) view() templates.DocsView {
	view := templates.DocsView{About: d.Info.Description, Version: d.Info.Version}
	byTag := map[string][]templates.DocsOperation{}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			if op := d.Paths[path][method]; op != nil {
				byTag[op.Tags[0]] = append(byTag[op.Tags[0]], d.operation(method, path, op))
			}
		}
	}
	for _, tag := range d.Tags {
		name := strings.ToUpper(tag.Name[:1]) + tag.Name[1:]
		view.Tags = append(view.Tags, templates.DocsTag{Name: name, Anchor: "tag-" + notWord.ReplaceAllString(tag.Name, "-"), Operations: byTag[tag.Name]})
	}
	slices.SortStableFunc(view.Tags, func(a, b templates.DocsTag) int {
		return cmp.Or(place(a.Name)-place(b.Name), cmp.Compare(a.Name, b.Name))
	})
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		schema := d.Components.Schemas[name]
		view.Schemas = append(view.Schemas, templates.DocsSchema{Name: name, Type: schema.typed(), Fields: schema.fields()})
	}
	return view
}

// firstTags are what a newcomer looks for first.
var firstTags = []string{"Tokens and keys", "Tasks", "Workflows", "Dead letters", "Schedules", "Lanes", "Workers"}

func place(tag string) int {
	if at := slices.Index(firstTags, tag); at >= 0 {
		return at
	}
	return len(firstTags)
}

func (d *described) operation(method, path string, op *describedOp) templates.DocsOperation {
	out := templates.DocsOperation{ID: op.ID, Method: strings.ToUpper(method), Path: path, Summary: op.Summary, Curl: curlOf(method, path, op)}
	for paragraph := range strings.SplitSeq(op.Description, "\n\n") {
		if paragraph != "" {
			out.Detail = append(out.Detail, strings.ReplaceAll(paragraph, "`", ""))
		}
	}
	for _, p := range op.Parameters {
		out.Params = append(out.Params, templates.DocsField{Name: p.Name, In: p.In, Type: p.Schema.typed(), Required: p.Required, About: p.Description, Values: p.Schema.values()})
	}
	if op.Body != nil {
		body := d.use(op.Body.Content)
		body.Optional = !op.Body.Required
		out.Body = &body
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		reply := d.use(op.Responses[status].Content)
		reply.Status, reply.About = status, op.Responses[status].Description
		if status == "default" {
			reply.Status, reply.Fields = "4xx", nil // the form of every refusal stands among the schemas
		}
		out.Replies = append(out.Replies, reply)
	}
	return out
}

// use is the first content of a body; a named object is shown one level deep.
func (d *described) use(content map[string]describedUse) (out templates.DocsBody) {
	if len(content) == 0 {
		return out
	}
	media := slices.Min(slices.Collect(maps.Keys(content)))
	schema := content[media].Schema
	out.Content, out.Type = media, schema.typed()
	if schema == nil {
		return out
	}
	if named := d.Components.Schemas[schema.name()]; named != nil {
		schema = named
	}
	out.Fields = schema.fields()
	return out
}

func (s *shape) name() string { return strings.TrimPrefix(s.Ref, "#/components/schemas/") }

func (s *shape) fields() (out []templates.DocsField) {
	if s == nil {
		return nil
	}
	names := slices.Sorted(maps.Keys(s.Properties))
	slices.SortStableFunc(names, func(a, b string) int { // what must be sent goes first
		return rank(slices.Contains(s.Required, a)) - rank(slices.Contains(s.Required, b))
	})
	for _, name := range names {
		of := s.Properties[name]
		out = append(out, templates.DocsField{
			Name: name, Type: of.typed(), Required: slices.Contains(s.Required, name), About: strings.TrimSpace(of.Description + of.bounds()), Values: of.values(),
		})
	}
	return out
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

func (s *shape) bounds() string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return " (" + number(*s.Minimum) + " to " + number(*s.Maximum) + ")"
	case s.Minimum != nil:
		return " (at least " + number(*s.Minimum) + ")"
	case s.Maximum != nil:
		return " (at most " + number(*s.Maximum) + ")"
	case s.MaxLength != nil:
		return " (at most " + number(*s.MaxLength) + " bytes)"
	}
	return ""
}

func (s *shape) values() (out []string) {
	switch {
	case s == nil:
		return nil
	case s.Items != nil && len(s.Enum) == 0:
		return s.Items.values()
	}
	for _, value := range s.Enum {
		out = append(out, fmt.Sprint(value))
	}
	return out
}

// typed is the type in words, with the schema that it names.
func (s *shape) typed() templates.DocsType {
	switch {
	case s == nil:
		return templates.DocsType{Before: "anything"}
	case s.Ref != "":
		return templates.DocsType{Schema: s.name()}
	case len(s.AnyOf)+len(s.OneOf) > 0:
		return s.choice()
	case s.Items != nil:
		of := s.Items.typed()
		return templates.DocsType{Before: "list of " + of.Before, Schema: of.Schema, After: of.After + s.orNull()}
	case len(s.Additional) > 0 && s.Additional[0] == '{':
		var of shape
		_ = json.Unmarshal(s.Additional, &of) // it is part of a document that was read
		value := of.typed()
		return templates.DocsType{Before: "map of " + value.Before, Schema: value.Schema, After: value.After}
	}
	var words []string
	switch kind := s.Type.(type) {
	case string:
		words = []string{kind}
	case []any:
		for _, word := range kind {
			words = append(words, fmt.Sprint(word))
		}
	}
	if s.Format != "" && len(words) > 0 {
		words[0] = s.Format
	}
	if len(words) == 0 {
		words = []string{"anything"}
	}
	return templates.DocsType{Before: strings.Join(words, " or ")}
}

func (s *shape) orNull() string {
	if kinds, several := s.Type.([]any); several && slices.Contains(kinds, any("null")) {
		return " or null"
	}
	return ""
}

func (s *shape) choice() (out templates.DocsType) {
	var after []string
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		of := one.typed()
		if out.Schema == "" && of.Schema != "" {
			out = of
			continue
		}
		after = append(after, of.Before+of.Schema+of.After)
	}
	text := strings.Join(after, " or ")
	if out.Schema == "" {
		return templates.DocsType{Before: text}
	}
	if text != "" {
		out.After += " or " + text
	}
	return out
}

// curlOf is the call as it is typed.
func curlOf(method, path string, op *describedOp) string {
	out := "curl -sS"
	if method != "get" {
		out += " -X " + strings.ToUpper(method)
	}
	out += ` "$NIGHTSHIFT` + path + `"`
	if len(op.Security) > 0 {
		out += ` -H "Authorization: Bearer $TOKEN"`
	}
	if op.Body != nil && op.Body.Required {
		if _, is := op.Body.Content["application/json"]; is {
			out += " \\\n  -H 'Content-Type: application/json' -d '{…}'"
		}
	}
	return out
}
