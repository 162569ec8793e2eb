// Package figures measures the quality of the engine's decisions: a world or a bench for each figure, with the goal it
// should reach and the value at which it has failed.
//
// Worlds are the same on every machine. Speed and memory depend on it, so the clock is an argument. What needs recorded
// traces is left out, and said to be, where there are none. It never judges what is neither of scheduling nor of the choice
// among models.
package figures
