// Package evm runs go-ethereum's EVM on a view of package statedb.
//
//	block, err := evm.NewBlock(view, config, header, hashes)
//	receipt, err := block.Apply(tx)   // an error leaves the state as it was: leave the transaction out
//	err = block.Finish()              // everything goes into the view; view.Commit() publishes it
//
// [Call] and [Estimate] run messages that leave no trace, for eth_call and eth_estimateGas.
//
// # Witnesses
//
// What a block reads is logged in the view with the transaction that read it first, and what it writes is staged there by Finish: view.Witness proves
// exactly that, with the code that ran. A block runs in the same way on a stateless view. What its witness does not show ends it with
// an error that wraps [ErrState] and statedb.ErrNotInWitness. A transaction that is refused leaves nothing in the witness. Where the state keeps the
// hashes of blocks (see [BlockHashes] and [HistoryContract]), the witness proves those that BLOCKHASH gave as well.
//
// # What runs
//
// [ChainConfig] has every fork up to Prague active from genesis: transactions of types 0, 1, 2 and 4. Osaka and older chains run
// as well; later forks are refused, and so are blob transactions. A rollup on JAM has no beacon chain, so there are no withdrawals, deposits or consensus requests, and none of their
// system calls: not those of EIP-4788, EIP-7002 and EIP-7251. The header fields of those proposals hold their empty values. That of EIP-2935 is made
// where [BlockHashes] are nil. Before Cancun an account that destroys itself is a case of its own: see [ErrDestroyed].
//
// # How it fits
//
// The adapter implements go-ethereum's state.Database with a reader and a recording trie, so that its StateDB, journal and fork
// rules are used as they are. Accounts have at most 128 bits of balance (EIP-7864); more is refused by Finish. This package
// is a module of its own, because go-ethereum changes these interfaces between minor versions.
package evm
