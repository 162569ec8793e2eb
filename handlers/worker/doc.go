// Package worker turns the worker protocol into verbs: workers register, claim, beat and report here, and people look at
// them.
//
// It promises that a client that went away never keeps a task: what can't be delivered goes back at once. Reports are read
// strictly and quickly, since every task passes through them. It never decides anything, and never trusts a worker beyond
// what its token, session and lease say.
package worker
