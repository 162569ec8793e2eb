package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/models/postgres"
)

const (
	maxSpans          = 500 // a call
	maxSpanName       = 255
	maxSpanAttributes = 8_000 // bytes
)

// SpansInput describes what is reported of an attempt's time.
type SpansInput struct {
	Spans []SpanInput `json:"spans" required:"true" doc:"at most 500 a call and 1,000 a task; one that is there already stays"`
}

// SpanInput is a stretch of an attempt's time.
type SpanInput struct {
	SpanID     string         `json:"span_id" doc:"16 hexadecimal digits; made from the rest when left out"`
	ParentID   string         `json:"parent_span_id" doc:"left out: the attempt"`
	Name       string         `json:"name" required:"true"`
	Start      handlers.Time  `json:"start" required:"true"`
	End        handlers.Time  `json:"end" required:"true"`
	Attributes map[string]any `json:"attributes" doc:"at most 8,000 bytes"`
}

var docSpans = handlers.Doc{
	Tag: tag, Summary: "Report spans of an attempt", Body: SpansInput{}, Headers: []handlers.Param{leaseHeader},
	Detail:  "They show in the traces of the task and its workflow, and are kept as long as logs.",
	Replies: map[int]any{204: nil},
}

// spans keeps what an attempt reported of its time.
func (f *Floor) spans(d *handlers.Deps, c *fiber.Ctx) error {
	ref, token, _, err := f.leaseOf(c)
	if err != nil {
		return err
	}
	spans, err := readSpans(c, ref.ID)
	if err != nil {
		return err
	}
	session, err := handlers.SentSession(c)
	if err != nil {
		return err
	}
	holds, fits, err := f.reads.KeepSpans(c.UserContext(), postgres.Holder{TaskRef: ref, Token: token, Session: session}, d.Now(), spans)
	switch {
	case err != nil:
		return err
	case !holds:
		return lost(ref.ID)
	case !fits:
		return models.Invalid("body.spans", "a task keeps at most %d spans: with these it would have more", postgres.MostSpans)
	}
	return handlers.NoContent(c)
}

func readSpans(c *fiber.Ctx, task models.ID) (spans []postgres.Span, err error) {
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
		if name != "spans" {
			m.Wrong("there is no such field")
			return
		}
		given = true
		n := m.Elements(func(i int, e body.Value) {
			if i < maxSpans {
				spans = append(spans, readSpan(e, task))
			}
		})
		if n > maxSpans {
			m.Wrong("must have at most %d entries", maxSpans)
		}
	})
	if !given && !p.Any() {
		p.Addf("body.spans", "is required")
	}
	return spans, p.Err(models.ValidationFailed)
}

func readSpan(v body.Value, task models.ID) postgres.Span {
	s := postgres.Span{Attributes: json.RawMessage("{}")}
	v.Members(func(name string, m body.Value) {
		switch {
		case m.Null() && (name == "span_id" || name == "parent_span_id" || name == "attributes"):
		case name == "span_id":
			s.ID = spanID(m)
		case name == "parent_span_id":
			s.Parent = spanID(m)
		case name == "name":
			s.Name = m.String(1, maxSpanName)
		case name == "start":
			s.Began = m.Time()
		case name == "end":
			s.Ended = m.Time()
		case name != "attributes":
			m.Wrong("there is no such field")
		case !m.IsObject():
			m.Wrong("must be an object")
		default:
			if raw := sized(m, maxSpanAttributes); raw != nil {
				s.Attributes = raw
			}
		}
	})
	if !v.IsObject() {
		return s
	}
	switch {
	case s.Name == "":
		v.Wrong("has no name")
	case s.Began == 0 || s.Ended == 0:
		v.Wrong("needs a start and an end")
	case s.Ended < s.Began:
		v.Wrong("ends before it starts")
	}
	if s.ID == "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "%x %s %d %d %s %s", task, s.Name, s.Began, s.Ended, s.Parent, s.Attributes))
		s.ID = hex.EncodeToString(sum[:8])
	}
	return s
}

// spanID reads a span id of W3C trace context.
func spanID(m body.Value) string {
	id := m.String(16, 16)
	if len(id) == 16 && (strings.Trim(id, "0123456789abcdef") != "" || strings.Trim(id, "0") == "") {
		m.Wrong("must be 16 lower-case hexadecimal digits, not all zero")
	}
	return id
}
