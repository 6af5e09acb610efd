// Package kvstore makes an [eoa.Store] of any ordered key-value store that can write a batch atomically and durably: see [KV].
// Package eoa/memstore puts it on a map, package eoa/pebblestore on Pebble.
//
// All state of an account stands under its own keys; one of them, its meta, holds what each step checks and changes: lease, versions, numbers. Every step reads
// meta and writes it. Steps of one account exclude each other by a lock in the process, which is enough for a KV that one process at a time can open. A KV that
// several processes use is [Shared]: it writes a step only if meta is as the step read it, and the step is tried again if not.
package kvstore
