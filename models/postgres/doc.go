// Package postgres is the store under the engine and the reader behind the pages: PostgreSQL is the source of truth.
//
// It holds the pool and its two roles (db.go, roles.go, migrate.go), the writer's one connection with its fenced,
// pipelined transactions (Writer: apply, facts, refill, load, brain), the staging of large bodies (stage.go), secrets
// at rest (vault.go) and, for people, reads through db.For(scope). The statements of the hot path stand in sql/, each
// with its purpose, the index it uses and the locks it takes.
//
// It promises that a plan is applied whole or not at all, that a brain which lost its epoch commits nothing more, that
// every failure carries a code of package models, and that a query which forgot its role reads nothing. It never
// decides: which rows change, and to what, is said by the plan. It reads no clock but the database's.
package postgres
