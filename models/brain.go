package models

// Brain is the row that says who decides.
type Brain struct {
	Epoch     int64
	RenewedAt Instant // database clock; 0: handed over
	Address   string
	Batch     int64  // the last committed
	Own       bool   // raised by this store, whose caller did not hear of it: nobody decides
	Beat      string // changes whenever the row does; a standby watches it by its own monotonic clock
	// Schema is the last step of the migrations that the program which decides knows, Migrated the last that the database
	// has, Known the last that this program knows. All are 0 where there are no migrations.
	Schema, Migrated, Known int64
}

// Newer says that a program which knows more than this one has migrated the database, or decides: what it keeps may be
// lost by one that does not know of it.
func (b *Brain) Newer() bool { return b.Migrated > b.Known || b.Schema > b.Known }

// Older says that the program which decides does not know what the database has by now.
func (b *Brain) Older() bool { return b.Epoch > 0 && b.Schema < b.Migrated && b.Known >= b.Migrated }
