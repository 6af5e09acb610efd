// Package node composes jamq into a rollup node with an embedded simulated JAM chain.
//
// The road of a transaction, and the file that holds each stretch:
//
//	produce.go   the pool is drained, go-ethereum's EVM executes on a statedb view, the block is sealed (Phase 1)
//	build.go     the block is executed again on its own pre-state and packed into a work package; it is sent (Phase 2)
//	follow.go    JAM blocks go to the runner; what it says moves the heads, the canonical root and the journal
//	ledger.go    the blocks
//	heads.go     how the latest block moved, for subscribers
//	read.go      what the RPC asks
//	trace.go     what tracers run on
//	proof.go     the proof that a transaction is final
//	journal.go   what survives the process
package node
