// Package pglog keeps the log of a builder in PostgreSQL, so that another machine goes on when the
// builder's machine dies. Each machine opens the log and runs a builder on it. One of them leads:
// it takes operations, makes blocks and sends packages. The builders of the others follow it, so
// that their heads and blocks can be read, and one of them leads next.
//
//	log, err := pglog.Open(ctx, pglog.DefaultConfig("postgres://…", "my_rollup"))
//	defer log.Close()
//	b, err := builder.Open(ctx, cfg, log, rollup, network)
//	err = b.Run(ctx) // follows the leader, and then leads
//
// Run ends with an error that wraps journal.ErrFenced if another process has taken the lead. The
// program then begins again with a new rollup, best by a restart of the process.
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
//   - A process leads only when it has read all records.
//   - A record that was damaged, removed or added otherwise is noticed: Replay compares a hash over
//     all records with the hash in the log's row, and returns journal.ErrCorrupt. A process that
//     follows compares the hash with the records that it has read, and returns journal.ErrLost if
//     the database has lost some of them (promise K6).
//
// # The lease
//
// The leader renews its lease in the database. If a process that follows sees no renewal for
// Config.Lease, by its own clock, for example because the leader's machine is gone, it takes the
// lead: it raises the epoch, which fences the old leader. If the old leader has stopped with the
// row locked, its session of the database is ended first. Clocks decide only how fast this is.
// [Log.Close] gives the lead away at once, and [Log.HandOver] to a process with a name.
//
// A builder's checkpoint replaces the records of the log. The replaced records stay until all
// processes that follow have read them, so that a slow one does not have to begin again; if one is
// not seen for Config.Keep, they go.
//
// # The database
//
// PostgreSQL 13 or later, with the rights to create tables in the search path and to end sessions
// of the same user; the tests run on the version of the machine. A pooler in transaction mode, such
// as pgbouncer, may be in between. Run the database with a synchronous standby: without one, the
// loss of the database's machine can lose the last records, although their users were answered. A
// process that has read them notices the loss and does not lead; if there is none, [Log.Promoted]
// tells the builder that the timeline of the database has changed, and the builder waits: see
// builder.SharedLog.
//
// All methods of a [Log] are safe for concurrent use.
package pglog
