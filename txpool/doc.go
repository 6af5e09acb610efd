// Package txpool is the mempool of a rollup builder: it holds users' transactions until they are in an enqueued bundle.
//
//	pool, err := txpool.New(txpool.DefaultConfig(chainID), state)
//	hash, err := pool.AddRaw(raw)                  // from eth_sendRawTransaction
//
//	lease := pool.Drain(txpool.Budget{Gas: 30_000_000})
//	… execute lease.Transactions() …
//	lease.Reject(hash, err)                        // what fails leaves, and does not come back at once
//	lease.Return(hash)                             // what does not fit waits for the next block
//	err = lease.Commit()                           // the rest is in a bundle that is enqueued
//	pool.Reset(txpool.Head{Included: …})           // and in a block that State shows
//
// # Where a transaction stands
//
// Per sender, transactions run in the order of their nonces. Those with consecutive nonces from the account's on are in line: pending if
// they can run, parked if they, or one before them, do not pay the floor or the base fee now. Those behind a gap are queued. Those in
// an open lease are on their way into a bundle. Each move is an event, and every admitted transaction leaves by exactly one.
//
// # Order
//
// Between senders the greater effective tip goes first, then the earlier arrival; see [Ordering] for others. The pool keeps all that can run
// in one ordered index, by the least tip of a transaction and its ancestors. Read from the front it is the order of draining, read from the
// back that of eviction, and what does not pay the floor is its end. A [Snapshot] is a copy of it that takes constant time.
//
// # Leases
//
// Drain marks transactions as being in a bundle, and does not remove them. Commit removes them once the bundle is safely enqueued; Release
// gives them back, and so does a lease's expiry. A later Drain goes on with the nonces after the leased ones, so that one bundle can be
// built while another is under way. What is committed stays used up until the host's [State] shows it, or [Pool.Reset] reverts it.
//
// # Fees
//
// The floor begins at Config.MinGasPrice and follows the median of what blocks that are more than half full included, an eighth per block at most. A pool that is more
// than 70 % full asks more of newcomers. A rollup whose blocks have a base fee of their own (EIP-1559) sets Config.FloorWindow to 0 and
// tells [Pool.Reset] the base fee: two markets would push each other up.
//
// # What an attacker can do
//
// Little. A transaction that cannot run now never displaces one that can. All transactions of a sender together must be affordable. Only the end of
// a chain is evicted, and only for one that pays strictly more than the least of that chain. Replacing costs an eighth more, and cannot
// be done for ever. Accounts whose balance others can spend (EIP-7702) have one transaction in line each. The room behind gaps is shared: who has
// most there gives way first. Prices are checked before signatures, what is in the pool or failed in building before both;
// sources that send garbage all the same are the [Limiter]'s business, senders are never punished.
//
// # What was acknowledged
//
// A transaction that Add has accepted leaves the pool only by inclusion, by a
// replacement of its sender, or by an event that names it and the reason
// (promise T5). [Pool.Departure] returns the reason for a day, across restarts
// too.
//
// Transactions that come back, because a lease was released, a block failed or
// the process restarted, are exempt from the caps of count and bytes, in all and
// per sender. They displace no other transaction, and no newcomer displaces
// them. Transactions that the balance does not cover, because a revert took it,
// are parked until it does. What cannot be admitted now, because the host cannot
// read the account or a check refuses it, is held aside and tried again
// ([StatusHeld], [Pool.Held]). [Pool.Reset] and [Pool.Restore] return everything
// that they displaced.
//
// Exempt transactions cannot fill the memory: newcomers are admitted only while
// all transactions together are within the sum of the caps. So the pool never
// holds more than Config.MaxPending, MaxParked and MaxQueued together, and in
// addition what was committed at one time and has failed: the blocks of the
// host's queue. A host that drains and releases without need makes what it
// drained exempt; [Pool.Snapshot] is for looking.
//
// # Restarts
//
// With Config.Journal accepted transactions, leases, departures and what was
// committed are written down before Add, Drain and Commit return;
// [Pool.Restore] reads them back. While the journal fails, nothing new is
// admitted, and a newcomer displaces nothing; what comes back is admitted.
// Drains and commits go on. All of that is written down when the journal works
// again, and is lost if the process ends before.
//
// # Checks
//
// [Pool.Check] verifies the pool's invariants, a part with each call, and is
// cheap enough to be called after every step of a host. [Pool.CheckAll] verifies
// all of them at once.
//
// # For those who know geth's pool
//
// Errors have geth's texts, but are this package's: errors.Is with geth's own
// variables finds them only where they are named as go-ethereum's.
// Config.Lifetime ends transactions that could run as well as those that wait.
// A balance that falls takes the end of a sender's chain, not all that it
// cannot pay one by one. Config.MaxPerSender counts what is in leases and what
// came back. Config.BlockGasLimit is fixed; it should be no more than the Gas
// of the budgets that are drained, or what asks for more waits until it
// expires.
//
// # Cost and concurrency
//
// A [Pool] is safe for concurrent use. It starts no goroutine that outlives a call, but for one that tells events which come faster than the calls
// that cause them can tell them. Adding costs one sender's transactions and the
// logarithm of the pool. Signatures are recovered outside the lock, on all processors. Calls that touch many transactions work in slices
// of 128, so nobody waits for the lock for long; meanwhile readers see the pool as it was before. State, Observe and the other hooks
// are never called with the lock held. State is read while a Drain or a Reset has its turn, so it must not wait for another goroutine
// that calls one of those, or Commit, Release or CleanupExpired.
package txpool
