// Package local runs a private PostgreSQL beside the process that asks for it: the database of `nightshift demo`, of a
// `nightshift serve` without DATABASE_URL, and of the tests.
//
// It holds the search for server binaries, the data folder and the server process. One folder serves one process at a
// time; a second one is told so. Nothing listens on the network: clients come over a socket in the folder, with
// passwords made at the first start. Start brings back a folder whose server or owner was killed. It never wipes a data
// folder and never upgrades one: a folder is run by binaries of the version that made it.
//
// The folder:
//
//	data/            the cluster
//	run/             the socket
//	password         the superuser's
//	login.password   the login's, which is neither superuser nor BYPASSRLS, owns the database and may create roles
//	postgres.log     what the server says
//	binaries/        downloaded server binaries, where the machine has none
package local
