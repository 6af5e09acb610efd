// Package ubt is a persistent Unified Binary Tree (EIP-7864): keys of 32 bytes, values of 32 bytes, any number of versions that share what
// they have in common, and proofs of what one version has and how the next follows from it.
//
//	tree, err := ubt.Tree{}.Apply(hasher, writes)     // the writes sorted by key
//	value, ok, err := tree.Get(key)
//	next, err := tree.Apply(hasher, more)             // tree is still there, and as it was
//
//	proof, err := tree.Prove(hasher, uses)            // of some keys that are read, set or deleted
//	part, err := ubt.Open(hasher, proof, uses)        // elsewhere, without the tree
//	part.Root() == tree.Root()                        // then the values that part.Get gives are the tree's,
//	after, err := part.Apply(hasher, writes)          // and after.Root() is the root after the writes
//
// # The tree
//
// The first 31 bytes of a key are its stem; the last one says which of the stem's 256 values it is. A stem stands at the shallowest place that
// separates it from the others: below an inner node for each bit of the stem until then. There are no nodes for common prefixes. How nodes are hashed
// is a [Hasher]: a leaf hashes its value, a stem its name and the root of the binary tree over its 256 leaves, an inner node its two
// children; what is empty hashes to zero, and so does a pair of empty ones. Deleting is canonical: a tree is a function of its values, however they came
// about.
//
// # Sharing
//
// Nodes never change, and have their hash before anybody sees them. So a [Tree] is a pointer, a snapshot is a copy of it, readers need no lock, and
// the garbage collector frees what no tree needs any more. A batch of writes makes each node that changes once; large ones are hashed by several
// goroutines.
//
// # Proofs
//
// A [Proof] has one form for each tree and list of uses. What was opened from it is again a Tree, with holes; so the root after the writes is
// computed by the same code that the builder ran, and there is no second set of rules. EIP-7864 hashes stems and inner nodes alike. A proof
// therefore opens a leaf below every node that it enters, so that no node that is there can be taken for another kind, and opens what is left alone
// by a deletion; prove.go says how. Who can choose stems, or what they are hashes of, can still make one that reads as a node of his own: see
// [Proof.ZeroPrefixed].
package ubt
