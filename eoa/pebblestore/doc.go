// Package pebblestore keeps accounts of package eoa in a Pebble database: durable, embedded, for one process at a time.
//
//	s, err := pebblestore.Open(dir, pebblestore.Options{})
//	defer s.Close()
//	e, err := eoa.New(cfg, account, s, chain, signer)
//
// Every step is one batch that is synced to disk before it counts. Pebble finds a torn end of its log by itself and opens without it: a step is on disk whole
// or not at all.
package pebblestore
