// Package client calls the public HTTP API with client credentials.
//
// It fetches an access token, renews it before it expires, trusts the
// certificates of a file when one is named, and turns every refusal into a
// Refusal that carries the problem's code and the wait the server asked for.
//
// It promises that a call either answers, is refused with the server's own
// words, or says that the server could not be reached. It never repeats a call
// by itself, but for one with a token the server no longer takes: whether to
// try again is the caller's decision, Temporary and Backoff help with it.
package client
