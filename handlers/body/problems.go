package body

import (
	"fmt"
	"strconv"

	"nightshift/models"
)

const mostProblems = 100

// Problems collects what is wrong with a body.
type Problems struct {
	fields []models.FieldError
	more   int
}

// Addf adds one thing wrong at a place.
func (p *Problems) Addf(at, format string, args ...any) {
	if len(p.fields) == mostProblems {
		p.more++
		return
	}
	p.fields = append(p.fields, models.FieldError{Location: at, Message: fmt.Sprintf(format, args...)})
}

// Any says that something is wrong.
func (p *Problems) Any() bool { return len(p.fields) > 0 }

// Full says that so much is wrong that reading on helps nobody.
func (p *Problems) Full() bool { return p.more > 0 }

// Err is the refusal with all that was collected, nil when nothing was.
func (p *Problems) Err(code models.Code) error {
	if len(p.fields) == 0 {
		return nil
	}
	first := p.fields[0]
	detail := first.Location + ": " + first.Message
	if n := len(p.fields) - 1 + p.more; n > 0 {
		detail += fmt.Sprintf(" (and %d more)", n)
	}
	return &models.Error{Code: code, Detail: detail, Fields: p.fields}
}

// At is the place of element i of the list at.
func At(at string, i int) string { return at + "[" + strconv.Itoa(i) + "]" }

// Dot is the place of a member of the object at.
func Dot(at, name string) string { return at + "." + name }
