// Package riverjobs sends transactions from many accounts as jobs of River, on
// PostgreSQL. There is one job per account, which is suspended while nothing is
// due. Every request wakes the job of its account.
//
//	pool, err := pgxpool.New(ctx, "postgres://localhost/jamq")
//	err = riverjobs.Migrate(ctx, pool, "jamq") // once per release, may create tables
//	engine, err := riverjobs.New(riverjobs.DefaultConfig(), pool, store, open)
//	go engine.Run(ctx)                                   // in each worker process
//	records, err := engine.Submit(ctx, account, request) // in any process
//
// The accounts are in a store of package eoa that all processes share, for example
// package redisstore. PostgreSQL contains only the jobs. If all its tables were
// lost, the sweep would create the jobs again. This package is a separate module
// because River needs Go 1.26.
//
// # Why River
//
// A request may arrive while its account's job is ending. Package jobs explains why
// the job must then not end unnoticed. River suits this because it keeps jobs in a
// database that a worker can use in its own transaction, and each run ends in such
// a transaction. The transaction completes the job's row, which locks the row. It
// then reads the account's wake version, inserts the next job if one is needed, and
// commits. A waker's insert meets the same row in the unique index, so PostgreSQL
// makes it wait for the transaction. There are two cases:
//
//   - The insert was refused before the row was locked. The transaction then sees
//     the request.
//   - The insert finds the state that the transaction left. If there is no job, the
//     waker inserts one. If there is a suspended job, the waker makes it due.
//
// River's own ways to end a job are to return nil or [river.JobSnooze]. Both are
// written later, in batches, and a wake-up that is refused in between is lost. With
// River 0.51.1, 280 of 300 rounds of two requests a few milliseconds apart lost a
// wake-up in this way; with the transaction, none did. This package therefore
// returns nil only after its own commit.
//
// asynq 0.26.0, on Redis, cannot do this. A task id is unique while the task runs,
// a refused task leaves no trace, and a running task cannot be made to run again.
// The task ends in asynq's own script after the handler has returned. Even with a
// last check less than a millisecond before the return, 76 of 1000 rounds lost a
// wake-up. asynq's other kind of uniqueness is a lock that expires, after which
// there are two tasks.
//
// # Cost
//
// A suspended account has one row, and an idle account has none. Neither costs a
// goroutine, a lease or a query. Each process asks PostgreSQL for due jobs every
// Config.Poll, and the store for due accounts every Config.Sweep, regardless of the
// number of accounts. One of the processes runs River's maintenance, a few
// statements every five seconds. A single process with a hundred idle accounts
// makes about six transactions per second, and ten while it starts.
//
// The end of a run is one transaction of three or four statements; its row is
// kept for a minute. A wake-up is one transaction of one to three statements,
// for any number of requests submitted at once.
//
// # Latency
//
// A woken account starts within Config.Poll, usually at once. A suspended account
// resumes at most Config.Sweep plus Config.Poll after its due time. If a process is
// killed, its accounts resume after Config.Timeout, plus five seconds until River
// may consider the job dead, plus up to thirty until River checks, plus up to six
// until the job runs. With the default settings, that is at most 71 seconds. A
// process that is stopped releases its accounts, and others resume them at once.
package riverjobs
