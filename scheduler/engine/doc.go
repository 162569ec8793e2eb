// Package engine decides: a single-threaded state machine over the board, a file a verb.
//
// A batch of commands and the facts they need go in; one merged models.Plan and the answers come out. It promises that
// every state it writes is a row of the Law, that the same commands, facts and seed give the same plan, and that its
// board equals one rebuilt from the store. It never reads a clock, never does I/O and never starts a goroutine: whoever
// holds it (scheduler/loop, scheduler/sim, a test) brings time and facts.
package engine
