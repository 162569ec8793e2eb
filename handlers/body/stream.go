package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"nightshift/models"
)

// Stream reads a body that is one object with one long list. Other members come to f as they stand; the elements of the
// list named long come to each one by one, and are gone when it returns. An error of either ends the reading.
func Stream(r io.Reader, at, long string, p *Problems, member func(name string, v Value) error, each func(i int, v Value) error) error {
	d := json.NewDecoder(r)
	opening, err := d.Token()
	switch {
	case errors.Is(err, io.EOF):
		return models.Errorf(models.InvalidJSON, "a JSON body is needed here")
	case err != nil:
		return unreadable(err)
	case opening != json.Delim('{'):
		p.Addf(at, "must be an object")
		return p.Err(models.ValidationFailed)
	}
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return unreadable(err)
		}
		name, _ := token.(string)
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
				err = member(name, v)
			}
		}
		if err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return unreadable(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return models.Errorf(models.InvalidJSON, "something follows the body's object")
	}
	return nil
}

func elements(d *json.Decoder, at string, p *Problems, each func(i int, v Value) error) error {
	opening, err := d.Token()
	switch {
	case err != nil:
		return unreadable(err)
	case opening != json.Delim('['):
		p.Addf(at, "must be a list")
		return p.Err(models.ValidationFailed)
	}
	for i := 0; d.More(); i++ {
		v, err := next(d, At(at, i), p)
		if err != nil {
			return err
		}
		if err := each(i, v); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return unreadable(err)
	}
	return nil
}

func next(d *json.Decoder, at string, p *Problems) (Value, error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return Value{}, unreadable(err)
	}
	if !utf8.Valid(raw) {
		return Value{}, models.Errorf(models.InvalidJSON, "%s is not UTF-8", at)
	}
	return Value{bytes.TrimSpace(raw), at, p}, nil
}

// unreadable keeps a refusal of the reader itself, like a body over its limit, and calls the rest invalid JSON.
func unreadable(err error) error {
	var refusal *models.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return models.Errorf(models.InvalidJSON, "the body is not JSON: %v", err)
}
