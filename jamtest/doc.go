// Package jamtest simulates a JAM chain, for tests of code that depends on the
// outcome of work packages.
//
// A [Chain] obeys the rules of the Gray Paper for reports, availability and
// accumulation. A seed decides everything else: authors, losses, latencies,
// forks. Time is virtual: each call of [Chain.Advance] is one slot. The same
// configuration and calls give the same chain, byte for byte.
//
//	chain, err := jamtest.New(jamtest.DefaultConfig(jamq.Tiny(), 7))
//	ctx, err := chain.Context(1)                       // anchor: one block behind the best
//	p := jamtest.NewPackage(service, ctx, payload)
//	err = chain.Submit(p, core, guarantor)             // nil even if the package is lost
//	update := chain.Advance()                          // blocks, best and finalized head
//	status, err := chain.Status(p.Hash, update.Best)   // reported? available? accumulated?
//	got, err := chain.Inbox(service, update.Finalized) // packages that the service received
//
// The package shares no code with package anchor, so that each can check the
// other.
//
// # What is simulated
//
// There is one file per stage of a package's life:
//
//   - Submission (package.go): a package reaches a guarantor or is lost, and
//     may be reported some slots later. Sending it to the same guarantor again
//     has no effect; another guarantor is a new chance.
//   - Report (report.go): a block reports a package only if its anchor is among
//     the last H blocks of the block's own chain and has the right roots, its
//     lookup anchor is an ancestor and recent enough, its hash is new, its
//     prerequisites are reported in the last H blocks or in the same block, and
//     the core is free (GP 11.16 to 11.39).
//   - Availability (availability.go): the report leaves its core when it
//     becomes available, at the time-out U, or by a verdict. Availability in
//     the block of the time-out wins.
//   - Accumulation (accumulate.go): at once without prerequisites, otherwise
//     from the ready queue, which an entry leaves after E slots at the latest
//     (GP 12.4 to 12.41).
//   - Forks and finality (fork.go): a second branch may begin below the best
//     block, and the longer branch wins. Finality follows the best chain and
//     never decides an open fork.
//
// Every block has its own state, so a package can be accumulated on one branch
// and timed out on the other. Signatures of guarantees and the rotation of
// guarantors are not simulated; no queue can rely on them. Of the authorizers, that
// of package service is: see [Work].
//
// # Faults
//
// Faults come by chance ([Config]), at given slots ([ParseScript]), or on
// demand ([Chain.SetFaults], [Chain.Inject], [Chain.Kill]). A [Feed] delivers
// updates twice, late, in batches or with missing blocks. An [Oracle] reads
// only the chain and counts the executions of each transaction.
//
// # Anchors
//
// [Chain.Anchors] returns the recent history of the best chain. Its last entry
// is the best block, whose posterior roots are in no header until it has a
// child. Use an earlier entry as anchor, as [Chain.Context] does.
//
// # Proofs
//
// With [Config.Genesis] the chain has services, which follow the rules of package
// service: they store and yield commitments of package canonical/proof. The state
// roots are real, and the validators sign. [Chain.Value] reads a service's storage.
// [Chain.Prove] makes the JAM part of a proof that a transaction is final,
// [Chain.Trust] the trust to verify it, and [Chain.Handoff] leads that trust to the
// validators of the next epoch.
//
// # Real time
//
// A [Driver] runs a chain on the wall clock and is safe for concurrent use.
package jamtest
