// Package told runs a bundlequeue.Queue for a host that sees no JAM blocks. The
// host reports single events by package hash, for example that a package was
// guaranteed. A clock turns these events into artificial blocks, from which the
// queue derives what has happened to its packages.
//
// # The risk
//
// A clock cannot tell whether a package is dead, because the chain may skip
// slots and guarantors may wait. A new package may therefore duplicate an old
// package that is still alive, so promise B1 (no block is accumulated twice)
// does not hold. Use this package only if the host cannot see blocks, and if
// the rollup's service ignores transactions that it has seen before. With
// imported blocks, the queue does not have to guess: see bundlequeue.New.
//
// # Use
//
// [Simple] is a queue with methods in place of events:
//
//	s, err := told.New(bundlequeue.DefaultConfig(spec), told.DefaultConfig(spec))
//	news, err := s.Enqueue(now, number, commitment, bundle)
//	job, ok := s.Dequeue()                                  // build a package of job.Bundle
//	news, err = s.MarkSubmitted(now, job, hash, context, b) // then send it
//	news, err = s.OnGuaranteed(now, hash)                   // the host saw a guarantee
//	news, err = s.OnAccumulated(now, hash)
//	news, err = s.OnFinalized(now, hash)
//	news, err = s.CheckTimeouts(now)                        // once per slot, for example
//
// [Feed] is the part that makes the blocks, for hosts that use the queue's
// events directly.
//
// # Rules
//
// The feed makes one block in each Config.BlockTime. The block contains all
// events that the host has reported since the block before. The queue applies
// the rules of JAM to these blocks:
//
//   - A package that is not guaranteed dies when its anchor is H blocks old.
//   - A guaranteed package counts as available in the block after its report.
//     If it is not accumulated, it dies after an epoch.
//   - If a package dies, all packages that name it as a prerequisite die too.
//   - If the host reports a guarantee of a package that was considered dead,
//     the package is alive again, because the chain is right and the clock was
//     wrong. A version that was sent in the meantime may be accumulated as
//     well. If the bundle has already failed, the accumulation results in
//     bundlequeue.Resurrected.
//   - A bundle that has failed is handed back only after Config.Finality
//     blocks.
package told
