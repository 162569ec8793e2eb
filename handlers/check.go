package handlers

import (
	"regexp"
	"slices"
	"strings"

	"nightshift/models"
)

// Check gathers what is wrong with a request, so that a caller learns of all of it at once.
type Check struct{ fields []models.FieldError }

// mostFieldErrors bounds an answer: a body of 10,000 bad tasks has told enough by then.
const mostFieldErrors = 100

// Fail notes that a value breaks a rule. It is named by its place, like "body.tasks[7].priority".
func (k *Check) Fail(location, format string, args ...any) {
	if len(k.fields) < mostFieldErrors {
		k.fields = append(k.fields, models.Invalid(location, format, args...).Fields...)
	}
}

// That notes a failure unless ok.
func (k *Check) That(ok bool, location, format string, args ...any) bool {
	if !ok {
		k.Fail(location, format, args...)
	}
	return ok
}

// OK says that nothing is wrong so far.
func (k *Check) OK() bool { return len(k.fields) == 0 }

// Err is validation_failed with everything found, or nil.
func (k *Check) Err() error {
	if len(k.fields) == 0 {
		return nil
	}
	detail := k.fields[0].Location + ": " + k.fields[0].Message
	if len(k.fields) > 1 {
		detail += ", and more"
	}
	return &models.Error{Code: models.ValidationFailed, Detail: detail, Fields: k.fields}
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._:-]{0,127}$`)

// IsName says whether a text is a name of ours.
func IsName(text string) bool { return nameForm.MatchString(text) }

// Name checks a name.
func (k *Check) Name(location, text string) bool {
	return k.That(IsName(text), location, "%q is no name: up to 128 of a-z, 0-9, . _ : -, beginning with a letter or digit", Shorten(text, 60))
}

// Text checks a free text for its length in bytes.
func (k *Check) Text(location, text string, least, most int) bool {
	if !k.That(Storable(text), location, "a text must be UTF-8 without NUL") {
		return false
	}
	if least > 0 && strings.TrimSpace(text) == "" {
		k.Fail(location, "it is needed")
		return false
	}
	return k.That(len(text) >= least && len(text) <= most, location, "it must have %d to %d bytes, not %d", least, most, len(text))
}

// OneOf checks a word of a fixed set.
func (k *Check) OneOf(location, text string, allowed ...string) bool {
	return k.That(slices.Contains(allowed, text), location, "%q is none of %s", Shorten(text, 60), strings.Join(allowed, ", "))
}

// Range checks a number.
func Range[N int | int16 | int32 | int64 | float64](k *Check, location string, n, least, most N) bool {
	return k.That(n >= least && n <= most, location, "it must be from %v to %v", least, most)
}
