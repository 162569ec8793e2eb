package handlers

import (
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/models"
)

// Answer writes v as JSON.
func Answer(c *fiber.Ctx, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return models.Errorf(models.Internal, "the answer can't be written: %w", err)
	}
	return answerBytes(c, status, body)
}

func answerBytes(c *fiber.Ctx, status int, body []byte) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(status).Send(body)
}

// NoContent answers 204.
func NoContent(c *fiber.Ctx) error { return c.SendStatus(fiber.StatusNoContent) }

// Time is a moment on the wire: RFC 3339 in UTC with microseconds at most; null for none.
type Time models.Instant

// MarshalJSON writes the moment.
func (t Time) MarshalJSON() ([]byte, error) {
	text := t.String()
	if text == "" {
		return []byte("null"), nil
	}
	return []byte(`"` + text + `"`), nil
}

// String is the moment, empty for none.
func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return models.Instant(t).Time().Format("2006-01-02T15:04:05.999999Z07:00")
}

// TypedID is an id on the wire: its TypeID, null for none.
type TypedID struct {
	Prefix string
	ID     models.ID
}

// MarshalJSON writes the TypeID.
func (t TypedID) MarshalJSON() ([]byte, error) {
	if t.ID.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.ID.Text(t.Prefix) + `"`), nil
}

// ParseTime reads a moment of a request.
func ParseTime(location, text string) (models.Instant, error) {
	at, err := ParseMoment(location, text, 1970)
	if err != nil {
		return 0, err
	}
	return models.NamedInstant(at), nil
}

// ParseMoment reads a time that may lie before 1970, from the beginning of a year on.
func ParseMoment(location, text string, since int) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, models.Invalid(location, "%q is no moment like 2026-09-17T21:00:00Z", Shorten(text, 40))
	}
	if year := at.UTC().Year(); year < since || year > 2262 {
		return at, models.Invalid(location, "the year %d is out of range", year)
	}
	return at.UTC(), nil
}

// Null is a value that is null on the wire when it is the zero value.
func Null[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// List gives [] instead of null for a list without rows.
func List[T any](rows []T) []T {
	if rows == nil {
		return []T{}
	}
	return rows
}

// Shorten cuts a text for a message.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xc0 == 0x80 {
		most--
	}
	return text[:most] + "…"
}
