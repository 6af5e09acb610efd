// Package bundlequeue manages the bundles of a JAM rollup, from their execution
// until they are final. No bundle is accumulated twice, and none is lost.
//
// A bundle is one rollup block, as bytes that only the host reads. A [Queue] is a
// state machine without clock, lock or goroutine, like RawNode of etcd/raft. The
// host passes events to [Queue.Step], carries out the returned effects in order, and
// reports their outcomes as further events. Package submit is a ready driver.
//
//	q, err := bundlequeue.New(cfg, genesis)
//	effects, err := q.Step(now, bundlequeue.Enqueue{Number: 1, Bundle: block})
//	for _, e := range effects {
//		switch e := e.(type) {
//		case bundlequeue.Build:   // build a package; answer with Built
//		case bundlequeue.Send:    // send it to a guarantor; answer with Sent
//		case bundlequeue.Changed: // the bundle is in another state
//		case bundlequeue.Died:    // a package can never be accumulated
//		case bundlequeue.Failed:  // take the transactions back
//		}
//	}
//	// For each imported JAM block, in order:
//	effects, err = q.Step(now, bundlequeue.Imported{Block: block, Best: best})
//
// # States
//
//	Reserved → Queued → Building → Sending → Submitted → Guaranteed → Accumulated → Finalized
//
// Each package that is built for a bundle is a new version with a different
// hash. The same bytes may be sent any number of times, to a different
// guarantor each time. If a submitted package can no longer be reported, the
// bundle goes back to Queued for a new version. A reorg can undo Guaranteed and
// Accumulated. Finalized never changes.
//
// # Why no bundle is accumulated twice
//
// A new version is built only if every earlier version that was sent is dead on
// the best chain (rules D1 to D6 of package anchor). Its anchor is the block at
// which the last of them died, or a later one. A chain that reports the new
// version contains that anchor, and there the earlier versions can never be
// accumulated. The argument needs no clock, no finality, and no assumption
// about guarantors or forks. A version counts as sent when its Send effect is
// returned. The rule is in safety.go.
//
// # Why no bundle is lost
//
// The queue keeps the bundle until it is final or failed. A bundle fails only if
// more than Config.MaxVersionRetries of its packages were lost, or if the host
// ordered it with [GiveUp] or [Release]. Everything else delays it; see
// [Queue.Delayed]. The queue hands a bundle back when all its versions are dead
// on the finalized chain. The record of the step that does so keeps the bundle: a
// host that crashes before it has the transactions derives the step again.
// Imported blocks do not show one case of a dropped package; see [Imported].
//
// # Crashes
//
// A driver that must survive a crash writes each step to a journal before it
// carries out the effects ([AppendRecord]), and from time to time a snapshot
// ([Queue.AppendSnapshot]). After a restart it restores and replays ([Restore],
// [Replay]), takes back the failed bundles of the last record, and carries out the
// unanswered requests ([Queue.Open]). The restored
// queue is equal to the old one, byte for byte. Limits, times and cores may be
// configured differently.
//
// # Time
//
// Time controls repeated sends, back-offs and reservations. It never decides
// that a package is dead. A host that sees no blocks needs such a guess; package
// told describes the risk.
package bundlequeue
