// Package pebblestate implements the disk of package statedb with a Pebble
// database, either the host's or a separate one.
//
//	disk, err := pebblestate.Open(dir, pebblestate.Options{})
//	store, err := statedb.Open(statedb.Config{Disk: disk})
//
// The database contains the values of one root, and a write set for each other
// root. All records of one change are one batch, which is synced before the call
// returns. A crash at any moment leaves the state before or after the change. A
// disk belongs to one store at a time.
package pebblestate
