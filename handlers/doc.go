// Package handlers holds what every endpoint shares: the shape of a route, who calls, strict reading of bodies and
// queries, sealed cursors, and calls that are answered once.
//
// It promises that a body with an unknown field, a doubled name, bad UTF-8 or a NUL never reaches a handler, that a
// cursor works only for the caller and the filter it was made for, and that a creating call with an Idempotency-Key is
// done once. It never knows a status for an error (web does) and never writes SQL.
package handlers
