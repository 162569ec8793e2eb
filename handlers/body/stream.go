package body

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"nightshift/models"
)

// Stream reads a body that is one object with one long list. Other members come to member as they stand; the elements of the
// list named long come to each one by one, and their text is gone when it returns. An error of either ends the reading.
func Stream(r io.Reader, at, long string, p *Problems, member func(name string, v Value) error, each func(i int, v Value) error) error {
	// Doubled names and halves of surrogate pairs are told with the place where they stand, by Members, the names below and
	// those who read the values; next looks after the UTF-8.
	d := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	opening, err := d.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return models.Errorf(models.InvalidJSON, "a JSON body is needed here")
	case err != nil:
		return unreadable(err)
	case opening.Kind() != '{':
		p.Addf(at, "must be an object")
		return p.Err(models.ValidationFailed)
	}
	seen := map[string]bool{}
	for d.PeekKind() == '"' {
		raw, err := next(d, at, p)
		if err != nil {
			return err
		}
		name := text(raw.Text)
		if seen[name] {
			p.Addf(Dot(at, name), "is given twice")
			return p.Err(models.ValidationFailed)
		}
		seen[name] = true
		if name == long {
			err = elements(d, Dot(at, name), p, each)
		} else {
			var v Value
			if v, err = next(d, Dot(at, name), p); err == nil {
				v.Text = bytes.Clone(v.Text)
				err = member(name, v)
			}
		}
		if err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return unreadable(err)
	}
	switch _, err := d.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return unreadable(err)
	}
	return models.Errorf(models.InvalidJSON, "something follows the body's object")
}

func elements(d *jsontext.Decoder, at string, p *Problems, each func(i int, v Value) error) error {
	if kind := d.PeekKind(); kind != '[' && kind != 0 {
		p.Addf(at, "must be a list")
		return p.Err(models.ValidationFailed)
	}
	if _, err := d.ReadToken(); err != nil {
		return unreadable(err)
	}
	for i := 0; d.PeekKind() != ']'; i++ {
		v, err := next(d, At(at, i), p)
		if err != nil {
			return err
		}
		if err := each(i, v); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return unreadable(err)
	}
	return nil
}

// next reads one value; its text stays valid until the next is read.
func next(d *jsontext.Decoder, at string, p *Problems) (Value, error) {
	raw, err := d.ReadValue()
	if err != nil {
		return Value{}, unreadable(err)
	}
	if !utf8.Valid(raw) {
		return Value{}, models.Errorf(models.InvalidJSON, "the body is not UTF-8, in %s", at)
	}
	return Value{bytes.TrimSpace(raw), at, p}, nil
}

// unreadable keeps a refusal of the reader itself, like a body over its limit, and calls the rest invalid JSON.
func unreadable(err error) error {
	var refusal *models.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return models.Errorf(models.InvalidJSON, "the body is not JSON: %v", err)
}
