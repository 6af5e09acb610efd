// Package bundlequeue follows the bundles of a JAM rollup from the moment they are executed until
// they are final. It makes sure that none is executed twice and none is lost.
//
// A [Queue] is a state machine as a value, like etcd/raft's RawNode: it has no clock, lock or
// goroutine, and never calls the host. The host feeds it events, with the time, by [Queue.Step],
// and carries out the effects that Step returns, in order. Outcomes return as further events.
// Package submit has a ready driver.
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
// # The life of a bundle
//
//	Reserved → Queued → Building → Sending → Submitted → Guaranteed → Accumulated → Finalized
//
// A bundle is one rollup block. Each package that is built for it is a new version with its own
// package hash. The same bytes may be sent any number of times, to another guarantor each time. If
// a package in Submitted can no longer be reported, the bundle goes back to Queued, for a new
// version. A reorg takes Guaranteed and Accumulated back; Finalized never changes.
//
// # Why nothing is executed twice
//
// A new version is built only if every earlier version that ever left is dead on the best chain
// (rules D1 to D6 of package anchor), and its anchor is the block by which the last of them died,
// or a later one. A chain that reports the new version contains that anchor, and there the earlier
// versions can never be accumulated. The argument needs no clock, no finality and no assumption
// about guarantors or forks. A version counts as having left from the moment that its Send effect
// is returned, whatever the host does with it. The rule stands in safety.go.
//
// # Why nothing is lost
//
// The queue keeps the original bundle until its block is final or failed. Only two things fail a
// bundle:
//
//   - more than Config.MaxVersionRetries of its packages were lost: a guarantor took or refused
//     each, and then the chain did not report it, did not make it available, or let it expire in
//     the ready queue;
//   - the host ordered it, by [GiveUp] or [Release].
//
// Everything else delays it: builds that fail, packages that are dead when they are ready,
// guarantors that cannot be reached, a chain without blocks, finality that stands still.
// [Queue.Delayed] names the bundle that waits, since when and why, for an alarm. A bundle is handed
// back only once all its versions are dead on the finalized chain, and so on every chain to come;
// and the queue keeps it until the host has answered by [TakenBack]. See [Imported] for the one
// thing that blocks alone do not show.
//
// # Anchors and slow builders
//
// An old anchor makes a lost package replaceable soon, and gives it few chances. The queue takes
// the offset from the anchor policy, less the blocks that the last builds took
// ([Queue.BuildBlocks]): a package whose anchor expired while it was built makes the next anchor
// fresher. That is always safe, because nothing was sent.
//
// # Crashes
//
// A driver that must survive a crash appends each step to its journal before it carries out the
// effects ([AppendRecord]), and now and then a snapshot ([AppendSnapshot]). After a restart it
// restores and replays ([Restore], [Replay]), and carries out what was not answered ([Queue.Open]).
// The queue is then the same byte for byte. Limits, times and cores may be configured anew.
//
// # Time
//
// Time paces repeated sends, back-offs and reservations. It never decides that a package is dead. A
// host that sees no blocks needs such a guess: see package told for what it risks.
//
// # Cost
//
// A step costs what its event touches, whatever the number of bundles. A block full of other
// rollups' reports costs a look-up for each.
package bundlequeue
