// Package pglog keeps the log of a builder in PostgreSQL, so that another machine can go on when
// the builder's machine dies. One process leads at a time and writes; the others wait in [Open].
//
//	log, err := pglog.Open(ctx, pglog.DefaultConfig("postgres://…", "my_rollup"))
//	defer log.Close()
//	b, err := builder.Open(ctx, cfg, log, rollup, network)
//	err = b.Run(ctx) // ends with an error that wraps ErrFenced if another process leads
//
// # What is promised
//
//   - One process writes (promise K4). A process that has lost the lead appends nothing, whatever
//     it believes: each append is one statement that checks the leader's epoch under the lock of
//     the log's row. The check needs no assumption about time, so it also holds for a process that
//     was stopped for an hour in the middle of an append.
//   - An append is written once. If its answer is lost, the process asks again, and recognizes
//     from position and hash of the log whether the first attempt was written.
//   - Append returns nil only if the database has acknowledged the commit. With synchronous
//     replication a commit can become visible before the standby has it, if an operator cancels
//     the wait; PostgreSQL then gives a warning. Append waits until a later commit is acknowledged
//     without a warning.
//   - A record that was damaged, removed or added otherwise is noticed: Replay compares a hash over
//     all records with the hash in the log's row, and returns journal.ErrCorrupt.
//
// # The lease
//
// The leader renews its lease in the database. If it does not for Config.Lease, for example because
// its machine is gone, the next process takes the lead: it raises the epoch, which fences the old
// one. If the old process has stopped with the row locked, its session of the database is ended
// first. Clocks decide only how fast this is: the lease is judged by the clock of the database.
// [Log.Close] gives the lead away at once.
//
// # The database
//
// PostgreSQL 13 or later, with the rights to create tables in the search path and to end sessions
// of the same user; the tests run on the version of the machine. Nothing is kept in a session of
// the database, as a pooler in transaction mode demands, but no test runs behind one. Run it with
// a synchronous standby: without one, the loss of the database's machine can lose the last
// records, although their users were answered. This package does not notice the loss; it only
// tells that the timeline of the database has changed: see [Log.Promoted].
//
// All methods of a [Log] are safe for concurrent use.
package pglog
