// Package kvstore makes an [eoa.Store] of any ordered key-value store that can write a batch atomically and durably: see [KV].
// Package eoa/memstore puts it on a map, package eoa/pebblestore on Pebble.
//
// All state of an account stands under its own keys; one record, Meta, holds what each step checks and changes: lease, versions, numbers. Steps of one
// account exclude each other by a lock in the process, so one process at a time may use a KV: Pebble sees to that by itself.
package kvstore
