// Package evmrollup is an EVM rollup for package builder: it accepts Ethereum
// transactions, executes them in blocks, and answers questions about the blocks and
// states. [Config].Rules define how a chain differs from Ethereum.
//
// Most hosts use package node, which runs the rollup on a JAM chain, together with
// package rpcapi, which serves Ethereum's JSON-RPC for it. The example of this
// package runs the rollup on a builder of the host.
//
//	rules.go     base fee, gas limit and precompiled contracts of a chain
//	rollup.go    follows the builder: proposes, applies and undoes blocks
//	records.go   makes checkpoints, and recovers
//	execute.go   executes and seals a block, or executes it again
//	payload.go   makes a block's payload, with the witness of its execution
//	pool.go      accepts transactions
//	read.go      answers questions about blocks and states
//	status.go    reports the status of a transaction
//	trace.go     supplies states to tracers
package evmrollup
