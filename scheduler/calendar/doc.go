// Package calendar says when work should exist: rules (cron, interval, once), their occurrences between two moments, and
// what becomes of an occurrence that is late, excluded or overtaken by the one before, and when events and items that have
// gathered become a run.
//
// It promises that the answer depends on its arguments and the time zone database alone; that it is right at every change
// of a zone's clock under the stated policy; that Next rises strictly; and that whatever it is given, it ends soon and
// holds little: an expression has at most 256 characters, a search ends after 40 years.
//
// It never reads a clock, starts nothing, and keeps nothing but zones it has loaded (at most the names in zones.txt).
//
// How a clock change is met. A rule whose hour field begins with * follows real time: it runs whenever the wall clock
// shows a matching time, however often. Any other rule means a time of day. Where the clock jumps over that time, Shift
// runs it once at the jump, however many matching times the jump swallowed, and Skip leaves it out. Where the clock is
// set back and shows the time twice, First, Second or Both says which pass counts.
package calendar
