// Package chaos breaks a running Nightshift and looks at what is left: the real binary as processes, a PostgreSQL of its
// own that is as durable as in earnest, and links that fail on demand.
//
// It holds the world that the tests break (replicas, workers, a database, a proxy a link), the journals of what callers
// and workers were told, and the check that compares the journals with the database once the dust has settled.
//
// It promises that a test which passes has seen: what was acknowledged is there (I1), one accepted outcome a task (I2),
// starts beyond the first explained by what was killed (I3), one task a key after everything unclear was sent again (I4),
// counters that equal a recount (I5), stale tokens refused (I6), no panic in any log (I8). Each test prints its figures
// and the seed of its choices.
//
// It never runs in a plain `go test ./...`: `make chaos` sets NIGHTSHIFT_CHAOS. It never reaches into the server: what it
// knows comes over HTTP, from the processes' logs, or from the database as its administrator.
package chaos
