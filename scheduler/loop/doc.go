// Package loop lets the engine decide: it collects what replicas ask into batches, and keeps exactly one brain.
//
// A Loop stands by until it is the brain, then runs one goroutine that takes a batch from its bounded inbox, reads the
// facts the batch needs, lets the engine decide, applies the plan in one transaction, and only then answers. It promises
// that no answer goes out before what it says is committed, that a caller is told the truth about a commit whose answer
// was lost, that one bad command hurts only its sender, and that a loop which is no longer the brain answers nothing.
// It never decides anything about tasks, and never guesses at a clock: time is the database's, read with the facts.
package loop
