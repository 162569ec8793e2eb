package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"nightshift/models"
)

func TestEveryFailureHasARule(t *testing.T) {
	for state, want := range map[string]models.Code{
		"NS001": models.FenceLost, "NS002": models.RowCount, "40001": models.Rollback, "40P01": models.Rollback, "55P03": models.Rollback,
		"57014": models.Rollback, "22021": models.BadData, "23505": models.BadData, "42883": models.BadData, "54000": models.BadData,
		"XX000": models.BadData, "53300": models.Unavailable, "57P01": models.Unavailable, "08006": models.Unavailable, "": models.Unavailable,
	} {
		if got := models.CodeOf(classify(fmt.Errorf("apply: %w", &pgconn.PgError{Code: state}))); got != want {
			t.Errorf("%s is %s, not %s", state, got, want)
		}
	}
	for _, err := range []error{context.DeadlineExceeded, errors.New("conn closed")} {
		if got := models.CodeOf(classify(err)); got != models.Unavailable {
			t.Errorf("%v is %s", err, got)
		}
	}
	known := models.Errorf(models.BadData, "said before")
	if !errors.Is(classify(known), error(known)) || classify(nil) != nil {
		t.Error("what has a code keeps it")
	}
}
