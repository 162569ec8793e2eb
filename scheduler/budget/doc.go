// Package budget says what a budget covers: when its days and months begin in its time zone, how much of it is left beside what
// was spent and what running attempts are expected to spend, and which of its alerts are due. It knows amounts and moments
// alone, reads no clock, and keeps nothing.
package budget
