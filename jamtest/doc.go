// Package jamtest simulates a JAM chain, for tests of everything that depends on what becomes of work packages.
//
// A [Chain] obeys the Gray Paper's rules of reporting, availability and accumulation, and decides what they leave open
// (who authors, what is lost, how long things take, which fork wins) from one seed. Time is virtual: each call of
// [Chain.Advance] is a slot. The same configuration and calls give the same chain, byte for byte.
//
//	chain, err := jamtest.New(jamtest.DefaultConfig(jamq.Tiny(), 7))
//	ctx, err := chain.Context(1)                          // anchored one block behind the best
//	p := jamtest.NewPackage(service, ctx, payload)
//	err = chain.Submit(p, core, guarantor)                // may be lost without a word, as on a real network
//	update := chain.Advance()                             // the next slot: blocks, best head, finalized head
//	status, err := chain.Status(p.Hash, update.Best)      // reported? available? accumulated? since when?
//	got, err := chain.Inbox(service, update.Finalized)    // what the service has received, in order
//
// It is written from the rules and shares no code with package anchor, so that the two check each other.
//
// # What is simulated
//
// One file per stage of a package's life:
//
//   - Submission (package.go): a package reaches a guarantor or is lost, and may be reported some slots later. The same
//     package at the same guarantor again does nothing; at another guarantor it is a new chance.
//   - Report (report.go): a block takes a package only with an anchor among the last H blocks of its own chain with the
//     right roots, a lookup anchor that is an ancestor and young enough, a hash never seen, prerequisites reported in the
//     last H blocks or with it, and a free core (GP 11.16 to 11.39).
//   - Availability (availability.go): the report leaves its core when it becomes available, at the time-out U or by a
//     verdict. Availability in the very block of the time-out wins.
//   - Accumulation (accumulate.go): at once without prerequisites, else from the ready queue, which an entry leaves after E
//     slots at the latest (GP 12.4 to 12.41).
//   - Forks and finality (fork.go): now and then a second branch begins below the best block; the longer one wins; finality
//     follows the best chain and never decides an open fork.
//
// # What goes wrong
//
// Faults come by chance ([Config]), at given slots ([ParseScript]) or on demand ([Chain.SetFaults], [Chain.Inject], [Chain.Kill]): bursts of skipped slots, lost and delayed submissions,
// guarantors who wait for the last moment, reports that never become available, verdicts, foreign rollups that fill the cores, forks
// with reorgs back and forth, finality that stands still. A [Feed] lets a host hear of it all twice, late, in batches or with
// a block missing. An [Oracle] says what became of the rollup's transactions, whatever anybody else believes.
//
// Every block has its own state, so a package can be accumulated on one branch and timed out on the other.
// Authorizers, signatures and the guarantors' rotation are not simulated; they bound nothing that a queue can rely on. Gas only defers
// packages of the ready queue.
//
// # What a node knows
//
// [Chain.Anchors] is the recent history of the best chain. Its last entry is the best block itself, whose posterior roots no
// header carries before it has a child: take the anchor from the entries before it, as [Chain.Context] does.
//
// # Proofs
//
// With [Config.Commit] the rollup's service stores and yields what package canonical/proof calls a commitment, the state roots are real, and
// the validators sign: [Chain.Prove] makes the JAM part of the proof that a transaction is final, [Chain.Trust] says what its verifier has to
// know. The state is no more than what proofs lead to.
//
// # Real time
//
// A [Driver] runs a chain on the wall clock, for programs, and is safe for concurrent use.
package jamtest
