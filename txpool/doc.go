// Package txpool is the transaction pool of a rollup builder. It holds users'
// transactions until they are in an enqueued bundle.
//
//	pool, err := txpool.New(txpool.DefaultConfig(chainID), state)
//	hash, err := pool.AddRaw(raw)           // from eth_sendRawTransaction
//	session := pool.Build(ctx, txpool.Budget{Gas: 30_000_000})
//	for tx := session.Next(); tx != nil; tx = session.Next() {
//		gas, err := execute(tx)             // yours
//		if err != nil {
//			session.Fail(err)           // or session.Later()
//			continue
//		}
//		session.Used(gas, tx.Size())
//	}
//	err = session.Commit()                  // the block is in an enqueued bundle
//	pool.Reset(txpool.Head{Included: …})    // after the block is visible in State
//
// # Status and order
//
// The transactions of a sender run in nonce order. A transaction is pending if
// it can run, parked if it or one before it does not pay the floor or the base
// fee, and queued if it is behind a nonce gap. Between senders, the higher
// effective tip goes first, then the earlier arrival; Config.Score configures
// other orders. The lowest tip among a transaction and its ancestors decides
// its place. Building reads this order from the front, and eviction from the
// back. A [Snapshot] copies it in constant time.
//
// # Sessions and leases
//
// A [Session] puts each transaction that it hands out into a [Lease]. Commit
// removes them when the bundle is durably enqueued. Release gives them back,
// and so does the expiry of the lease. The next session continues with the
// nonces after the leased ones, so that several bundles can be built at once.
// Committed nonces stay used until the host's [State] shows them or
// [Pool.Reset] reverts them.
//
// # Fees
//
// The floor starts at Config.MinGasPrice and follows the median price of recent
// blocks that were more than half full, by at most an eighth per block. If the
// pool is more than 70 % full, newcomers pay more. A rollup with a base fee uses
// [DefaultConfigEIP1559] and passes the base fee to [Pool.Reset].
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
// restarts. They are then exempt from the caps and displace no others. If the
// balance does not cover one, it is parked. If one cannot be admitted now, the
// pool holds it aside and tries again ([StatusHeld]). Newcomers are admitted
// only while all transactions together are below the sum of the caps. Pending
// ones that move behind a gap or are parked make way only for those that can run.
//
// With Config.Journal, accepted transactions, leases, departures and commits
// are durable before Add, Seal and Commit return, and [Pool.Restore] reads
// them after a restart. While the journal fails, the pool refuses newcomers. It
// writes other changes when the journal works again; they are lost if the
// process ends before.
//
// # Differences from geth
//
// Error messages match geth's, because wallets parse them, but most error
// values are this package's own; ErrInvalidChainID and ErrTypeNotSupported are
// go-ethereum's. Config.Lifetime also applies to pending transactions.
//
// # Concurrency
//
// A [Pool] is safe for concurrent use. Next, Reset, Commit, Release and
// CleanupExpired exclude one another. State must not wait for a goroutine that
// calls one.
package txpool
