// Package body reads JSON bodies strictly: every member by its exact name and at most once, every value with its place
// ("body.tasks[7].priority"), so that a refusal names what is wrong and where.
//
// It promises that text which passed Open or Stream is whole, valid JSON in UTF-8, that numbers are in range and strings hold
// no NUL and no half of a surrogate pair, and that a stream's memory is bounded by its largest element. It collects what is wrong instead of stopping at the
// first thing, up to a hundred.
//
// It never knows what a member means.
package body
