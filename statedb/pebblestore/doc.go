// Package pebblestore is a disk for package statedb: a Pebble database, of the host's or of its own.
//
//	disk, err := pebblestore.Open(dir, pebblestore.Options{})
//	store, err := statedb.Open(statedb.Config{Profile: statedb.EIP7864(), Disk: disk})
//
// The database has the values of the canonical root, and a write set for each other root; what they look like is statedb's business. All
// records of one change are one batch, which is synced before the call returns: a crash at any moment leaves the state before the change or
// the one after it. A disk belongs to one store at a time.
package pebblestore
