// Package pebbleeoa keeps accounts of package eoa in a Pebble database:
// durable, embedded, and used by one process at a time.
//
//	s, err := pebbleeoa.Open(dir, pebbleeoa.Options{})
//	defer s.Close()
//	e, err := eoa.New(cfg, account, s, chain, signer)
//
// Every step is one batch, which is synced to disk before the call returns. After a
// crash, a step is in the database completely or not at all, because Pebble ignores
// a torn end of its log when it opens a database.
package pebbleeoa
