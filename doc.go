// Package jamq is the shared vocabulary of composable queue primitives for builders of JAM rollups.
//
// A JAM rollup builder takes users' transactions, executes them, packs them into work packages, submits
// each to the guarantors of a core and follows it until it is finalized. jamq gives a host everything
// between the users and the network:
//
//	users ──► txpool ──► (the host executes on a statedb view and builds a bundle)
//	                            │
//	                            ▼
//	guarantors ◄── submit ◄── bundlequeue ◄── imported JAM blocks, finality, time
//	                            │
//	                            ▼
//	                        canonical: pending, latest, safe, finalized
//
// This package holds only the words that those packages share: [Slot], [CoreIndex], [ChainSpec],
// [SlotClock], [Block] and the hashes. It is pure, holds no state and may be used from any goroutine.
//
// # Units
//
// A slot is a point in time: slot s of a chain begins at its common era plus s slot durations, whether or
// not a block was authored in it. A height counts the blocks along one chain. Slots may be skipped, so the
// two never stand for one another: a rule that speaks of eight blocks cannot be answered by a clock.
//
// # Where to start
//
// Package bundlequeue follows bundles to finality, txpool is the mempool, statedb holds isolated views of
// state, anchor says which anchor block to build on and when a package is dead, canonical turns unordered
// accumulations into one contiguous head, submit drives a bundlequeue against a network, eoa manages the
// nonces of an externally owned account, and jamtest simulates a JAM chain for tests.
// The program in examples/refnode composes all of them.
package jamq
