package handlers

import (
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/models"
)

// SetETag names the version of the object that is answered.
func SetETag(c *fiber.Ctx, version int64) {
	c.Set(fiber.HeaderETag, `"`+strconv.FormatInt(version, 10)+`"`)
}

// IfMatch is the version that an edit insists on: -1 when it takes whatever stands. A tag that can be no version of
// ours is stale.
func IfMatch(c *fiber.Ctx) (int64, error) {
	given := strings.TrimSpace(c.Get(fiber.HeaderIfMatch))
	if given == "" || given == "*" {
		return -1, nil
	}
	inner, ok := strings.CutPrefix(given, `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	version, err := strconv.ParseInt(inner, 10, 64)
	if !ok || !closed || err != nil || version < 1 {
		return 0, models.Errorf(models.Stale, "If-Match names a version that does not stand; read the object again")
	}
	return version, nil
}
