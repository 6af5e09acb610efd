// Package statedb keeps many isolated views of one rollup's state, and proves what each of them read and wrote.
//
// The state is a Unified Binary Tree (EIP-7864, package ubt). Trees are immutable and share what they have in common, so that a view of any
// published root costs a pointer, and a builder can execute many blocks on many past states at once.
//
//	store := statedb.NewStore(statedb.EIP7864())
//	view, err := store.View(root)            // a view of a published root
//	balance := view.Account(addr).Balance
//	view.SetStorage(addr, slot, value)       // staged in the view, visible to nobody else
//	witness, err := view.Witness()           // proves what was read and is written
//	root, err = view.Commit()                // published; the canonical root has not moved
//	err = store.SetCanonical(root)           // only the store can do that
//
// and at the guarantor, who has no state:
//
//	witness, err := statedb.ParseWitness(profile, bytes)
//	view, err := statedb.NewStateless(profile, witness, preRoot)
//	… execute on view …
//	postRoot, err := view.Root()
//	err = view.Matches(witness)              // nothing is in it that was not needed
//
// # Isolation
//
// A [View] has its own staged writes, its own log of what was read, and its own pin. There are three ways to another view, all in constant time:
// [View.Copy] takes everything with it, for work that takes long; [View.CopyForPhase2] shares only the state that both read;
// [Store.View] is a fresh one of any root. No method of a view moves the canonical root: the compiler sees to it. Hosts that know calls
// such as CommitAsCanonical on the state itself have them in [Facade], which panics where a copy makes them.
//
// # Witnesses
//
// A [Witness] lists the keys that were read or written with what they were derived from, carries the code that ran, and has one multiproof over
// all keys. [Verify] and [NewStateless] derive every key again, so that no slot can pass for an account's balance. An execution has one witness on
// each root, with one encoding; [View.Matches] refuses all others. Absence is proved as well as presence. Code is the whole of it, or by
// chunks where [View.ReadCodeByChunk] says so.
//
// # Roots
//
// A [Store] keeps published roots until they are discarded: one by one, or by [Config].Retention as the canonical root moves. A pinned root
// stays. With [Config].Disk a store survives being killed at any moment: what is committed or canonical when the call returns
// is so when the store is opened again. Code is kept for ever.
//
// # Concurrency
//
// A [Store] is safe for concurrent use, and starts no goroutine that outlives a call. A [View] belongs to one goroutine at a time; any number
// may work in parallel, because published trees never change. Opening and copying views waits for nothing but a lock that is held for moments.
//
// # Profiles
//
// How addresses, storage slots and code become keys and which hash is used is a [Profile]. Under the profile [EIP7864] roots equal those
// of go-ethereum's binary trie. [BLAKE3] is the same under another hash function; [Tagged] is safer and smaller, and compatible with nothing.
package statedb
