package handlers

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"

	"nightshift/handlers/body"
	"nightshift/models"
)

// Bind reads a JSON body into v, strictly: 415 for another content type, 400 invalid_json for none, broken JSON or bad UTF-8,
// 422 for unknown fields, doubled names, wrong types, NULs and halves of surrogate pairs, with the place. Names are matched
// exactly.
func Bind(c *fiber.Ctx, v any) error {
	body, err := ReadBody(c)
	if err != nil {
		return err
	}
	return Unmarshal("body", body, v)
}

// BindOptional is Bind for an action whose body may be left out.
func BindOptional(c *fiber.Ctx, v any) error {
	if c.Request().Header.ContentLength() == 0 && c.Request().Header.Peek(fiber.HeaderContentType) == nil {
		noteDigest(c, nil)
		return nil
	}
	body, err := read(c)
	if err != nil {
		return err
	}
	noteDigest(c, body)
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if err := wantsJSON(c); err != nil {
		return err
	}
	return Unmarshal("body", body, v)
}

// ReadBody reads the whole body of a JSON request within the route's limit, and keeps its digest for Create.
func ReadBody(c *fiber.Ctx) ([]byte, error) {
	body, err := read(c)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, models.Errorf(models.InvalidJSON, "this call needs a JSON body")
	}
	if err := wantsJSON(c); err != nil {
		return nil, err
	}
	noteDigest(c, body)
	return body, nil
}

// RawBody reads the whole body, of whatever type, within the route's limit.
func RawBody(c *fiber.Ctx) ([]byte, error) { return read(c) }

func read(c *fiber.Ctx) ([]byte, error) {
	body, err := io.ReadAll(BodyOf(c))
	if err != nil {
		return nil, bodyError(err)
	}
	return body, nil
}

func bodyError(err error) error {
	var known *models.Error
	if errors.As(err, &known) {
		return known
	}
	return models.Errorf(models.InvalidRequest, "the body ended early or can't be read")
}

func wantsJSON(c *fiber.Ctx) error {
	given := c.Get(fiber.HeaderContentType)
	media, params, err := mime.ParseMediaType(given)
	charset := strings.ToLower(params["charset"])
	if err == nil && (media == "application/json" || media == "application/merge-patch+json") && (charset == "" || charset == "utf-8") {
		return nil
	}
	return models.Errorf(models.UnsupportedMediaType, "send application/json in UTF-8, not %q", Shorten(given, 80))
}

// Unmarshal is the strict reading of Bind for a value whose place in the request is known. What can't be read to its end is
// unreadable, whatever rule it breaks before.
func Unmarshal(location string, text []byte, v any) error {
	if !utf8.Valid(text) {
		return models.Errorf(models.InvalidJSON, "the body is not UTF-8")
	}
	err := json.Unmarshal(text, v, json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(true)) // halves of surrogate pairs: findBad names them
	if err != nil {
		if broken := syntax(text); broken != nil {
			err = broken
		}
		return JSONError(location, err)
	}
	return findBad(location, text)
}

// syntax is what keeps a text from being JSON: nil where it is.
func syntax(text []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := dec.SkipValue(); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return models.Errorf(models.InvalidJSON, "something follows the JSON value")
	}
	return nil
}

// JSONError says what is wrong with a JSON text that go-json-experiment refused, as a caller should see it.
func JSONError(location string, err error) error {
	var (
		known    *models.Error
		semantic *json.SemanticError
		syntax   *jsontext.SyntacticError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.As(err, &semantic):
		where := location + Location(semantic.JSONPointer)
		if errors.Is(semantic.Err, json.ErrUnknownName) {
			return models.Invalid(where, "there is no such field")
		}
		if errors.Is(semantic.Err, errLater) {
			return models.Invalid(where, "%v", errLater)
		}
		return models.Invalid(where, "%s", mismatch(semantic))
	case errors.As(err, &syntax):
		where := location + Location(syntax.JSONPointer)
		if errors.Is(syntax.Err, jsontext.ErrDuplicateName) {
			return models.Invalid(where, "is given twice")
		}
		return models.Errorf(models.InvalidJSON, "not valid JSON at byte %d, in %s", syntax.ByteOffset, where)
	}
	return models.Errorf(models.InvalidJSON, "not valid JSON")
}

