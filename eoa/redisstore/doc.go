// Package redisstore keeps accounts of package eoa in Redis, for fleets that run on
// many machines.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	s, err := redisstore.New(client, "jamq", redisstore.Options{})
//	fleet, err := eoa.NewFleet(eoa.DefaultFleetConfig(), s, open)
//
// # Lost writes
//
// Redis replicates asynchronously. If it promotes a replica, the last writes may be
// lost although they were acknowledged. Requests that were accepted in these writes
// are gone. Requests that were sent in them look new, and sending them again would
// execute them twice.
//
// There are two protections. First, a process that has seen the lost writes stops
// the account when it next reads the account ([eoa.ErrStoreRolledBack]), unless 16
// other processes have committed since. Until then, workers of other processes may
// send. Second, if no process remembers the lost writes, the chain can reveal them:
// accounts in this store are treated as exclusive, so a transaction that the store
// does not know stops the account. An account that sent transactions before it was
// used with this store stops as well, until [eoa.Client.Resume] accepts them. If
// other programs sign for the account, set [eoa.Config.SharedKey]; requests may
// then be executed twice after a loss.
//
// [Options.Replicas] makes losses rare but not impossible, because Redis may
// promote a replica that did not confirm the write.
//
// # Writes
//
// Each change of an account (a step) is one script, which the server executes
// atomically. The script checks that the account is unchanged since the step was
// decided on, and then writes everything or nothing. Nothing relies on WATCH or on
// a connection. The keys of an account contain its name in braces, {chain:address},
// so that Redis Cluster keeps them in one slot. The indexes of due accounts and of
// accounts with undelivered events share one key for all accounts. Entries of the
// indexes may be outdated, and are checked when they are used.
//
// The server's clock decides when leases begin and end. Times of retries and of
// events are those of the workers. A fleet compares the end of a lease with its own
// clock when it searches for accounts whose worker has died. A fleet whose clock is
// an hour behind therefore finds them an hour late.
//
// A step is as durable as the server makes it. With appendonly yes and appendfsync
// always, an accepted request survives a crash of the server. With weaker settings,
// a crash may lose the last steps. A transaction that was sent in these steps then
// looks like a transaction of another program.
//
// A server that may evict keys to free memory is refused with [ErrEviction], both
// when the store is opened and by later writes. If the two sorted sets of the
// layout below are lost in spite of that, the store rebuilds them from the hashes.
// If the hash of an account is lost but its sorted set is not, calls for the
// account return an error that wraps [eoa.ErrStoreRolledBack].
//
// # Layout
//
//	prefix:{chain:address}:values   hash: values of package kvstore, by the
//	                                rest of the key behind the account, and
//	                                "indexed", the size of the next key
//	prefix:{chain:address}:order    sorted set: the keys that are scanned
//	prefix:due                      sorted set: due times and accounts,
//	                                accounts with undelivered events, and
//	                                "whole"
//
// An operator can read the keys with redis-cli. Names are text: "meta", "record:"
// and "open:" with an id, "pending:" with 2147483647 minus the priority and an id,
// "key:" with the caller's key, "hash:" with a transaction hash, "event:" and
// "order:" with a number. The values of meta, events and orders are JSON. Records
// are binary, because steps with JSON take twice as long; [eoa.DecodeRecord] reads
// them. Ids that are values are 8 bytes, big-endian.
//
//	redis-cli HGET 'jamq:{1:0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed}:values' meta
//	redis-cli ZRANGEBYLEX 'jamq:{1:0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed}:order' [pending: (pending~
//	redis-cli ZRANGE jamq:due 0 9
package redisstore
