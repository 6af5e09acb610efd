// Package statedb keeps many isolated views of one rollup's state.
//
// The state is a Unified Binary Tree (EIP-7864). Trees are immutable and share what they have in common, so that a view of any
// published root costs a pointer, and a builder can execute many blocks on many past states at once.
//
//	store := statedb.NewStore(statedb.EIP7864())
//	view, err := store.View(root)            // a view of a published root
//	balance := view.Account(addr).Balance
//	err = view.SetStorage(addr, slot, value) // staged in the view, visible to nobody else
//	root, err = view.Commit()                // published; the canonical root has not moved
//	err = store.SetCanonical(root)           // only the store can do that
//
// # Isolation
//
// A [View] has its own staged writes and its own log of what was read. [View.Clone] copies both in constant time. No method of a
// view moves the canonical root: the compiler sees to it.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. A [View] belongs to one goroutine at a time; any number may work in parallel, because
// published trees never change.
//
// # The tree
//
// A key is a stem of 31 bytes and a sub-index; 256 values share a stem. How addresses, storage slots and code become keys and
// which hash is used is a [Profile]. Under the profile EIP7864 roots equal those of go-ethereum's binary trie.
package statedb