// mismatch says which type a value should have had, in JSON's words.
func mismatch(e *json.SemanticError) string {
	if e.GoType == nil {
		return "this value can't be read"
	}
	want := e.GoType
	for want.Kind().String() == "ptr" {
		want = want.Elem()
	}
	var should string
	switch kind := want.Kind().String(); {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		should = "a whole number in range"
	case strings.HasPrefix(kind, "float"):
		should = "a number in range"
	case kind == "bool":
		should = "true or false"
	case kind == "string":
		should = "a text"
	case kind == "slice", kind == "array":
		should = "a list"
	default:
		should = "an object"
	}
	return "must be " + should
}

// Location turns a JSON pointer into the form of errors: "/tasks/7/priority" into ".tasks[7].priority".
func Location(pointer jsontext.Pointer) string {
	var out strings.Builder
	for token := range pointer.Tokens() {
		if token != "" && strings.Trim(token, "0123456789") == "" {
			fmt.Fprintf(&out, "[%s]", token)
			continue
		}
		out.WriteString("." + Shorten(token, 128))
	}
	return out.String()
}

// findBad names the first text with an escape of NUL, which no column can hold (a doubled backslash is none), or of half a
// surrogate pair, which stands for no character.
func findBad(location string, text []byte) error {
	if !bytes.Contains(text, []byte(`\u`)) {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true))
	for {
		if dec.PeekKind() != '"' {
			if _, err := dec.ReadToken(); err != nil {
				return nil // the end: it was read as a whole before
			}
			continue
		}
		raw, err := dec.ReadValue()
		if err != nil {
			return nil
		}
		var said string
		half := body.Value{Text: raw}.HoldsHalf()
		if err := json.Unmarshal(raw, &said, jsontext.AllowInvalidUTF8(true)); err != nil || !half && strings.IndexByte(said, 0) < 0 {
			continue
		}
		where := location + strings.ReplaceAll(Location(dec.StackPointer()), "\x00", `\u0000`)
		if half {
			return models.Invalid(where, "a text can't hold half of a surrogate pair")
		}
		return models.Invalid(where, "a text can't hold the character NUL")
	}
}

// BodyOf is the body as a stream that ends with body_too_large at the route's limit.
func BodyOf(c *fiber.Ctx) io.Reader {
	limit := int64(BodyLimit)
	if given, ok := c.Locals(limitKey{}).(int64); ok && given > 0 {
		limit = given
	}
	var from io.Reader = c.Context().RequestBodyStream()
	if stream := c.Context().RequestBodyStream(); stream == nil {
		from = bytes.NewReader(c.Request().Body())
	}
	return &limited{from: from, left: limit, limit: limit, declared: int64(c.Request().Header.ContentLength())}
}

type limitKey struct{}

// SetBodyLimit is for web: the limit of the route that was matched.
func SetBodyLimit(c *fiber.Ctx, most int64) { c.Locals(limitKey{}, most) }

// limited refuses what passes the limit: before the first byte when the length is declared.
type limited struct {
	from        io.Reader
	left, limit int64
	declared    int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.declared > l.limit || l.left < 0 {
		return 0, l.refuse()
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1] // one more byte tells a body at the limit from one past it
	}
	n, err := l.from.Read(p)
	l.left -= int64(n)
	if l.left < 0 {
		return n, l.refuse()
	}
	return n, err
}

func (l *limited) refuse() error {
	return models.Errorf(models.BodyTooLarge, "the body is larger than %d bytes", l.limit)
}

type digestKey struct{}

func noteDigest(c *fiber.Ctx, body []byte) { NoteDigest(c, sha256.Sum256(body)) }

// NoteDigest keeps the digest of a body that was read as a stream, for Create.
func NoteDigest(c *fiber.Ctx, sum [sha256.Size]byte) { c.Locals(digestKey{}, sum) }
