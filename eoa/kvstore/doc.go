// Package kvstore implements [eoa.Store] on any ordered key-value store that
// can write a batch atomically and durably; see [KV]. Package eoa/memstore uses
// it with a map, package pebble/pebbleeoa with Pebble, and package
// eoa/redisstore with Redis.
//
// Each account has its own keys. One of them, its meta, holds the values that
// each step checks and changes: the lease, the versions and the counters. Every
// step reads meta and writes it. A lock in the process orders the steps of an
// account. This is enough for a KV that only one process can open. A KV that
// several processes use must implement [Shared]: it writes a step only if meta
// is unchanged since the step read it. Otherwise the step is tried again.
package kvstore
