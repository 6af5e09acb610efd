// Package told runs a bundlequeue for a host that sees no JAM blocks. The host reports single
// events by package hash. If it reports none for too long, the clock decides.
//
// # What it risks
//
// No clock can tell whether a package is dead: slots may be skipped, and guarantors may wait. A
// rebuilt package may therefore duplicate the one before it, and promise B1 does not hold. Use this
// package only if the host cannot see blocks, and if the rollup's service ignores what it has seen
// before. anchor.ReportableChance says how often the default time-out is wrong. With imported
// blocks the queue needs no guess: see bundlequeue.New.
//
// # Use
//
// [Evidence] implements bundlequeue.Evidence. [Simple] is a queue behind the calls that builders
// know:
//
//	s, err := told.New[MyBundle](bundlequeue.DefaultConfig(spec), told.DefaultConfig(spec))
//	news, err := s.Enqueue(now, number, commitment, bundle)
//	job, ok := s.Dequeue()                                  // build a package of job.Bundle
//	news, err = s.MarkSubmitted(now, job, hash, context, b) // then send it
//	news, err = s.OnGuaranteed(now, hash)                   // once the host sees it guaranteed
//	news, err = s.OnAccumulated(now, hash)
//	news, err = s.OnFinalized(now, hash)
//	news, err = s.CheckTimeouts(now)                        // now and then
//
// # The rules
//
//   - A package that is not guaranteed within Config.GuaranteeTimeout of its last send is given up.
//   - A guaranteed package that is not accumulated is given up after Config.AccumulateTries times
//     Config.AccumulateTimeout.
//   - The packages that name a package that is given up are given up with it.
//   - A late guarantee wins: the chain is right and the clock was wrong.
//   - A bundle that has lost its packages is held for Config.FailureHold after its last send before
//     it is handed back. If a package of it is accumulated even later, the queue returns
//     bundlequeue.Resurrected.
package told
