// Package node composes jamq into a rollup node, on an embedded simulated JAM
// chain or on that of a JAM node.
//
// A transaction passes through these files:
//
//	produce.go   drains the pool, executes on a statedb view, seals the block
//	build.go     executes the block again and packs it; sends the package
//	follow.go    passes JAM blocks to the runner, and moves the heads, the
//	             canonical root and the journal by its effects
//	ledger.go    keeps the blocks
//	heads.go     records how the latest block moved, for subscribers
//	read.go      answers the RPC
//	trace.go     supplies states to tracers
//	proof.go     proves that a transaction is final
//	journal.go   stores blocks, queue and pool
//	reconcile.go recovers from a crash
package node
