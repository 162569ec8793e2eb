package models_test

import (
	"reflect"
	"slices"
	"testing"

	"nightshift/models"
)

// A store may write a brief change without the columns it leaves out, so nothing else may differ.
func TestSameButMoves(t *testing.T) {
	moved := []string{
		"State", "Attempt", "AttemptsUsed", "UpdatedAt", "StartedAt", "FinishedAt", "LeaseUntil", "Cards", "Worker",
		"AttemptID", "Token", "Remaining", "Killed",
	}
	kind := reflect.TypeFor[models.Task]()
	for i := range kind.NumField() {
		var before, after models.Task
		field := reflect.ValueOf(&after).Elem().Field(i)
		switch field.Kind() {
		case reflect.String:
			field.SetString("x")
		case reflect.Array:
			field.Index(0).SetUint(1)
		default:
			field.SetInt(1)
		}
		name := kind.Field(i).Name
		if got, want := models.SameButMoves(&before, &after), slices.Contains(moved, name); got != want {
			t.Errorf("rows that differ in %s alone: %v", name, got)
		}
	}
}
