// Package submit drives a bundlequeue against a JAM network. It owns the clock, the submission
// window and the retries, and calls the host to build and to send packages.
//
// [Runner] has one goroutine that feeds a bundlequeue.Queue, and one for each build or send under
// way, never more than the queue has cores. The host implements two small interfaces:
//
//	[Builder]    makes a package of a bundle, anchored where the queue says
//	[Submitter]  gives a package to a guarantor
//
// and tells the runner what it imports:
//
//	r, err := submit.NewRunner(cfg, genesis, builder, submitter)
//	err = r.Start(ctx)
//	number, err := r.EnqueueNext(ctx, commitment, bundle)
//	err = r.Import(ctx, block, best)    // each JAM block, in order
//	err = r.Finalize(ctx, hash)         // or both by a [ChainFeed]: err = feed.Follow(ctx, r)
//	err = r.Step(ctx, bundlequeue.GiveUp{Number: number, Reason: "…"}) // any other event
//	err = r.Drain(ctx)                  // wait until every bundle is final
//	r.Stop()
//
// The runner reports effects to Config.Observe after the queue has taken the event, numbered, from
// its own goroutine and under no lock. A host that wants another driver uses bundlequeue directly.
//
// # What an operator sees
//
// [Runner.Health] says whether the runner runs, what keeps it from sending, and which bundle has
// waited for long and why. Config.Metrics counts. An error of class [Fatal] pauses the runner until
// [Runner.Resume], a bundlequeue.Cores event or a restart: retries cannot help, and nothing is
// given up meanwhile. With Config.CheckInvariants and Config.Invariants the runner checks its state
// after each step, and stops before it acts on one that cannot be.
//
// # Crashes
//
// A runner that [OpenRunner] returns writes every step to a journal before it acts on it, and now
// and then a snapshot that replaces the steps. Killed at any instruction it goes on where it was:
// it replays the journal, waits for newer blocks, and then does what was not answered. The host
// gives each bundle a commitment by which it recognizes, after a restart, what the queue has
// ([Runner.Recovered]).
//
// # Classes of failure
//
// A [Submitter] says by [WithClass] what a failed submission calls for. Packages submit/jip2 and
// submit/jamnps are ready-made ways to a real network: submitters and feeds by a node's RPC and by
// the network protocol.
//
// [Window] is the pure rule for when within a slot a package is sent.
package submit
