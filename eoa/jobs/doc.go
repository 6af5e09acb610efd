// Package jobs runs the executors of package eoa as jobs of a distributed job
// engine, for hosts that already have one. Package riverjobs does it with River
// on PostgreSQL. A host without a job engine should use [eoa.Fleet], which
// needs only the store.
//
// There is at most one job per account, with a [Step] as its payload. The job
// calls [Runner.Run], which takes steps until nothing is due for a while,
// releases the account, and suspends the job. The engine resumes the job at the
// account's next due time, if there is one, or when it is woken. A process that
// writes requests or orders to the store must wake the account afterwards.
//
// # Why no wake-up is lost
//
// An engine that keeps one job per account refuses a second one, usually also
// while the first one is running, and does not remember the refusal. A request
// that arrives after the job's last read and before its end would then stay in
// the store unnoticed. Therefore the job asks the store, not the engine: the
// store's wake version grows with each request and each order, in the same
// atomic step.
//
//	waker                              job
//	1 write; the wake version grows    1 from here on, wakers must wait
//	2 wake, or be refused              2 compare the wake version with that of the last step
//	                                   3 end; if the version differs, take another step
//
// For wakers, the job's 1 to 3 are one atomic step: a waker that comes in
// between waits for its end. A waker that the running job refused came before
// the job's 1. Its write was earlier still, so the job's 2 sees it. Every other
// waker finds the job suspended or gone, and starts it. [Suspend] states what
// this requires of an engine.
//
// If an engine takes a slow worker for dead, two jobs of one account run at the
// same time. The store's leases make sure that only one of them has an effect.
//
// A waker may die between its 1 and 2. Its caller got no answer, and wakes the
// account when it submits again. In addition, an adapter should call
// [eoa.Store.Due] periodically and wake the accounts that it returns. This is
// one call for all accounts.
package jobs
