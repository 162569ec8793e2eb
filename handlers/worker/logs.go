package worker

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
)

const (
	maxLogLines = 1_000
	maxLogBytes = 8_000 // longer lines are cut
)

var logLevels = []string{"debug", "info", "warn", "error"}

func readLines(d *handlers.Deps, c *fiber.Ctx) (lines []postgres.LogRow, err error) {
	text, err := handlers.ReadBody(c)
	if err != nil {
		return nil, err
	}
	p := &body.Problems{}
	v, err := body.Open(text, "body", p)
	if err != nil {
		return nil, err
	}
	given := false
	v.Members(func(name string, m body.Value) {
		if name != "lines" {
			m.Wrong("there is no such field")
			return
		}
		given = true
		n := m.Elements(func(i int, e body.Value) {
			if i < maxLogLines {
				lines = append(lines, readLine(e, d.Now()))
			}
		})
		if n > maxLogLines {
			m.Wrong("must have at most %d entries", maxLogLines)
		}
	})
	if !given && !p.Any() {
		p.Addf("body.lines", "is required")
	}
	return lines, p.Err(models.ValidationFailed)
}

// readLine reads one line; what it leaves out is now, and info.
func readLine(v body.Value, now models.Instant) postgres.LogRow {
	line := postgres.LogRow{At: now, Level: "info"}
	v.Members(func(name string, m body.Value) {
		switch {
		case !slices.Contains([]string{"at", "level", "message"}, name):
			m.Wrong("there is no such field")
		case m.Null():
		case name == "at":
			line.At = m.Time()
		case name == "level":
			line.Level = m.OneOf(logLevels...)
		default:
			if line.Message = evidence(m); len(line.Message) > maxLogBytes {
				line.Message = strings.ToValidUTF8(line.Message[:maxLogBytes], "") + "…"
			}
		}
	})
	return line
}

// logs keeps the lines that an attempt wrote.
func (f *Floor) logs(d *handlers.Deps, c *fiber.Ctx) error {
	ref, token, _, err := f.leaseOf(c)
	if err != nil {
		return err
	}
	lines, err := readLines(d, c)
	if err != nil {
		return err
	}
	session, err := handlers.SentSession(c)
	if err != nil {
		return err
	}
	holds, err := f.reads.KeepLogs(c.UserContext(), postgres.Holder{TaskRef: ref, Token: token, Session: session}, lines)
	switch {
	case err != nil:
		return err
	case !holds:
		return lost(ref.ID)
	}
	return handlers.NoContent(c)
}
