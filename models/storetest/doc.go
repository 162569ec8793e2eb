// Package storetest holds two stores to the same answers.
//
// One random script, told by its seed alone, drives an engine over each of two stores: submits, workflows, staged
// bodies, claims, heartbeats, results, cancels, dead letters, workers that come and go, paused lanes, lost leases,
// jumps of time, failed and unclear commits, changes of brain. After every step it compares every plan, every answer,
// every refill and what a board would be rebuilt from, and asks each engine whether its board equals that rebuild. A
// seed that fails says at which step and what differs; the same seed fails in the same way again.
//
// A Mirror does the same for the engine's stories: it is the reference store with PostgreSQL beside it, and a story that one
// of them tells otherwise fails.
package storetest
