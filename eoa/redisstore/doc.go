// Package redisstore keeps accounts of package eoa in Redis, for fleets on many machines.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	s, err := redisstore.New(client, "jamq")
//	fleet, err := eoa.NewFleet(eoa.DefaultFleetConfig(), s, open)
//
// Each step is one script, so one atomic step of the server: it checks that the account is as it was when the step was decided on, and then writes all or
// nothing. Nothing relies on WATCH or on a connection. All keys of an account carry its name in braces, {chain:address}, so that Redis Cluster keeps them in
// one slot. The index of what is due is one key beside them, and only a hint.
//
// A step is as durable as the server makes it: with appendonly yes and appendfsync always what Submit accepted survives a crash of the server; with less, the
// last moments may be gone, and a transaction that was broadcast in them is then somebody else's to the executor.
//
//	prefix:{chain:address}:values   hash: the account's keys and their values, as package kvstore lays them out
//	prefix:{chain:address}:order    sorted set: those of the keys that are scanned, by name
//	prefix:due                      sorted set: times and accounts
package redisstore
