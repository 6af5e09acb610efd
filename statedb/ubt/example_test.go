package ubt_test

import (
	"crypto/sha256"
	"fmt"

	"github.com/jamq/jamq/statedb/ubt"
)

// A verifier that knows only the root checks a proof, and computes the root
// after a deletion.
func Example() {
	pair := func(left, right []byte) ubt.Hash {
		return sha256.Sum256(append(append([]byte(nil), left...), right...))
	}
	hasher := &ubt.Hasher{
		Leaf:  func(value [32]byte) ubt.Hash { return sha256.Sum256(value[:]) },
		Inner: func(left, right ubt.Hash) ubt.Hash { return pair(left[:], right[:]) },
		Stem:  func(stem [ubt.StemSize]byte, values ubt.Hash) ubt.Hash { return pair(append(stem[:], 0), values[:]) },
	}
	tree, err := ubt.Tree{}.Apply(hasher, []ubt.Write{{Key: ubt.Key{1}, Value: [32]byte{10}}, {Key: ubt.Key{2}, Value: [32]byte{20}}, {Key: ubt.Key{0x80}, Value: [32]byte{30}}})
	if err != nil {
		panic(err)
	}
	uses := []ubt.Use{{Key: ubt.Key{1}, Deletes: true}, {Key: ubt.Key{3}}}
	proof, err := tree.Prove(hasher, uses)
	if err != nil {
		panic(err)
	}

	part, err := ubt.Open(hasher, proof, uses)
	if err != nil {
		panic(err)
	}
	value, ok, _ := part.Get(ubt.Key{1})
	_, absent, _ := part.Get(ubt.Key{3})
	fmt.Println(part.Root() == tree.Root(), value[0], ok, absent)
	writes := []ubt.Write{{Key: ubt.Key{1}, Deleted: true}}
	after, err := part.Apply(hasher, writes)
	if err != nil {
		panic(err)
	}
	next, err := tree.Apply(hasher, writes)
	if err != nil {
		panic(err)
	}
	fmt.Println(after.Root() == next.Root())
	// Output:
	// true 10 true false
	// true
}
