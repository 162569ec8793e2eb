// Package board is the brain's picture of lines, keys, leases, workers and timers.
//
// It holds and it counts; it decides nothing. It promises to stay bounded (a line keeps a window of its best tasks, the
// rest is only counted and read again when needed) and to equal, at any moment between two batches, a board rebuilt from
// the database: Check says where it does not.
package board
