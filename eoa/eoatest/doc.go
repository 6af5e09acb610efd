// Package eoatest provides a small deterministic chain for testing executors. The
// chain has accounts with nonces and balances, a pool that follows the rules of
// real nodes, blocks, finality and reorgs. It can inject faults into every call
// between an executor and a node.
//
// The chain knows none of the executor's rules: it decodes transactions, keeps
// them in a pool, and includes them in blocks.
package eoatest
