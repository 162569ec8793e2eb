package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"gopkg.in/yaml.v3"

	"nightshift/handlers"
)

// document is the OpenAPI 3.1 description of the route table, made once at the start.
type document struct{ json, yaml, page []byte }

type object = map[string]any

// describe writes the document. A route without a summary is refused: the document covers every endpoint.
func describe(routes []handlers.Route) (*document, error) {
	shapes := &shapes{named: object{}, names: map[string]string{}}
	paths := object{}
	tags := []string{}
	for _, r := range routes {
		if r.Doc.Summary == "" || r.Doc.Tag == "" {
			return nil, fmt.Errorf("%s %s is not described: its Doc needs a Tag and a Summary", r.Method, r.Path)
		}
		path, params := templated(r.Path)
		item, ok := paths[path].(object)
		if !ok {
			item = object{}
			paths[path] = item
		}
		item[strings.ToLower(r.Method)] = operation(r, path, params, shapes)
		if !slices.Contains(tags, r.Doc.Tag) {
			tags = append(tags, r.Doc.Tag)
		}
	}
	slices.Sort(tags)
	shapes.named["Problem"] = problemSchema()
	listed := make([]object, len(tags))
	for i, tag := range tags {
		listed[i] = object{"name": tag}
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Nightshift", "version": "1",
			"description": "A control plane for AI work: it decides what runs next, for many customers, on shared capacity.",
		},
		"servers": []object{{"url": "/"}},
		"tags":    listed,
		"paths":   paths,
		"components": object{
			"schemas": shapes.named,
			"securitySchemes": object{"token": object{
				"type": "http", "scheme": "bearer", "bearerFormat": "JWT",
				"description": "An access token of POST /v1/auth/token.",
			}},
		},
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("the OpenAPI document can't be written: %w", err)
	}
	asYAML, err := toYAML(text)
	if err != nil {
		return nil, err
	}
	page, err := drawDocs(text)
	return &document{json: text, yaml: asYAML, page: page}, err
}

// toYAML writes a JSON text as YAML in block style.
func toYAML(text []byte) ([]byte, error) {
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	var plain func(*yaml.Node)
	plain = func(n *yaml.Node) {
		n.Style &^= yaml.FlowStyle
		if n.Kind == yaml.ScalarNode && n.Tag != "!!str" {
			n.Style = 0
		}
		for _, child := range n.Content {
			plain(child)
		}
	}
	plain(&node)
	return yaml.Marshal(&node)
}

var pathParam = regexp.MustCompile(`[:*]([a-z_]*)`)

func templated(path string) (string, []string) {
	var params []string
	out := pathParam.ReplaceAllStringFunc(path, func(p string) string {
		name := strings.TrimLeft(p, ":*")
		params = append(params, name)
		return "{" + name + "}"
	})
	return out, params
}

func operation(r handlers.Route, path string, params []string, s *shapes) object {
	op := object{"operationId": operationID(r.Method, path), "summary": r.Doc.Summary, "tags": []string{r.Doc.Tag}, "responses": responses(r, s)}
	detail := r.Doc.Detail
	if !slices.Contains(r.Scopes, handlers.Public) {
		op["security"] = []object{{"token": []string{}}}
		need := "Any valid token will do."
		if !slices.Contains(r.Scopes, handlers.AnyToken) {
			need = "Needs the scope `" + strings.Join(r.Scopes, "` or `") + "`."
		}
		detail = strings.TrimSpace(detail + "\n\n" + need)
	}
	if detail != "" {
		op["description"] = detail
	}
	var all []object
	for _, name := range params {
		all = append(all, object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range r.Doc.Query {
		all = append(all, parameter("query", p))
	}
	for _, p := range append(ownHeaders(r), r.Doc.Headers...) {
		all = append(all, parameter("header", p))
	}
	if all != nil {
		op["parameters"] = all
	}
	if r.Doc.Body != nil {
		content := "application/json"
		if r.Doc.BodyType != "" {
			content = r.Doc.BodyType
		}
		op["requestBody"] = object{"required": !r.Doc.BodyOptional, "content": object{content: object{"schema": s.of(r.Doc.Body)}}}
	}
	return op
}

// ownHeaders are those that the front and the shared calls take.
func ownHeaders(r handlers.Route) (out []handlers.Param) {
	if slices.Contains(r.Scopes, handlers.Public) {
		return nil
	}
	out = append(out,
		handlers.Param{Name: tenantHeader, Type: "string", About: "the tenant a platform token acts on: id or slug"},
		handlers.Param{Name: environmentHeader, Type: "string", About: "the environment, where the key is good for several"})
	if r.Method == fiber.MethodPost && r.Doc.Once {
		out = append(out, handlers.Param{Name: "Idempotency-Key", Type: "string", About: "the same key and body again replays the first answer"})
	}
	if slices.Contains([]string{fiber.MethodPatch, fiber.MethodPut, fiber.MethodDelete}, r.Method) {
		out = append(out, handlers.IfMatchHeader)
	}
	return out
}

func parameter(in string, p handlers.Param) object {
	schema := object{"type": p.Type}
	if len(p.Enum) > 0 {
		schema["enum"] = p.Enum
	}
	out := object{"name": p.Name, "in": in}
	if p.Repeat {
		schema = object{"type": "array", "items": schema}
		out["explode"] = true
	}
	out["schema"] = schema
	if p.About != "" {
		out["description"] = p.About
	}
	return out
}

func responses(r handlers.Route, s *shapes) object {
	problem := object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}
	out := object{"default": object{"description": "What went wrong", "content": problem}}
	if len(r.Doc.Replies) == 0 {
		out["200"] = object{"description": "OK"}
	}
	for status, v := range r.Doc.Replies {
		reply := object{"description": http.StatusText(status)}
		if v != nil {
			content := "application/json"
			if r.Doc.ContentType != "" {
				content = r.Doc.ContentType
			}
			reply["content"] = object{content: object{"schema": s.of(v)}}
		}
		out[strconv.Itoa(status)] = reply
	}
	return out
}

var notWord = regexp.MustCompile(`[^a-zA-Z0-9]+`)

func operationID(method, path string) string {
	return strings.Trim(strings.ToLower(method)+"_"+notWord.ReplaceAllString(strings.TrimPrefix(path, "/v1/"), "_"), "_")
}

func problemSchema() object {
	text := object{"type": "string"}
	return object{"type": "object", "required": []string{"type", "title", "status", "detail", "instance", "code", "request_id"}, "properties": object{
		"type": text, "title": text, "status": object{"type": "integer"}, "detail": text, "instance": text,
		"code": object{"type": "string", "description": "a stable word to decide on"}, "request_id": text,
		"errors": object{"type": "array", "items": object{
			"type": "object", "required": []string{"location", "message"},
			"properties": object{"location": text, "message": text, "value": object{}},
		}},
	}}
}
