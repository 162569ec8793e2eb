// Package acceptance holds the front door to its contract from outside, as a caller would: over HTTP against a whole
// replica, with nothing but tokens, statuses, headers and JSON.
//
// It promises that what it checks is what callers are told, sentence by sentence. It never looks behind the door: no
// store, no engine, no clock but the wall's.
package acceptance
