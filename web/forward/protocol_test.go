package forward

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"nightshift/models"
)

// A replica of another version is told so, in time, and nothing of what it asked is done.
func TestAnotherVersionIsRefusedByName(t *testing.T) {
	b := &brain{}
	s := replica(t, b, nil)
	_, err := New(Options{Role: at(s.URL), Token: token, Protocol: "of tomorrow"}).Do(t.Context(), submit())
	var known *models.Error
	if !errors.As(err, &known) || known.Code != models.Unavailable || known.RetryAfterSeconds != 5 || !strings.Contains(known.Detail, "another version") || errors.Unwrap(known) != nil {
		t.Errorf("refused with %+v", err)
	}
	if got := b.commands(); len(got) != 0 {
		t.Errorf("the brain did %+v", got)
	}
	if _, err := New(Options{Role: at(s.URL), Token: token}).Do(t.Context(), submit()); err != nil || len(b.commands()) != 1 {
		t.Errorf("its own version: %v", err)
	}
}

func TestTheProtocolIsTheFormOfWhatTravels(t *testing.T) {
	type inner struct{ N int }
	type one struct {
		A    *inner `json:"a"`
		Self *one
	}
	type renamed struct {
		A    *inner `json:"b"`
		Self *renamed
	}
	type deeper struct {
		A *struct {
			N    int
			More string
		} `json:"a"`
		Self *deeper
	}
	of := func(v any) string { return protocolOf(reflect.TypeOf(v)) }
	if again := of(one{}); again != of(one{}) || of(one{}) == of(renamed{}) || of(one{}) == of(deeper{}) || len(Protocol()) != 16 {
		t.Error("forms are taken for one another")
	}
	if a, b := protocolOf(reflect.TypeFor[inner]()), protocolOf(reflect.TypeFor[struct{ N int }]()); a == b {
		t.Error("a type of another name is taken for the same")
	}
}
