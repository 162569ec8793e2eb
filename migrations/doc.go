// Package migrations holds the schema as SQL, one file a step, applied in order by goose.
//
// It promises that a file never changes once it was released. It holds no code beyond the embedding: models/postgres
// runs the files, under a lock, so that replicas may start together.
package migrations

import "embed"

// FS holds the files.
//
//go:embed *.sql
var FS embed.FS
