package handlers

import (
	"net/url"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"nightshift/models"
)

// PathParam is a parameter of the path, unescaped: fiber routes on the undecoded path.
func PathParam(c *fiber.Ctx, name string) (string, error) {
	raw := c.Params(name)
	text, err := url.PathUnescape(raw)
	if err != nil || !Storable(text) {
		return "", models.Errorf(models.NotFound, "there is no %q here", raw)
	}
	return text, nil
}

// PathID is a TypeID in the path; one that can't be read names nothing.
func PathID(c *fiber.Ctx, name, prefix string) (models.ID, error) {
	text, err := PathParam(c, name)
	if err != nil {
		return models.ID{}, err
	}
	return models.ParseID(prefix, text)
}

// Storable says whether a text can stand in a column: UTF-8 without NUL.
func Storable(text string) bool {
	for i := range len(text) {
		if text[i] == 0 {
			return false
		}
	}
	return utf8.ValidString(text)
}
