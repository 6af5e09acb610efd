// Package submit runs a bundlequeue.Queue against a JAM network. It owns the
// clock, the submission window and the retries. It calls the host to build and
// to send packages.
//
// The host implements two interfaces, [Builder] and [Submitter], and feeds the
// JAM blocks that it imports:
//
//	r, err := submit.NewRunner(cfg, genesis, builder, submitter)
//	err = r.Start(ctx)
//	number, err := r.EnqueueNext(ctx, parent, commitment, bundle)
//	err = r.Import(ctx, block, best)  // each JAM block, in order
//	err = r.Finalize(ctx, hash)       // each finalized JAM block
//	err = r.Drain(ctx)                // wait until every bundle is final
//	r.Stop()
//
// A [ChainFeed] calls Import and Finalize for the host. Packages submit/jip2
// and submit/jamnps have feeds and submitters for real networks: for a node's
// RPC and for the network protocol of JAM. [Runner.Step] feeds all other
// events, such as bundlequeue.GiveUp. A host that wants another driver uses
// package bundlequeue directly.
//
// # Concurrency
//
// All methods of a [Runner] except Recovered are safe for concurrent use. The
// runner has one goroutine that feeds the queue, and one goroutine for each
// running build or send, at most one per core of the queue. It reports effects
// to Config.Observe in order, from its own goroutine, without holding a lock.
//
// # Failures
//
// A [Submitter] classifies its errors with [WithClass]. An error of class
// [Fatal] pauses the runner until [Runner.Resume], a bundlequeue.Cores event or
// a restart, because retries cannot help. A pause gives up no bundle.
//
// If Config.CheckInvariants or Config.Invariants is set, the runner checks its
// state after each step. If a check fails, the runner stops before it acts on
// the step.
//
// # Monitoring
//
// [Runner.Health] returns whether the runner runs, the reason why it does not
// send, and the first bundle without a submitted package. Config.Metrics
// receives counts and durations.
//
// # Crashes
//
// A runner from [OpenRunner] writes every step to a journal before it acts on
// it. From time to time it replaces the steps with a snapshot. It can be killed
// at any instruction: the next runner replays the journal, waits for newer
// blocks, and carries out the open requests.
//
// The host needs four rules to execute nothing twice. The example "Host" follows
// them, and a test kills it at hundreds of moments:
//   - Each execution of a block has another commitment, with a serial number in
//     it, and EnqueueNext names the commitment of the block that it
//     was executed on.
//   - A block is stored before it is enqueued. The transactions of a failed
//     bundle are stored before Config.Observe returns.
//   - A failed bundle whose commitment is not among the host's blocks was taken
//     back before.
//   - After a restart, the bundles of [Runner.Recovered] decide which stored
//     blocks are in the queue. Older ones are final, and the transactions of
//     newer ones go back into the pool.
package submit
