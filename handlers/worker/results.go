package worker

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
	"nightshift/workers/protocol"
)

const (
	maxErrorText     = 64_000 // longer texts are cut
	maxProviderBytes = 64_000
	maxResults       = 10_000
	resultsAtOnce    = 500 // of one command
	bytesAtOnce      = 2 << 20
)

// report is one result while it is read.
type report struct {
	engine.Result
	wire  string // the token as it was sent
	known bool   // it is a lease's token
	given bool   // status was
}

var outcomes = map[string]models.Outcome{
	protocol.StatusSucceeded: models.AttemptSucceeded, protocol.StatusFailed: models.AttemptFailed,
	protocol.StatusCancelled: models.AttemptCancelled, protocol.StatusReleased: models.AttemptReleased,
	protocol.StatusSuspended: models.AttemptSuspended,
}

// readReport reads one element of results; with only, the body of a single form, which has those members alone.
func readReport(v body.Value, p *body.Problems, only []string) report {
	var r report
	single := only != nil
	v.Members(func(name string, m body.Value) {
		switch {
		case name == "lease_token" && !single:
			r.wire = m.String(1, maxText)
			r.Task, r.Token, r.known = models.ParseWireToken(r.wire)
		case name == "status" && !single:
			r.given = true
			r.status(m)
		case single && !slices.Contains(only, name), !r.member(name, m):
			m.Wrong("there is no such field")
		}
	})
	if !single && r.wire == "" && v.IsObject() && !p.Any() {
		p.Addf(body.Dot(v.At, "lease_token"), "is required")
	}
	if !single && !r.given && v.IsObject() && !p.Any() {
		p.Addf(body.Dot(v.At, "status"), "is required")
	}
	return r
}

func (r *report) status(m body.Value) {
	word := m.OneOf(protocol.StatusSucceeded, protocol.StatusFailed, protocol.StatusCancelled, protocol.StatusReleased, protocol.StatusSuspended)
	r.Outcome = outcomes[word]
}

// member reads what all forms share; false for a name that is none of it.
func (r *report) member(name string, m body.Value) bool {
	switch name {
	case "result":
		r.Result.Result = sized(m, handlers.ResultLimit)
	case "error":
		if !m.Null() {
			r.Error = readError(m)
		}
	case "usage":
		if !m.Null() {
			r.Usage = readUsage(m)
		}
	case "checkpoint":
		r.Checkpoint = sized(m, handlers.CheckpointLimit)
	case "retry_after_seconds":
		if !m.Null() {
			r.RetryAfter = m.Number(0, 30*86_400)
		}
	case "watermark":
		if !m.Null() {
			r.Mark = readMark(m)
		}
	case "items":
		if !m.Null() {
			r.Items = readItems(m)
		}
	default:
		return false
	}
	return true
}

// readMark reads what a result makes of its task's watermark.
func readMark(v body.Value) *engine.MarkMove {
	mark := &engine.MarkMove{Value: json.RawMessage("null")}
	v.Members(func(name string, m body.Value) {
		switch {
		case name == "value":
			if value := sized(m, handlers.CheckpointLimit); value != nil {
				mark.Value = value
			}
		case name != "version":
			m.Wrong("there is no such field")
		case !m.Null():
			n := m.Int(0, 1<<53)
			mark.Version = &n
		}
	})
	return mark
}

// sized copies an opaque value of at most most bytes; nil for null. What stands in it is the worker's own affair; only half of
// a surrogate pair, as a text has that was cut in the midst of a character, becomes U+FFFD: the work is done, and others that
// read it could not read the rest.
func sized(m body.Value, most int) json.RawMessage {
	if m.Null() {
		return nil
	}
	if len(m.Text) > most {
		m.Wrong("must have at most %d bytes", most)
		return nil
	}
	return m.Mended()
}

func readError(v body.Value) *models.TaskError {
	e := &models.TaskError{}
	v.Members(func(name string, m body.Value) {
		switch {
		case m.Null() && (name == "message" || name == "stack" || name == "provider_response"):
		case name == "class":
			e.Class = class(m)
		case name == "message":
			e.Message = evidence(m)
		case name == "stack":
			e.Stack = evidence(m)
		case name == "provider_response":
			e.ProviderResponse = sized(m, maxProviderBytes)
		default:
			m.Wrong("there is no such field")
		}
	})
	if e.Class == "" {
		e.Class = protocol.ClassInternal
	}
	return e
}

// class reads the class of an error; one that nobody knows counts as internal, however it is spelled.
func class(m body.Value) string {
	word := evidence(m)
	if m.IsString() && (word == "" || len(word) > maxText) {
		m.Wrong("must have 1 to %d bytes", maxText)
	}
	return word
}

