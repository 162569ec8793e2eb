package handlers

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/models"
)

// SetETag names the version of the object that is answered.
func SetETag(c *fiber.Ctx, version int64) {
	c.Set(fiber.HeaderETag, `"`+strconv.FormatInt(version, 10)+`"`)
}

// SetETagOver tags what a tenant sees of the platform's and may put its own in place of: it can't be taken for a version of that.
func SetETagOver(c *fiber.Ctx, version int64) {
	c.Set(fiber.HeaderETag, overTag+strconv.FormatInt(version, 10)+`"`)
}

const overTag = `"platform-`

// IfMatchOver is the version of the platform's thing that an edit insists on putting a tenant's own in place of, 0 when it names none.
func IfMatchOver(c *fiber.Ctx) int64 {
	inner, ours := strings.CutPrefix(strings.TrimSpace(c.Get(fiber.HeaderIfMatch)), overTag)
	inner, closed := strings.CutSuffix(inner, `"`)
	if version, err := strconv.ParseInt(inner, 10, 64); ours && closed && err == nil && version > 0 {
		return version
	}
	return 0
}

// Match is what an edit insists on by If-Match.
type Match struct {
	Sent     bool
	any      bool // "*": whatever stands, but something must
	versions []int64
}

// IfMatch reads the header. Tags that can be none of ours, weak ones among them, match nothing.
func IfMatch(c *fiber.Ctx) Match {
	given := strings.TrimSpace(c.Get(fiber.HeaderIfMatch))
	m := Match{Sent: given != "", any: given == "*"}
	if m.any {
		return m
	}
	for tag := range strings.SplitSeq(given, ",") {
		inner, ok := strings.CutPrefix(strings.TrimSpace(tag), `"`)
		inner, closed := strings.CutSuffix(inner, `"`)
		if version, err := strconv.ParseInt(inner, 10, 64); ok && closed && err == nil && version >= 0 {
			m.versions = append(m.versions, version)
		}
	}
	return m
}

// OfVersion says that the edit insists on a version, not only on that something stands.
func (m Match) OfVersion() bool { return m.Sent && !m.any }

// Fits refuses an edit of what does not stand in a version it insists on (stale); version -1: nothing stands.
func (m Match) Fits(version int64) error {
	switch {
	case !m.Sent, m.any && version >= 0, slices.Contains(m.versions, version):
		return nil
	case version < 0:
		return models.Errorf(models.Stale, "If-Match insists on a version, and there is none")
	}
	return models.Errorf(models.Stale, "version %d stands; read the object again", version)
}
