// Package jamtest simulates a JAM chain, for tests of code that depends on the
// outcome of work packages.
//
// A [Chain] obeys the rules of the Gray Paper for reports, availability and
// accumulation. A seed decides everything else, such as losses, latencies and
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
//   - Submission (package.go): a package reaches a guarantor and may be reported
//     some slots later, or it is lost. Sending it to the same guarantor again has
//     no effect, but each other guarantor is a new chance.
//   - Report (report.go): a block reports a package only if the core is free and
//     the package obeys the rules (GP 11.16 to 11.39). Its anchor must be among the
//     last H blocks of the block's own chain and have the right roots, and its
//     lookup anchor must be a recent ancestor. Its hash must be new, and its
//     prerequisites must be reported in the last H blocks or in the same block.
//   - Availability (availability.go): a report leaves its core when it becomes
//     available, when the time-out U has passed, or by a verdict. A report that
//     becomes available in the block of its time-out counts as available.
//   - Accumulation (accumulate.go): a package without prerequisites is accumulated
//     as soon as it is available. Other packages wait in the ready queue, for about
//     E slots at most (GP 12.4 to 12.41).
//   - Forks and finality (fork.go): a second branch may begin below the best block,
//     and the longer branch wins. Finality follows the best chain and never decides
//     an open fork.
//
// Every block has its own state, so a package can be accumulated on one branch and
// timed out on the other. Signatures of guarantees and the rotation of guarantors
// are not simulated, because no queue can rely on them. The only simulated
// authorizer is that of package service; see [Work].
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
// [Chain.Anchors] returns the recent history of the best chain. Its last entry is
// the best block, whose posterior roots are in no header until the block has a
// child. Use an earlier entry as anchor, as [Chain.Context] does.
//
// # Proofs
//
// With [Config.Genesis] the chain has services that follow the rules of package
// service: they store and yield commitments of package canonical/proof. The state
// roots are real and the validators sign, so tests can make and verify proofs:
//
//   - [Chain.Value] reads a service's storage.
//   - [Chain.Prove] makes the JAM part of a proof that a transaction is final.
//   - [Chain.Trust] returns the keys with which a verifier checks such a proof.
//   - [Chain.Handoff] proves the validators of the next epoch to a verifier.
//
// # Real time
//
// A [Driver] runs a chain on the wall clock and is safe for concurrent use.
package jamtest
