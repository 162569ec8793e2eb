package postgres

import (
	"encoding/json"
	"reflect"
	"testing"

	"nightshift/models"
)

// TestEventsAreWrittenAsJSONWrites finds a field that the packing forgets, whichever is added next.
func TestEventsAreWrittenAsJSONWrites(t *testing.T) {
	var full models.Event
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("plain_" + v.Type().Field(i).Name)
		case reflect.Array:
			f.Set(reflect.ValueOf(models.ID{byte(i), 0xab, 15: 1}))
		case reflect.Float64:
			f.SetFloat(12.0625)
		default:
			f.SetInt(int64(i + 1))
		}
	}
	hostile := models.Event{Name: "a\"b\\c<d>&\x00\x1f\u2028é\xff", Reason: "two\nlines", At: -5, Charged: 1e-9}
	for _, e := range []models.Event{full, hostile, {}} {
		want, err := json.Marshal(&e)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(appendEvent(nil, &e)); got != string(want) {
			t.Errorf("packed\n%s, not\n%s", got, want)
		}
	}
}
