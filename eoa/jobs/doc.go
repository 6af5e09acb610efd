// Package jobs runs the executors of package eoa as jobs of a distributed job
// engine, for hosts that already use one. Package riverjobs does so with River on
// PostgreSQL. A host without a job engine should use [eoa.Fleet], which needs only
// the store.
//
// There is at most one job per account, with a [Step] as its payload. The job calls
// [Runner.Run], which takes steps until nothing is due for a while, releases the
// account, and suspends the job. The engine resumes the job at the account's next
// due time, if there is one, or earlier when the job is woken. A process that
// writes requests or orders to the store must wake the account afterwards.
//
// # Why no wake-up is lost
//
// An engine that keeps one job per account refuses a second job, usually even while
// the first is running, and does not remember the refusal. A request that arrives
// between the job's last read and its end would then stay in the store unnoticed.
// Therefore the job asks the store and not the engine: the store's wake version
// grows with each request and each order, in the same atomic write.
//
//	waker                              job
//	1 write; the wake version grows    1 from here on, wakers must wait
//	2 wake, or be refused              2 compare the wake version with that of the last step
//	                                   3 end; if the version differs, take another step
//
// For wakers, the job's steps 1 to 3 are atomic: a waker that comes in between
// waits for the end of step 3. If the running job caused a wake-up to be refused,
// the waker came before the job's step 1. Its write was even earlier, so the job
// sees it in step 2. Every other waker finds the job suspended or gone, and starts
// it. [Suspend] states the requirements for the engine.
//
// If an engine assumes that a slow worker is dead, two jobs of one account run at
// the same time. The store's leases make sure that only one of them has an effect.
//
// A waker may die between its steps 1 and 2. Its caller got no answer, so it
// submits again, which wakes the account. In addition, an adapter should call
// [eoa.Store.Due] periodically and wake the accounts that it returns. This is one
// call for all accounts.
package jobs
