// Package txpool is the transaction pool of a rollup builder. It holds users'
// transactions until they are in a block.
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
//	pool.Reset(txpool.Head{Included: …})    // when the block is visible in State
//
// # Status and order
//
// The transactions of a sender run in nonce order. A transaction is pending if it
// can run. It is parked if it, or one before it, does not pay the floor or the base
// fee, and queued if it is behind a nonce gap. Between senders, the higher
// effective tip goes first, then the earlier arrival; Config.Score configures other
// orders. The place of a transaction is decided by the lowest tip among it and its
// ancestors. Building reads this order from the front, and eviction from the back.
// A [Snapshot] copies it in constant time.
//
// # Sessions
//
// A [Session] locks each transaction that it hands out: others can neither replace
// nor evict it while its block is being made. [Pool.Reset] removes the transactions
// of the block and ends the session. If there is no block, Cancel or the next Build
// ends it. A session is not stored: after a crash its transactions are offered
// again, and State refuses nonces that are used.
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
// Transactions come back if a session ends without a block, a block fails or the
// process restarts. They are then exempt from the caps and displace no others. A
// transaction that the balance does not cover is parked. If it cannot be admitted
// now, the pool holds it aside and tries again later ([StatusHeld]). Newcomers are
// admitted only while all transactions together are below the sum of the caps.
// Pending transactions that move behind a gap or are parked make way only for those
// that can run.
//
// A restart keeps this promise if the host sets Config.KeepChanges, appends the
// records of [Pool.TakeChanges] to a log before it answers a user, and after the
// restart passes them to [Pool.ReplayChange] and calls [Pool.Restore]. Package
// builder/mempool does so for rollups on package builder.
//
// # Differences from geth
//
// Error messages match geth's, because wallets parse them, but most error
// values are this package's own; ErrInvalidChainID and ErrTypeNotSupported are
// go-ethereum's. Config.Lifetime also applies to pending transactions.
//
// # Concurrency
//
// A [Pool] is safe for concurrent use. Next, Reset and CleanupExpired exclude one
// another. State must not wait for a goroutine that calls one of them. A panic of
// the host's code comes out of the call, which then holds no lock and, except for
// Restore, can be made again. Batches and slow accounts are examined on several
// goroutines; a panic of one of these ends the process.
package txpool
