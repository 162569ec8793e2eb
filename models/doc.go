// Package models holds the nouns of Nightshift and the Law of their states.
//
// It promises that every change of a task's state is a row of one table (Law), and that what a decision wants changed
// is data (Plan) that a store applies whole or not at all. It never reads a clock, never does I/O, never starts a
// goroutine and imports the standard library alone.
package models
