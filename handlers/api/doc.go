// Package api turns the public API into verbs: a handler reads the request, asks one thing of the Door or of a scoped
// read, and answers.
//
// It promises that what it accepts is checked to the last field and that a field which is not built yet is refused by
// name. It never decides, never writes SQL and never knows the status of an error.
package api
