// Package txpool is the transaction pool of a rollup builder. It holds users'
// transactions until they are in an enqueued bundle.
//
//	pool, err := txpool.New(txpool.DefaultConfig(chainID), state)
//	hash, err := pool.AddRaw(raw)           // from eth_sendRawTransaction
//
//	lease := pool.Drain(txpool.Budget{Gas: 30_000_000}) // then execute lease.Transactions()
//	lease.Reject(hash, err)                 // failed: drop it
//	lease.Return(hash)                      // did not fit: keep it for the next block
//	err = lease.Commit()                    // the rest is in an enqueued bundle
//	pool.Reset(txpool.Head{Included: …})    // after the block is visible in State
//
// # Status and order
//
// The transactions of a sender run in nonce order. A transaction is pending if
// it can run, parked if it or one before it does not pay the floor or the base
// fee, and queued if it is behind a nonce gap. Between senders, the higher
// effective tip goes first, then the earlier arrival; [Ordering] configures
// other orders. The lowest tip among a transaction and its ancestors decides
// its place. Draining reads this order from the front, and eviction from the
// back. A [Snapshot] copies it in constant time.
//
// # Leases
//
// Drain marks transactions as being in a bundle. Commit removes them when the
// bundle is durably enqueued. Release gives them back, and so does the expiry
// of the lease. The next Drain continues with the nonces after the leased ones,
// so that several bundles can be built at once. Committed nonces stay used
// until the host's [State] shows them or [Pool.Reset] reverts them.
//
// # Fees
//
// The floor starts at Config.MinGasPrice and follows the median price of recent
// blocks that were more than half full, by at most an eighth per block. If the
// pool is more than 70 % full, newcomers pay more. A rollup with a base fee
// (EIP-1559) sets Config.FloorWindow to 0 and passes the base fee to
// [Pool.Reset]; two fee markets would push each other up.
//
// The pool resists attacks by rules I1 to I15 of docs/invariants.md. For
// example, a transaction that cannot run never displaces one that can (I1), and
// the balance must cover all transactions of a sender together (I2). Package
// ratelimit limits sources; see [Spam] and [Underpriced].
//
// # Promises
//
// A transaction that Add has accepted leaves the pool only by inclusion, by a
// replacement of its sender, or with an event that names it and the reason
// (T5). [Pool.Departure] returns the reason for a day.
//
// Transactions come back if a lease is released, a block fails or the process
// restarts. They are then exempt from the caps, displace no other transaction,
// and are not displaced. If the balance does not cover one, it is parked. If
// one cannot be admitted now, the pool holds it aside and tries again
// ([StatusHeld]). Newcomers are admitted only while all transactions together
// are below the sum of the caps, so exempt ones cannot fill the memory. Use
// [Pool.Snapshot], not Drain, to inspect the pool.
//
// With Config.Journal, accepted transactions, leases, departures and commits
// are durable before Add, Drain and Commit return, and [Pool.Restore] reads
// them after a restart. While the journal fails, the pool refuses newcomers. It
// writes other changes when the journal works again; they are lost if the
// process ends before.
//
// # Differences from geth
//
// Error messages match geth's, because wallets parse them, but most error
// values are this package's own. errors.Is matches a go-ethereum variable only
// for errors documented as such (ErrInvalidChainID, ErrTypeNotSupported).
// Config.Lifetime also applies to pending transactions. If a balance falls,
// transactions are dropped from the end of the sender's chain.
// Config.BlockGasLimit should not exceed Budget.Gas.
//
// # Concurrency
//
// A [Pool] is safe for concurrent use. Calls that touch many transactions work
// in slices of 128, so that they never hold the lock for long; meanwhile
// readers see the pool as it was before the call. Drain, Reset, Commit, Release
// and CleanupExpired exclude one another. State must not wait for a goroutine
// that calls one of them: that would deadlock.
package txpool
