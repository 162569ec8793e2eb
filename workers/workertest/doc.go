// Package workertest is a control plane in miniature for tests of workers: a
// real HTTP server that speaks the worker protocol over tasks in memory.
//
// It promises to be as strict as the real one where a worker can be wrong:
// tokens expire, sessions are replaced, leases run out and are checked with
// worker and session, a lease missing from two beats goes back, and unknown
// members of a body are refused. It can be stopped and started on the same
// address, and told to answer with a given status.
//
// It never decides what should run: tasks are leased in the order they came,
// to the first worker whose patterns fit.
package workertest
