// Package evm runs go-ethereum's EVM on a view of package statedb.
//
//	block, err := evm.NewBlock(view, config, header, hashes)
//	receipt, err := block.Apply(tx) // after an error, leave tx out
//	err = block.Finish()            // stages all writes in the view
//	root, err := view.Commit()      // publishes them
//
// [Call] and [Estimate] run messages for eth_call and eth_estimateGas. They
// stage no writes.
//
// # Witnesses
//
// The view logs the block's reads, each with the first transaction that read the
// value, and Finish stages the block's writes. view.Witness proves exactly these,
// together with the code that was executed. A block runs in the same way on a
// stateless view. Reading a value that the witness does not prove ends the block
// with an error that wraps [ErrState] and statedb.ErrNotInWitness. A refused
// transaction leaves no trace in the witness. If the state stores block hashes (see
// [BlockHashes] and [HistoryContract]), the witness proves the results of BLOCKHASH
// too. [Block.AccessList] lists the changes of each transaction.
//
// # Supported rules
//
// [ChainConfig] activates every fork up to Prague from genesis, for
// transactions of types 0, 1, 2 and 4. Osaka and older forks are supported as
// well. Later forks and blob transactions are refused. A rollup on JAM has no
// beacon chain. It therefore has no withdrawals, deposits or consensus
// requests, and does not make the system calls of EIP-4788, EIP-7002 and
// EIP-7251. The header fields of these proposals have their empty values. The
// system call of EIP-2935 is made if [BlockHashes] is nil. Before Cancun,
// accounts that destroy themselves are restricted: see [ErrDestroyed].
//
// # Integration
//
// The package implements go-ethereum's state.Database with a reader and a trie
// that records writes, so that go-ethereum's StateDB, journal and fork rules
// run unchanged. Balances have at most 128 bits (EIP-7864); Finish refuses
// larger ones. This package is a separate module, because go-ethereum changes
// these interfaces between minor versions.
package evm
