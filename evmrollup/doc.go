// Package evmrollup is an EVM rollup for package builder: it accepts Ethereum
// transactions, executes them in blocks, and answers questions about them.
//
//	rollup.go    follows the builder: proposes, applies and undoes blocks
//	records.go   makes checkpoints, and recovers
//	execute.go   executes and seals a block, or executes it again
//	payload.go   makes a block's payload, with the witness of its execution
//	pool.go      takes transactions
//	read.go      answers questions about blocks and states
//	status.go    says where a transaction is
//	trace.go     supplies states to tracers
package evmrollup
