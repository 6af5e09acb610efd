// Package riverjobs sends transactions from many accounts as jobs of River, on PostgreSQL: one job per account, which suspends itself while nothing is
// due, and which every request wakes.
//
//	pool, err := pgxpool.New(ctx, "postgres://localhost/jamq")
//	err = riverjobs.Migrate(ctx, pool, "jamq")            // once per release, by whoever may create tables
//	engine, err := riverjobs.New(riverjobs.DefaultConfig(), pool, store, open)
//	go engine.Run(ctx)                                    // in each process that works
//	records, err := engine.Submit(ctx, account, request)  // in any process
//
// The accounts themselves are in a store of package eoa that all processes share, package redisstore for example. PostgreSQL holds only the jobs. If it were
// lost with all its tables, nothing else would be: the jobs come back by themselves. River needs Go 1.26, so this is a module of its own.
//
// # Why River
//
// A job must not end, or be suspended, between a request's arrival in the store and the refusal of its wake-up; package jobs says why. River keeps jobs in a
// database that a worker can use in its own transaction. So a run ends in one: it completes the job's row, which locks it; then it reads the account's wake
// version; then it inserts the next job, if there is to be one, and commits. A waker's insertion meets the same row in the unique index, and PostgreSQL makes
// it wait for that transaction. It is refused before the lock was taken, and then its request is seen; or it finds what the transaction left: no job, and
// inserts one, or a suspended one, and makes it due.
//
// River's own ways to end a job, returning nil or [river.JobSnooze], do not have that: they are written later, in batches, and a wake-up that was refused in
// between is lost. With River 0.51.1, 280 of 300 rounds of two requests a few milliseconds apart ended with one that nobody looked at; ending in a
// transaction, none. This package returns nil only after its own commit.
//
// asynq 0.26.0, on Redis, cannot do it: its task ids are unique while a task runs, a refused one leaves no trace, a running one cannot be made to run again,
// and a task ends in a script of asynq's own after the handler has returned, where nothing more can be looked at. With a last look up to a millisecond before the
// handler's return, 76 of 1000 rounds lost a wake-up. Its other kind of uniqueness, a lock, also ends with time, when there are two tasks.
//
// # What it costs
//
// A suspended account has one row, an idle one none; neither has a goroutine, a lease or a query of its own. A process asks PostgreSQL for due jobs once in
// each Config.Poll and the store for due accounts once in each Config.Sweep, whatever the number of accounts, and one process of all runs River's upkeep, a few
// statements each five seconds: a single process with a hundred idle accounts was seen to make six transactions a second, and ten while it starts. A run that ends is one transaction of three or four statements, whose row stays for a minute. A wake-up is one transaction of one
// to three statements, for any number of requests submitted at once.
//
// # Time
//
// A woken account begins within Config.Poll, mostly at once. A suspended one is resumed within Config.Sweep and Config.Poll of its time. The account of a process
// that was killed is taken over after Config.Timeout, five seconds until River may take the job for dead, up to thirty until it looks, and up to six until it runs
// again: at most 71 s by default. A process that is stopped gives its accounts back, and others go on at once.
package riverjobs
