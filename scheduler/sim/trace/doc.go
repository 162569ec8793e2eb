// Package trace reads what others have recorded of their work, so that it can be lived through again.
//
// It knows the formats by their header: GPU jobs of two clusters, requests to language models with their tokens, task
// graphs, and the calls of timers by the minute. It promises that a file read twice gives the same tasks in the same
// order, and says which line it cannot read. It never keeps a trace: what it reads stays where it was.
package trace
