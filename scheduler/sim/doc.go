// Package sim is a virtual world around the production engine: tenants, arrivals, workers and faults on a virtual clock
// and the reference store.
//
// The same scenario gives the same trace, hash for hash: time, chance and order come from the scenario alone, so a night
// of work is lived through in seconds and a seed that shows a fault shows it again. While it runs the world is watched:
// never two live leases of a task, one accepted outcome, nothing acknowledged lost, no worker given more than it has, and
// where the scenario says so no worker idle while something waits. It never reads a clock, never starts a goroutine and
// knows nothing of HTTP or PostgreSQL.
package sim
