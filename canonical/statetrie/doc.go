// Package statetrie implements JAM's state trie (GP D) and proofs about it: that
// the state with a given root has an entry, that it lacks an entry, or that it has
// exactly certain entries in a range of keys. Light clients use the package to
// verify answers of peers, and so do builders that read the state from peers.
//
//	var t *statetrie.Trie                                 // nil is empty
//	t = t.Set(statetrie.StorageKey(service, key), value)  // a new version
//	nodes := t.Prove(key)
//	err := statetrie.Verify(t.Root(), key, value, nodes)
//
// A compact proof ([Trie.ProveQuery], [Query.Open]) proves any number of keys and
// ranges at once and needs less space. Its format is version 0 of an open proposal
// for JIP-2 (polkadot-fellows/JIPs, pull request 16), and the package passes the
// test vectors of that proposal.
//
// A [Trie] is immutable, and its versions share equal nodes. The trie uses
// BLAKE2b-256, and is tested with public data of a real chain. All functions are
// pure and safe for concurrent use. A verifier does not trust any part of a proof.
// Apart from jamq, the package depends only on go-ethereum's common types.
package statetrie

import "errors"

// ErrProof is returned if a proof does not prove the claim of the caller: that an
// entry exists, that it is absent, or that a range has exactly certain entries.
var ErrProof = errors.New("statetrie: not proved")
