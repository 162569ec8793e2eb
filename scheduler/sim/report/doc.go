// Package report shows what came of a simulated world: as a table, as JSON, as a picture; one world alone, or beside the
// same world with something changed.
//
// It promises that the same results give the same bytes. It never runs a world.
package report
