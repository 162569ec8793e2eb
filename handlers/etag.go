package handlers

import (
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// SetETag names the version of the object that is answered.
func SetETag(c *fiber.Ctx, version int64) {
	c.Set(fiber.HeaderETag, `"`+strconv.FormatInt(version, 10)+`"`)
}

// IfMatch is the version that an edit insists on: -1 when it takes whatever stands, 0, which never stands, when the tag
// can be none of ours.
func IfMatch(c *fiber.Ctx) int64 {
	given := strings.TrimSpace(c.Get(fiber.HeaderIfMatch))
	if given == "" || given == "*" {
		return -1
	}
	inner, ok := strings.CutPrefix(given, `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	version, err := strconv.ParseInt(inner, 10, 64)
	if !ok || !closed || err != nil || version < 1 {
		return 0
	}
	return version
}
