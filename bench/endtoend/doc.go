// Package endtoend measures whole tasks over HTTP: the real binary serves, clients submit and workers claim and report in
// batch forms, with everything switched on. The raw limit it is divided by was measured in the same run, on the same
// PostgreSQL (package bench/store).
package endtoend
