// Package pglog keeps the log of a builder in PostgreSQL, so that another machine
// can continue when the builder's machine dies. Each machine opens the log and runs
// a builder on it. One of them leads: it accepts operations, makes blocks and sends
// packages. The builders on the other machines follow it, so that users can read
// their heads and blocks, and so that one of them can lead next.
//
//	log, err := pglog.Open(ctx, pglog.DefaultConfig("postgres://…", "my_rollup"))
//	defer log.Close()
//	b, err := builder.Open(ctx, cfg, log, rollup, network)
//	err = b.Run(ctx) // follows the leader, and then leads
//
// If another process has taken the lead, Run ends with an error that wraps
// journal.ErrFenced. The program then begins again with a new rollup, which is
// easiest by a restart of the process.
//
// # What is promised
//
//   - Only one process writes (promise K4). A process that has lost the lead cannot
//     append, even if it still believes that it leads, because each append is one
//     statement that checks the leader's epoch under the lock of the log's row. The
//     check makes no assumption about time, so it also stops a process that was
//     frozen for an hour in the middle of an append.
//   - An append is written once. If the answer of the database is lost, the process
//     asks again, and sees from the position and the hash of the log whether the
//     first attempt was written.
//   - Append returns nil only if the database has acknowledged the commit. If an
//     operator cancels the wait for the synchronous standby, a commit can become
//     visible before the standby has it, and PostgreSQL gives a warning. Append
//     then waits until a later commit is acknowledged without a warning.
//   - A process leads only when it has read all records.
//   - A record that was damaged, removed or added from outside is noticed: Replay
//     compares a hash over all records with the hash in the log's row, and returns
//     journal.ErrCorrupt. A following process compares the hash with the records
//     that it has read, and returns journal.ErrLost if the database has lost some
//     of them (promise K6).
//
// # The lease
//
// The leader renews its lease in the database. If a following process sees no
// renewal for Config.Lease, by its own clock, it takes the lead, for example
// because the leader's machine is gone. It raises the epoch, which stops all writes
// of the old leader. If the old leader has stopped while it had the row locked, the
// new one first ends the database session of the old one. Clocks only decide how
// fast this is. [Log.Close] gives the lead away at once, and [Log.HandOver] gives
// it to a certain process.
//
// A checkpoint of a builder replaces the records of the log. The replaced records
// stay until all following processes have read them, so that a slow process does
// not have to begin again. If a process is not seen for Config.Keep, its records
// are removed.
//
// # The database
//
// The package needs PostgreSQL 13 or later, with the rights to create tables in the
// search path and to end sessions of the same user. A pooler in transaction mode,
// such as pgbouncer, may be in between. The tests run on the version that the
// machine has.
//
// Run the database with a synchronous standby. Without one, the loss of the
// database's machine can lose the last records, although users got answers for
// them. A process that has read these records notices the loss and does not lead.
// If there is no such process, [Log.Promoted] tells the builder that the timeline
// of the database has changed, and the builder waits: see builder.SharedLog.
//
// All methods of a [Log] are safe for concurrent use.
package pglog
