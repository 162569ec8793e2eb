// Package text takes documents apart: sections with their headings, chunks,
// words, hashed term vectors, and the sentences that say most.
//
// It promises to be deterministic: the same bytes give the same sections,
// vectors and summaries on every machine, so that a task may run twice. A
// section's text never holds its own heading, so a heading can be asked for
// its section without giving the answer away.
//
// It reads no file and calls no network.
package text
