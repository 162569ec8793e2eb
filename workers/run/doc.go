// Package run holds the task types that come with the worker: each does real
// work on its own machine, none needs a network but http.request and a
// text.embed that was given an endpoint.
//
// It promises that every type may be executed twice: artefacts have names
// that follow from the payload and are replaced by one rename, so the second
// execution writes what the first wrote. Results carry references and figures;
// what is larger lies in the worker's data folder. A failure has the class
// that says whether trying again can help.
//
// It never leaves the folders the worker was given, never runs a command that
// is not on the worker's list, and never connects to an internal address that
// is not allowed by name.
package run
