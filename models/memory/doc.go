// Package memory is the reference store: what models/postgres promises, said in maps and sorted lists.
//
// It holds every row in memory and enforces what PostgreSQL enforces: the fence, guards on state and token, unique
// keys, the Law, and plans that happen whole or not at all. storetest holds the two stores to the same answers, and
// scheduler/sim runs whole nights on this one, so it is obviously right first and quick second. Faults can be asked of
// it, to see what becomes of a batch that failed or whose answer was lost. It has no clock of its own, does no I/O and
// starts no goroutine; a mutex lets several callers share it.
//
// What it settles where a Plan leaves room:
//
//   - A plan is checked against the rows as they stand when its turn comes: business keys of new tasks must be free
//     before the plan's changes set any free. Guards that fail are RowCount, keys, unknown rows and breaches of the Law
//     are BadData.
//   - An edge that fires lowers Remaining of the task it leads to; one that is killed lowers Remaining and raises
//     Killed. An edge leaves open once.
//   - Staged rows are in no line, have no timer and count in their workflow as staged. They claim
//     their business keys when they enter.
//   - Everything is answered in order of (environment, id), lines in order of rank, timers in order of their moment.
package memory
