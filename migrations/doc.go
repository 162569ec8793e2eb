// Package migrations holds the schema as SQL, one file a step, applied in order by goose.
//
// It promises that a file never changes once it was released, and that a new one has a higher number than all before it: a
// database that has passed a number refuses what comes below it. Its code says no more than what the last one is: models/postgres
// runs the files, under a lock, so that replicas may start together.
package migrations

import (
	"embed"
	"strconv"
	"strings"
)

// FS holds the files.
//
//go:embed *.sql
var FS embed.FS

// Last is the number of the last file.
func Last() (last int64) {
	files, err := FS.ReadDir(".")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, f := range files {
		number, _, _ := strings.Cut(f.Name(), "_")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			last = max(last, n)
		}
	}
	return last
}
