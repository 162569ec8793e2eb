// Package store measures models/postgres against PostgreSQL's own limit, in one run and on one server.
//
// The limit ("raw") is what anybody could write in an afternoon: one table, a primary key, the payload inline, three
// set-based statements a batch, each committed by itself, on one connection; raw.sql holds all of it. The store does the
// same life cycles with everything it promises: fence, numbered batches, guards, indexes, specs beside the rows, attempts
// with results, events. Runs alternate, and only ratios of medians count.
package store
