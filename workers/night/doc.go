// Package night is the demonstration's night: real documents of several
// tenants, taken in, cut, embedded, indexed, evaluated and summarised by a
// fleet of workers, planned as one DAG a tenant and driven through the public
// HTTP API with the tenants' own tokens.
//
// It promises that an unfinished night goes on where it stood, whatever died:
// the plan is written down before it is submitted, submitted under an
// idempotency key, and the workers are processes of their own that outlive
// this one and are adopted, not doubled. Every figure it prints comes from the
// API or from the files the tasks wrote.
//
// It never touches the database, never executes a task itself, and never ends
// a process that is not its own worker.
package night
