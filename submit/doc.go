// Package submit drives a bundlequeue against a JAM network: it owns the clock, the submission window and the
// retries, and calls the host to build and to send packages.
//
// [Runner] is the driver that most hosts want. It owns one goroutine that feeds a bundlequeue.Queue, and one for each
// build or send under way, never more than the queue has cores. The host implements two small interfaces:
//
//	[Builder]    makes a package of a bundle, anchored where the queue says
//	[Submitter]  gives a package to a guarantor
//
// and tells the runner what it imports:
//
//	r, err := submit.NewRunner(cfg, genesis, builder, submitter)
//	err = r.Start(ctx)
//	err = r.Enqueue(ctx, bundlequeue.Enqueue[Bundle]{Number: n, Bundle: b})
//	err = r.Import(ctx, block, best)    // each JAM block, in order
//	err = r.Finalize(ctx, hash)         // or both by a [ChainFeed]: err = feed.Follow(ctx, r)
//	err = r.Drain(ctx)                  // wait until every bundle is final
//	r.Stop()
//
// Effects are reported to Config.Observe after the queue has taken the event, numbered, from the runner's goroutine and under no
// lock. [Runner.Health] says how the runner does, Config.Metrics counts. A host that wants another driver uses bundlequeue directly.
//
// # Crashes
//
// A runner that [OpenRunner] returns writes every step to a journal before it acts on it, and now and then a snapshot in the place of all steps.
// Killed at any instruction it goes on where it was: it replays the journal, waits for newer blocks, and then does what was not answered.
// The host gives each bundle a commitment by which it finds out, after a restart, what the queue has ([Runner.Infos]).
//
// A [Submitter] says by [WithClass] what a failed submission calls for. Packages submit/jip2 and submit/jamnps are ready-made ways to a real
// network: submitters and feeds by a node's RPC and by the network protocol.
//
// [Window] is the pure rule for when within a slot a package is sent.
package submit