// evidence reads a text that a program wrote: NUL is shown as U+FFFD, and what is too long is cut.
func evidence(m body.Value) string {
	text := m.Loose()
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	if len(text) <= maxErrorText {
		return text
	}
	cut := maxErrorText
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

const (
	mostTokens = 1 << 40
	mostUsed   = 1 << 50 // of memory and seconds
	mostCost   = 1_000_000
)

// readUsage checks what was used and keeps its text.
func readUsage(v body.Value) json.RawMessage {
	v.Members(func(name string, m body.Value) {
		if m.Null() {
			return
		}
		switch name {
		case "model":
			m.String(0, maxText)
		case "tokens_in", "tokens_out", "tokens_cached":
			m.Int(0, mostTokens)
		case "max_memory_mb", "max_vram_mb":
			m.Int(0, mostUsed)
		case "cost_usd":
			m.Number(0, mostCost)
		case "quality":
			m.Number(0, 1)
		case "cpu_seconds", "gpu_seconds":
			m.Number(0, mostUsed)
		default:
			m.Wrong("there is no such field")
		}
	})
	return append(json.RawMessage(nil), v.Text...)
}

func (f *Floor) results(d *handlers.Deps, c *fiber.Ctx) error {
	text, err := handlers.PathParam(c, "id")
	if err != nil {
		return err
	}
	worker, session, err := f.session(c, text)
	if err != nil {
		return err
	}
	reports, err := readResults(c)
	if err != nil {
		return err
	}
	for i := range reports { // another tenant's lease looks like none, whatever became of it
		if r := &reports[i]; r.known {
			if r.known, err = f.serves(c, r.Task.Env); err != nil {
				return err
			}
		}
	}
	answers := make([]protocol.ResultAnswer, 0, len(reports))
	for len(reports) > 0 {
		n := atOnce(reports)
		verdicts, err := f.settle(d, c, &engine.Settle{Worker: worker, Session: session}, reports[:n])
		if err != nil {
			return err
		}
		answers, reports = append(answers, verdicts...), reports[n:]
	}
	return answerBytes(c, appendResults(nil, answers))
}

// atOnce is how many of the next reports go into one command: the brain's transactions are short, and everybody waits for them.
func atOnce(reports []report) (n int) {
	for bytes := 0; n < min(len(reports), resultsAtOnce); n++ {
		r := &reports[n]
		if bytes += len(r.Result.Result) + len(r.Checkpoint); r.Error != nil {
			bytes += len(r.Error.Message) + len(r.Error.Stack) + len(r.Error.ProviderResponse)
		}
		if n > 0 && bytes > bytesAtOnce {
			break
		}
	}
	return n
}

func readResults(c *fiber.Ctx) ([]report, error) {
	if err := wantsJSON(c); err != nil {
		return nil, err
	}
	p := &body.Problems{}
	given := false
	var reports []report
	err := body.Stream(handlers.BodyOf(c), "body", "results", p, func(_ string, v body.Value) error {
		v.Wrong("there is no such field")
		return nil
	}, func(i int, v body.Value) error {
		given = true
		if i == maxResults {
			return models.Invalid("body.results", "at most %d results are sent at once", maxResults)
		}
		if p.Full() {
			return p.Err(models.ValidationFailed)
		}
		reports = append(reports, readReport(v, p, nil))
		return nil
	})
	if err == nil && !given {
		p.Addf("body.results", "is required, with at least one result")
	}
	return reports, orElse(err, p.Err(models.ValidationFailed))
}

// settle asks for a verdict on reports; one whose token is no lease's is lost without asking.
func (f *Floor) settle(d *handlers.Deps, c *fiber.Ctx, s *engine.Settle, reports []report) ([]protocol.ResultAnswer, error) {
	answers := make([]protocol.ResultAnswer, len(reports))
	lost := string(models.LeaseLost)
	var at []int
	for i := range reports {
		answers[i] = protocol.ResultAnswer{LeaseToken: reports[i].wire, Code: &lost}
		if reports[i].known {
			at = append(at, i)
			s.Results = append(s.Results, reports[i].Result)
		}
	}
	if len(at) == 0 {
		return answers, nil
	}
	answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Settle = s })
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		verdict := &answer.Settled[n]
		v := &answers[i]
		v.Accepted, v.Code, v.UsageRecorded = verdict.Accepted, handlers.Null(string(verdict.Code)), verdict.Booked
		if verdict.Row != nil {
			state := verdict.Row.State.String()
			v.State = &state
		}
	}
	return answers, nil
}

func appendResults(b []byte, answers []protocol.ResultAnswer) []byte {
	b = append(make([]byte, 0, 32+len(answers)*140), b...)
	b = append(b, `{"results":[`...)
	for i := range answers {
		a := &answers[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"lease_token":`...)
		b = appendText(b, a.LeaseToken)
		b = append(b, `,"accepted":`...)
		b = strconv.AppendBool(b, a.Accepted)
		b = append(b, `,"state":`...)
		b = appendPointer(b, a.State)
		b = append(b, `,"code":`...)
		b = appendPointer(b, a.Code)
		b = append(b, `,"usage_recorded":`...)
		b = strconv.AppendBool(b, a.UsageRecorded)
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

func appendPointer(b []byte, text *string) []byte {
	if text == nil {
		return append(b, `null`...)
	}
	return appendText(b, *text)
}
