// Package txpool is the mempool of a rollup builder: it holds users' transactions until they are in an enqueued bundle.
//
//	pool, err := txpool.New(txpool.DefaultConfig(chainID), state)
//	err = pool.Add(tx)                        // from eth_sendRawTransaction
//	lease := pool.Drain(txpool.Budget{Gas: 30_000_000, Count: 5})
//	… execute lease.Transactions() …
//	lease.Reject(hash, err)                   // what failed leaves the pool
//	err = lease.Commit()                      // the rest is in a bundle now
//
// # Order
//
// Per sender, transactions run in nonce order. Those with consecutive nonces from the account's nonce on are pending;
// those behind a gap are queued. Between senders the greater tip goes first, then the earlier arrival.
//
// # Leases
//
// Drain marks transactions as being in a bundle, and does not remove them. Commit removes them once the bundle is safely
// enqueued; Release gives them back. A later Drain goes on with the nonces after the leased ones, so that one bundle can be
// built while another is under way. The host's [State] is that of its newest executed block: by the time of Commit it must
// show what the bundle did. If executed blocks are thrown away, [Pool.Reset] reads all accounts anew and takes their
// transactions back.
//
// # What an attacker can do
//
// Little. A transaction that cannot run now never displaces one that can; all transactions of a sender together must be
// affordable; only the last of a sender's chain is evicted, and only for one that pays strictly more than the least of that
// chain; replacing costs an eighth more.
//
// # Concurrency
//
// A [Pool] is safe for concurrent use. Signatures are recovered outside its lock. The host's State and Observe are never
// called with the lock held.
package txpool
