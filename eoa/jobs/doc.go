// Package jobs runs the executors of package eoa as the jobs of a distributed job engine, for hosts that have one already: package riverjobs does it with
// River on PostgreSQL. A host without one is better served by [eoa.Fleet], which needs nothing but the store.
//
// There is at most one job per account, with a [Step] as its payload. The job calls [Runner.Run], which takes steps until nothing is due for a while, gives
// the account back, and then suspends the job: until the account's next due time, or for good if nothing is left to do, and in both cases until a wake-up.
// Whoever writes requests or orders to the store wakes the account afterwards.
//
// # Why no wake-up is lost
//
// An engine that keeps one job per account refuses a second one while the first one is there. Most do so while it runs, too, and then forget that they
// were asked: a request that comes after the job's last look and before its end is in the store, and nobody looks. So the engine is not what is asked
// whether there is something to do. The store is: its wake version grows with each request and each order, in the same atomic step.
//
//	waker:  1 write to the store; the version grows     job:  1 take away the right to refuse wakers
//	        2 wake, or be refused by the job                  2 look whether the version is still the one of the last step
//	                                                          3 end, or, if it is not, take another step
//
// The job's 1 to 3 are one step to wakers: one that comes meanwhile waits for its end. A waker that was refused by the running job came before the job's 1, so its
// write came before the job's 2, which has seen it. Every other waker finds the job suspended, or gone, and starts it. This is what [Suspend] asks of an
// engine, and what tells the ones that can from those that cannot.
//
// Two jobs of one account may run at once, where an engine takes a slow worker for a dead one. The store's leases see to it that only one has an effect.
//
// What can fall between a waker's 1 and 2 is the waker itself. Its caller has no answer then, and submits again, which wakes. So that nothing depends on that, an
// adapter also asks [eoa.Store.Due] from time to time and wakes what it names: one call, for all accounts.
package jobs
