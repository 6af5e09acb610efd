// Package ubt is a persistent Unified Binary Tree (EIP-7864). Keys and values have
// 32 bytes each. Any number of versions share their common parts. A proof shows
// values of one version, and how writes change its root.
//
//	tree, err := ubt.Tree{}.Apply(hasher, writes) // writes sorted by key
//	value, ok, err := tree.Get(key)
//	next, err := tree.Apply(hasher, more)         // tree is unchanged
//
// A verifier needs only the proof:
//
//	proof, err := tree.Prove(hasher, uses)   // keys read, set or deleted
//	part, err := ubt.Open(hasher, proof, uses)
//	// Compare part.Root() with a trusted root. Then part.Get is trusted too.
//	after, err := part.Apply(hasher, writes) // after.Root() is the next root
//
// # The tree
//
// The first 31 bytes of a key are its stem, and the last byte selects one of the
// stem's 256 values. A stem is at the smallest depth that separates it from the
// other stems, below one inner node for each bit. Common prefixes have no special
// nodes. A [Hasher] hashes the nodes: a leaf hashes its value, a stem hashes its
// name and the root of the binary tree over its 256 leaves, and an inner node
// hashes its two children. An empty subtree hashes to zero, and so does a pair of
// empty subtrees. Deletion is canonical: a tree depends only on its values, not on
// their history.
//
// # Sharing
//
// Nodes never change, and are hashed before they are published. A [Tree] is
// therefore only a pointer, and a snapshot is a copy of it. Readers need no lock,
// and the garbage collector frees nodes that no tree uses. A batch of writes
// creates each changed node only once. Several goroutines hash a large batch.
//
// # Proofs
//
// A [Proof] has exactly one form for each tree and list of uses. Opening it gives a
// Tree with hidden parts, so the same code computes the next root for a builder and
// for a verifier. EIP-7864 hashes stems and inner nodes alike. A proof therefore
// opens a leaf below every node that it enters, so that a node cannot pass for
// another kind. It also opens a stem that is left alone by a deletion; prove.go has
// the rules. A party that chooses an address and a storage slot influences the data
// that is hashed to a stem, and can make the data read as two hashes. [Open]
// refuses nodes that begin like such data: twelve zero bytes. A party that chooses
// stems freely can still create a stem that reads as a node.
package ubt
