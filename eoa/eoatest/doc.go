// Package eoatest has a small deterministic chain to test executors on: accounts with counts and balances, a pool that behaves as nodes' pools do,
// blocks, finality and reorgs, and faults of everything between an executor and a node.
//
// It knows nothing of the executor's rules: it decodes transactions, keeps them in a pool, and includes them.
package eoatest
