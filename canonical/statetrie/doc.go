// Package statetrie is JAM's state trie: the keys of the state, and proofs that
// the state with a given root has an entry, lacks one, or has exactly the entries
// of a range (GP D). Light clients, and builders that read the state from peers,
// verify answers with it.
//
//	var t *statetrie.Trie                                 // nil is empty
//	t = t.Set(statetrie.StorageKey(service, key), value)  // a new version
//	nodes := t.Prove(key)
//	err := statetrie.Verify(t.Root(), key, value, nodes)
//
// A compact proof ([Trie.ProveQuery], [Query.Open]) opens any number of keys and ranges
// at once, in less space. Its format is that of an open proposal for JIP-2, version 0
// (polkadot-fellows/JIPs, pull request 16), and passes its test vectors.
//
// Versions of a [Trie] share equal nodes. The trie uses BLAKE2b-256, and is tested
// with public data of a real chain. All functions are pure and safe for
// concurrent use. A verifier trusts no part of a proof. The package depends on
// go-ethereum's common types only.
package statetrie

import "errors"

// ErrProof is returned if a proof does not prove the claim that was checked: that an entry exists,
// that it is absent, or that a range has exactly certain entries.
var ErrProof = errors.New("statetrie: not proved")
