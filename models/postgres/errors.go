package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"nightshift/models"
)

// SQLSTATEs that our own statements raise.
const (
	stateFenceLost = "NS001"
	stateRowCount  = "NS002"
)

// classify gives an error of the database the code that the loop has a rule for. It is for work whose COMMIT was not
// sent, or that wrote nothing; Apply judges lost connections by itself.
func classify(err error) error {
	var known *models.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return models.Errorf(codeOf(pg.Code), "the database says %s: %w", pg.Code, err)
	}
	var wire net.Error
	if errors.As(err, &wire) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return models.Errorf(models.Unavailable, "the database does not answer: %w", err)
	}
	return models.Errorf(models.Unavailable, "the connection to the database failed: %w", err)
}

// connectionLost says that a statement failed because its session had ended, not for what it asked.
func connectionLost(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return len(pg.Code) == 5 && (pg.Code[:2] == "08" || pg.Code[:3] == "57P")
	}
	var connecting *pgconn.ConnectError
	var wire net.Error
	switch {
	case errors.As(err, &connecting): // there is no database to ask
		return false
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), pgconn.SafeToRetry(err):
		return true
	}
	return errors.As(err, &wire) && !wire.Timeout()
}

// codeOf is the rule for a SQLSTATE.
func codeOf(state string) models.Code {
	switch state {
	case stateFenceLost:
		return models.FenceLost
	case stateRowCount:
		return models.RowCount
	case "40001", "40P01", "55P03", "57014":
		return models.Rollback
	case "25P02": // the statement that failed was not ours to see
		return models.Rollback
	}
	if len(state) < 2 {
		return models.Unavailable
	}
	switch state[:2] {
	case "22", "23", "42", "54", "XX":
		return models.BadData
	}
	return models.Unavailable
}
