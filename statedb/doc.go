// Package statedb keeps many isolated views of a rollup's state, and proves
// what each of them read and wrote.
//
// The state is a Unified Binary Tree (EIP-7864, package ubt). Trees are
// immutable and share their common parts, so opening a view of any published
// root takes constant time. A builder can execute many blocks on many past
// states in parallel.
//
//	store := statedb.NewStore()
//	view, err := store.View(root)          // a view of a published root
//	balance := view.Account(addr).Balance
//	view.SetStorage(addr, slot, value)     // staged, visible only in this view
//	witness, err := view.Witness()         // proves all reads and writes
//	root, err = view.Commit()              // published, but not yet canonical
//	err = store.SetCanonical(root)         // only the store can do that
//
// A guarantor has no state. It executes on the witness:
//
//	witness, err := statedb.ParseWitness(bytes)
//	view, err := statedb.NewStateless(witness, preRoot)
//	// Execute on view.
//	postRoot, err := view.Root()
//	err = view.Matches(witness)            // the witness has nothing superfluous
//
// # Isolation
//
// A [View] has separate staged writes, a separate log of reads, and a separate pin.
// There are three ways to get another view, all in constant time. [View.Copy]
// copies everything, for long-running work. [View.CopyForPhase2] shares only the
// state that both views read. [Store.View] opens any root. No method of a view
// moves the canonical root. [Facade] is for hosts whose code calls methods such as
// CommitAsCanonical on the state; on a copy, these methods panic.
//
// # Witnesses
//
// A [Witness] lists the keys that were read or written, together with the address,
// slot or code chunk from which each key was derived. It contains the code that was
// executed and one multiproof for all keys. [Verify] and [NewStateless] derive
// every key again, so that a storage slot cannot be presented as an account's
// balance. Each execution on a root has exactly one witness with one encoding, and
// [View.Matches] refuses all others. Absence is proved as well as presence. Code is
// included whole. docs/witness.md specifies the format, with vectors and a verifier
// in JavaScript.
//
// # Undoing a transaction
//
// A transaction that fails leaves its reads in the block, but no writes: take a
// [View.Snapshot] before it, and call [View.Revert]. A transaction that is left out
// of the block leaves neither: also take a [View.Mark] before it, and call
// [View.Rewind].
//
// # Roots
//
// A [Store] keeps published roots until they are discarded, either by
// [Store.Discard] or by [Config].Retention as the canonical root moves. A pinned
// root stays. Different versions of a block can lead to the same root. Discard
// takes back one commit, so a root stays while it has a commit left. A view of a
// discarded root can still read, but its Commit returns ErrUnknownRoot.
//
// Code is deleted with the last root that has it. Code of discarded canonical roots
// is never deleted.
//
// With [Config].Disk a store survives a crash at any moment: every change is
// durable when the call returns. [Store.Export] and [Store.Import] move the
// state of one root to another store.
//
// # Concurrency
//
// A [Store] is safe for concurrent use, and none of its goroutines outlives a call.
// A [View] belongs to one goroutine at a time. Any number of views may work in
// parallel, because published trees never change. Opening or copying a view takes a
// lock only briefly.
//
// # Hashes and keys
//
// EIP-7864, in its version of 2026-03-09 with SHA-256, determines the hashes and
// how addresses, storage slots and code become keys. Roots therefore equal those of
// go-ethereum's binary trie. The EIP does not specify deletion: go-ethereum stores
// zeros, and so does this package.
package statedb
