// Package jamq has the types that the packages for builders of JAM rollups
// share: [Slot], [CoreIndex], [ChainSpec], [SlotClock], [Block] and the hashes.
// It has no state and is safe for concurrent use.
//
// A rollup builder takes users' transactions, executes them, packs them into
// work packages, submits each to the guarantors of a core, and follows it until
// it is final. The packages of this module cover everything between the users
// and the JAM network:
//
//		users ──► txpool ──► execution on a statedb view (the host)
//		                            │ bundle
//		                            ▼
//		guarantors ◄── submit ◄── bundlequeue ◄── imported JAM blocks, finality, time
//		                            │
//		                            ▼
//		                        canonical: pending, latest, safe, finalized
//
//	  - Package bundlequeue follows bundles until they are final.
//	  - Package txpool is the mempool.
//	  - Package statedb holds isolated views of the state.
//	  - Package anchor chooses anchors and decides when a package is dead.
//	  - Package canonical keeps one contiguous head.
//	  - Package submit drives a bundlequeue against a network.
//	  - Package eoa sends transactions from an externally owned account.
//	  - Package jamtest simulates a JAM chain for tests.
//
// The program in examples/refnode composes them.
//
// # Units
//
// A slot is an interval of time: slot s of a chain begins s slot durations after
// the common era, whether or not a block was authored in it. A height counts the
// blocks along one chain. Slots can be skipped, so a height cannot be derived from
// the time. A rule about eight blocks therefore needs blocks, not a clock.
package jamq
