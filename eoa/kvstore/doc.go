// Package kvstore turns any ordered key-value store that can write a batch
// atomically and durably into an [eoa.Store]; see [KV]. Package eoa/memstore uses
// it with a map, package pebble/pebbleeoa with Pebble, and package eoa/redisstore
// with Redis.
//
// Each account has its own keys. One of them, called meta, contains the values
// that every write checks and changes: the lease, the versions and the counters.
// Each writing method of the store is one step: it reads meta, decides, and writes
// meta together with everything else. A lock in the process lets only one step of
// an account run at a time.
//
// This is enough if only one process can open the KV. If several processes use the
// KV, it must implement [Shared]. A step is then written only if no other process
// has changed meta since the step read it; otherwise the step is tried again.
package kvstore
