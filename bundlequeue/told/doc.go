// Package told runs a bundlequeue.Queue for a host that sees no JAM blocks. The
// host reports single events by package hash. If it reports none within a
// time-out, the queue gives the package up.
//
// # The risk
//
// A clock cannot tell whether a package is dead: slots may be skipped, and
// guarantors may wait. A new package may therefore duplicate an old one, and
// promise B1 (no block is accumulated twice) does not hold. Use this package
// only if the host cannot see blocks, and if the rollup's service ignores
// transactions that it has seen before. anchor.ReportableChance returns how
// often the default time-out is wrong. With imported blocks the queue needs no
// guess: see bundlequeue.New.
//
// # Use
//
// [Simple] is a queue with methods in place of events:
//
//	s, err := told.New[MyBundle](bundlequeue.DefaultConfig(spec), told.DefaultConfig(spec))
//	news, err := s.Enqueue(now, number, commitment, bundle)
//	job, ok := s.Dequeue()                                  // build a package of job.Bundle
//	news, err = s.MarkSubmitted(now, job, hash, context, b) // then send it
//	news, err = s.OnGuaranteed(now, hash)                   // the host saw a guarantee
//	news, err = s.OnAccumulated(now, hash)
//	news, err = s.OnFinalized(now, hash)
//	news, err = s.CheckTimeouts(now)                        // once per slot, for example
//
// [Evidence] implements bundlequeue.Evidence, for hosts that use the queue's
// events. Neither type is safe for concurrent use.
//
// # Rules
//
//   - A package that is not guaranteed within Config.GuaranteeTimeout of its
//     last send is given up.
//   - A guaranteed package that is not accumulated is given up after
//     Config.AccumulateTries times Config.AccumulateTimeout.
//   - If a package is given up, all packages that name it are given up too.
//   - A late guarantee wins, because the chain is right and the clock was wrong.
//   - A bundle that has failed is held for Config.FailureHold after the last
//     send of its packages before it is handed back. If one of them is
//     accumulated even later, the queue returns bundlequeue.Resurrected.
package told
