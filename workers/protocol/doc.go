// Package protocol holds the wire types of the worker protocol: what a worker
// and the control plane say to each other over HTTPS, name by name.
//
// It promises that both sides speak the same JSON: the SDK encodes these types
// and the handlers decode them. Optional members of a request are pointers,
// slices or raw JSON and are left out when empty; every named member of an
// answer is present, null when it has no value.
//
// It never does anything: no network, no clock, no rules of scheduling, and
// nothing beyond the standard library.
package protocol
