// Package pgtest gives tests a database of their own, empty (New) or with the schema (Migrated), in some tens of milliseconds; to
// tests that change nothing but rows one that is emptied and given on (Opened), in a few.
//
// All test processes of a machine's user share one private cluster: the first starts it, later ones join it, and it
// ends by itself some seconds after the last one has gone, however that one ended, leaving neither process nor files.
// The cluster is quick and forgets (fsync off): tests of durability run a models/postgres/local of their own. Where
// TEST_DATABASE_URL is set, databases are made there instead, by a role that may create databases and roles.
//
// A test's login is what a production login is: owner of its database, allowed to create roles, neither superuser nor
// BYPASSRLS. Database and roles are dropped when the test ends; those that are given on are left to the next test process, and
// end with the cluster.
package pgtest
