// Package bundlequeue follows the bundles of a JAM rollup from the moment they are executed until they are final,
// and sees to it that none is executed twice and none is lost.
//
// A [Queue] is a state machine as a value, like etcd/raft's RawNode: it holds no clock, no lock and no goroutine and
// never calls the host. The host feeds it events, with the time, by [Queue.Step], and carries out the effects that
// come back, in order. Outcomes return as further events. Package submit has a ready driver.
//
//	q, err := bundlequeue.New[MyBundle](cfg, genesis)
//	effects, err := q.Step(now, bundlequeue.Enqueue[MyBundle]{Number: 1, Bundle: b})
//	for _, e := range effects {
//		switch e := e.(type) {
//		case bundlequeue.Build[MyBundle]:  // build a package at e.Anchor, then Step(now, Built{…})
//		case bundlequeue.Send[MyBundle]:   // give it to a guarantor of e.Core, then Step(now, Sent{…})
//		case bundlequeue.Changed:          // a bundle moved from one state to another
//		case bundlequeue.Died:             // a package can never be accumulated, and why
//		case bundlequeue.Failed[MyBundle]: // take the transactions back, then Step(now, TakenBack{…})
//		}
//	}
//	// for each imported JAM block, in order:
//	effects, err = q.Step(now, bundlequeue.Imported{Block: block, Best: best})
//
// [Simple] puts the calls on top that builders know: Enqueue, Dequeue, MarkSubmitted, OnGuaranteed and so on.
//
// # The life of a bundle
//
//	Reserved → Queued → Building → Sending → Submitted → Guaranteed → Accumulated → Finalized
//
// A bundle is one rollup block. Each time a package is built for it, that is a new version with its own package hash;
// the same bytes may be sent any number of times, to another guarantor each time. From Submitted a package that can no longer be
// reported goes back to Queued, for a new version. A reorg takes Guaranteed and Accumulated back; Finalized is for ever.
// After Config.MaxVersionRetries dead versions the bundle and all after it end as Failed, with their contents handed back.
//
// # Why nothing is executed twice
//
// A new version is built only if every earlier version that left is dead on the
// best chain, by the rules D1 to D6 of package anchor. Its anchor is the block by
// which the last of them died, or a later one. A chain that reports the new
// version contains that anchor, and there the old versions can never accumulate.
// The proof needs no clock, no finality and no assumption about guarantors or
// forks. A version counts as having left from the moment its Send effect is
// returned, whatever the host does with it.
//
// safety.go holds the rule. internal/mutation breaks this rule and the others one
// by one and requires that a test notices.
//
// # Why nothing is lost
//
// The queue keeps the original bundle until the block is final or failed. It fails only when all its versions are
// dead on the finalized chain, so on every chain to come; and even then the queue keeps it until the host has taken it back.
// This rests on what the host feeds: see [Imported] for the one thing that blocks alone do not show.
//
// # Crashes
//
// A driver that must survive a crash appends each step to its journal before it carries out the effects ([AppendRecord]), and now and then
// a snapshot ([AppendSnapshot]). After a restart it restores, replays ([Restore], [Replay]) and carries out what was not answered
// ([Queue.Open]). The queue is then the same byte for byte.
//
// # Time
//
// Time serves to pace repeated sends, to back off after errors and to end reservations. It never decides that a package is dead, unless
// the host feeds no blocks and chose [ToldEvidence]: that is a guess, and its doc says what it risks.
//
// # Cost
//
// A step costs what its event touches, not what is in the queue; a block full of other rollups' reports costs a look-up for each.
package bundlequeue
