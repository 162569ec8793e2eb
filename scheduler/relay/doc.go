// Package relay tells what happened: it follows the events that the loop has written and hands them to whoever listens.
//
// It reads packed rows by batch number, which is gap-free and in the order of commits, so a listener that resumes at the
// position it saw last gets every later event once, in order, across restarts and replicas. It promises that a slow
// listener holds up nobody: one that falls behind its buffer is cut and resumes by position. It never writes, and never
// decides who may see what: the filter it is given has already been scoped.
package relay
