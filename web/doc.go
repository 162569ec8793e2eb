// Package web is the front of a replica: it guards every route with the scopes of the route table, bounds what is read,
// gives every answer its request id, and says in one place how an error looks.
//
// It promises problem+json for whatever goes wrong below /v1, that a route without a scope never starts, and that
// nothing a client sends becomes a 5xx. It never decides and never reads or writes what decisions read: commands go
// through the Door.
package web
