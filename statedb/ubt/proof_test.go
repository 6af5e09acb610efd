package ubt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// usesOf are the uses of some writes and some keys that are only read.
func usesOf(writes []Write, reads []Key) []Use {
	byKey := map[Key]Use{}
	for _, k := range reads {
		byKey[k] = Use{Key: k}
	}
	for _, w := range writes {
		byKey[w.Key] = Use{Key: w.Key, Sets: !w.Deleted, Deletes: w.Deleted}
	}
	var uses []Use
	for _, u := range byKey {
		uses = append(uses, u)
	}
	slices.SortFunc(uses, func(a, b Use) int { return a.Key.Compare(b.Key) })
	return uses
}

func mustProve(t fatal, tree Tree, uses []Use) *Proof {
	t.Helper()
	p, err := tree.Prove(sha, uses)
	if err != nil {
		t.Fatalf("prove: %v", err)
	}
	return p
}

// drawReads draws keys, some of which are there.
func drawReads(t *rapid.T, m model) (keys []Key) {
	known := m.keys()
	for range rapid.IntRange(0, 8).Draw(t, "reads") {
		if len(known) > 0 && rapid.Bool().Draw(t, "known") {
			keys = append(keys, rapid.SampledFrom(known).Draw(t, "key"))
		} else {
			keys = append(keys, drawKey(t))
		}
	}
	return keys
}

// Whatever is read, set and deleted: the proof has the root before, the values, and the root after.
func TestProofsProve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{}
		m.apply(drawWrites(t, m, 30))
		tree := treeOf(t, m)
		writes := drawWrites(t, m, 8)
		uses := usesOf(writes, drawReads(t, m))
		encoded := mustProve(t, tree, uses).AppendTo(nil)

		p, err := ParseProof(encoded)
		if err != nil || p.Size() != len(encoded) {
			t.Fatalf("parse %d bytes of size %d: %v", len(encoded), p.Size(), err)
		}
		if again := p.AppendTo(nil); !slices.Equal(again, encoded) {
			t.Fatalf("not encoded the same again")
		}
		part, err := Open(sha, p, uses)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		if part.Root() != tree.Root() {
			t.Fatalf("root %s, want %s", part.Root(), tree.Root())
		}
		for _, u := range uses {
			got, ok, err := part.Get(u.Key)
			want, wantOK := m[u.Key]
			if err != nil || ok != wantOK || got != want {
				t.Fatalf("%x is %x, %v, %v, want %x, %v", u.Key, got, ok, err, want, wantOK)
			}
		}
		after, err := part.Apply(sha, writes)
		if err != nil {
			t.Fatalf("apply: %v", err)
		}
		m.apply(writes)
		if after.Root() != m.root() {
			t.Fatalf("root %s after the writes, want %s", after.Root(), m.root())
		}
	})
}

// For keys without a use, a tree from a proof returns a true value or an error.
func TestNothingElseIsShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model{}
		m.apply(drawWrites(t, m, 30))
		tree := treeOf(t, m)
		uses := usesOf(nil, drawReads(t, m))
		part, err := Open(sha, mustProve(t, tree, uses), uses)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		for _, k := range append(drawReads(t, m), m.keys()...) {
			got, ok, err := part.Get(k)
			if want, wantOK := m[k]; err == nil && (ok != wantOK || got != want) {
				t.Fatalf("%x is %x, %v, want %x, %v", k, got, ok, want, wantOK)
			}
		}
	})
}

// sample returns a small tree with stems of several values and keys with long
// common prefixes, and uses of all kinds.
func sample(t fatal) (model, []Use) {
	m := model{}
	for i := range byte(12) {
		k := Key{i * 37, i, embeddingZeros - 1: 1, 30: i % 3, 31: i % 2}
		m[k] = [32]byte{1, i}
		k[31] += 100
		m[k] = [32]byte{2, i}
	}
	m[Key{0x80, 5}] = [32]byte{3}
	m[Key{0x80, 5, 30: 1}] = [32]byte{4}
	keys := m.keys()
	uses := usesOf(
		[]Write{{Key: keys[0], Value: [32]byte{9}}, {Key: keys[3], Deleted: true}, {Key: Key{0x80, 5}, Deleted: true}, {Key: Key{9, 9}, Value: [32]byte{8}}},
		[]Key{keys[7], keys[8], {0xf0}, {0x80, 5, 31: 7}, {0x80, 7}})
	return m, uses
}

// Every other form of a true proof is refused: with flipped bits, cut off,
// extended, or for other keys.
func TestNoOtherFormIsTaken(t *testing.T) {
	m, uses := sample(t)
	tree := treeOf(t, m)
	good := mustProve(t, tree, uses).AppendTo(nil)
	accepted := func(b []byte, uses []Use) bool {
		p, err := ParseProof(b)
		if err != nil {
			require.ErrorIs(t, err, ErrProof)
			return false
		}
		part, err := Open(sha, p, uses)
		return err == nil && part.Root() == tree.Root()
	}
	require.True(t, accepted(good, uses))
	for i := range len(good) * 8 {
		bad := slices.Clone(good)
		bad[i/8] ^= 0x80 >> (i % 8)
		require.False(t, accepted(bad, uses), "bit %d flipped", i)
	}
	for i := range good {
		require.False(t, accepted(good[:i], uses), "cut after %d", i)
		require.False(t, accepted(slices.Insert(slices.Clone(good), i, 0), uses), "a byte at %d", i)
	}
	for i := range uses {
		require.False(t, accepted(good, slices.Delete(slices.Clone(uses), i, i+1)), "use %d gone", i)
		if _, present := m[uses[i].Key]; present {
			other := slices.Clone(uses)
			other[i].Key[31] ^= 2
			require.False(t, accepted(good, other), "use %d of another key", i)
		}
	}
}

// The tree has one stem. Under hashes without tags its node is also an inner
// node over "stem ‖ 00" and the root of its values. Read that way, a value in a
// path towards an empty part of the values would be proved absent.
func TestStemIsNotAnInnerNode(t *testing.T) {
	stem := Key{0x80}                // goes right at depth 0, then left
	stem[0] |= 0x40                  // right: empty indices from 128 on
	m := model{stem: [32]byte{0xaa}} // present
	tree := treeOf(t, m)
	var values [256]Hash
	values[0] = sha.Leaf([32]byte{0xaa})
	// An inner node: its left hash is the stem's bytes, and its right side is
	// an inner node with an empty right side.
	half := fold(sha, values[:128])
	require.Equal(t, tree.Root(), sha.Inner(Hash(append(slices.Clone(stem[:31]), 0)), sha.Inner(half, Hash{})))
	forged := &Proof{hashes: []Hash{half, Hash(append(slices.Clone(stem[:31]), 0))}}
	forged.bits.put(opInner, opBits)
	forged.bits.put(opInner, opBits)
	forged.bits.put(opEmpty, opBits) // the key is absent
	forged.bits.put(1, 1)
	forged.bits.put(1, 1)
	_, err := Open(sha, forged, []Use{{Key: stem}})
	require.ErrorIs(t, err, ErrProof)
}

// An inner node whose left hash ends in a zero byte could pass for a stem
// without known values.
func TestInnerNodeIsNotAForeignStem(t *testing.T) {
	// Look for a tree of two stems whose left one hashes to …00.
	for i := uint32(0); ; i++ {
		left := Key{31: 1}
		binary.BigEndian.PutUint32(left[4:], i)
		m := model{left: [32]byte{1}, {0xff}: [32]byte{2}}
		tree := treeOf(t, m)
		root := tree.root.node.(*inner)
		if sum := root.sums[0]; sum[31] != 0 {
			continue
		}
		fake := Key(root.sums[0])
		for sub := range 256 {
			fake[31] = byte(sub)
			forged := &Proof{opened: []Key{fake}, values: [][32]byte{{}}}
			forged.bits.put(opOpened, opBits)
			for span := 128; span > 0; span /= 2 {
				forged.bits.put(0, 1)
			}
			part, err := Open(sha, forged, []Use{{Key: left}})
			require.False(t, err == nil && part.Root() == tree.Root())
		}
		return
	}
}

// randomTree returns a tree with n stems of one value each.
func randomTree(t fatal, n int) (Tree, []Key) {
	source := rand.NewChaCha8([32]byte{1})
	writes := make([]Write, n)
	for i := range writes {
		_, _ = source.Read(writes[i].Key[:])
		writes[i].Value[0] = 1
	}
	slices.SortFunc(writes, func(a, b Write) int { return a.Key.Compare(b.Key) })
	keys := make([]Key, n)
	for i := range keys {
		keys[i] = writes[i].Key
	}
	return mustApply(t, Tree{}, writes), keys
}

// The size agrees with the formulas in the comment of Size, exactly and
// approximately.
func TestProofSize(t *testing.T) {
	const n = 1 << 16
	tree, keys := randomTree(t, n)
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{30, 100, 1000} {
		var uses []Use
		for _, i := range r.Perm(n)[:k] {
			uses = append(uses, Use{Key: keys[i]})
		}
		slices.SortFunc(uses, func(a, b Use) int { return a.Key.Compare(b.Key) })
		p := mustProve(t, tree, uses)
		require.Len(t, p.AppendTo(nil), p.Size())
		require.Equal(t, 16+(p.bits.count+7)/8+32*(len(p.opened)+len(p.hashes)+len(p.values)), p.Size())
		log := math.Log2(float64(n) / float64(k))
		about := float64(k) * (32*(log-0.5) + 32 + 3./8*log + 1.4)
		require.InEpsilon(t, about, p.Size()-16, 0.1, "%d keys", k)
	}
}

// Bytes from outside never panic, and a proof that opens is the one that would be made.
func FuzzOpen(f *testing.F) {
	m, uses := sample(f)
	f.Add(mustProve(f, treeOf(f, m), uses).AppendTo(nil), byte(0))
	f.Add([]byte(nil), byte(1))
	chain := make([]byte, 0, 300) // one-sided nodes to the bottom
	chain = append(chain, 0, 0, 3, 0xe8)
	chain = append(chain, make([]byte, 12)...)
	chain = append(chain, bytes.Repeat([]byte{0b01010101}, 62)...)
	f.Add(append(chain, make([]byte, 125-62)...), byte(1))
	f.Fuzz(func(t *testing.T, b []byte, variant byte) {
		p, err := ParseProof(b)
		if err != nil {
			require.ErrorIs(t, err, ErrProof)
			return
		}
		require.Equal(t, b, p.AppendTo(nil))
		some := uses[:int(variant)%(len(uses)+1)]
		part, err := Open(sha, p, some)
		if err != nil {
			require.ErrorIs(t, err, ErrProof)
			return
		}
		for _, u := range some {
			_, _, err := part.Get(u.Key)
			require.NoError(t, err)
		}
	})
}

func BenchmarkProof(b *testing.B) {
	tree, keys := randomTree(b, 1<<20)
	for _, k := range []int{100, 1000} {
		var uses []Use
		var writes []Write
		picked := rand.New(rand.NewPCG(1, 2)).Perm(len(keys))[:k]
		slices.Sort(picked)
		for _, i := range picked {
			key := keys[i]
			uses = append(uses, Use{Key: key, Sets: true})
			writes = append(writes, Write{Key: key, Value: sha256.Sum256(key[:])})
		}
		p := mustProve(b, tree, uses)
		b.Run(fmt.Sprint("prove ", k), func(b *testing.B) {
			for range b.N {
				mustProve(b, tree, uses)
			}
		})
		b.Run(fmt.Sprint("open ", k), func(b *testing.B) {
			for range b.N {
				_, err := Open(sha, p, uses)
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprint("open and apply ", k), func(b *testing.B) {
			for range b.N {
				part, err := Open(sha, p, uses)
				require.NoError(b, err)
				mustApply(b, part, writes)
			}
			b.ReportMetric(float64(p.Size()), "B")
		})
	}
}

// Of a tree from a proof, All gives what it shows, and Diff nothing that might not be so.
func TestHiddenIsLeftOut(t *testing.T) {
	one, two := Key{1}, Key{0x81}
	tree, err := Tree{}.Apply(sha, []Write{{Key: one, Value: [32]byte{1}}, {Key: two, Value: [32]byte{2}}})
	require.NoError(t, err)
	proof, err := tree.Prove(sha, []Use{{Key: one}})
	require.NoError(t, err)
	part, err := Open(sha, proof, []Use{{Key: one}})
	require.NoError(t, err)
	require.Equal(t, map[Key][32]byte{one: {1}}, maps.Collect(part.All))
	require.Empty(t, slices.Collect(part.Diff(Tree{})))
	require.Empty(t, slices.Collect(Tree{}.Diff(part)))
	require.Empty(t, slices.Collect(part.Diff(tree)))
}

// In a tree from a proof, a run of inner nodes that have one empty side is
// folded. Reads, writes, deletions and differences there are as in the whole
// tree.
func TestChains(t *testing.T) {
	one, two := Key{9, 30: 1}, Key{9, 30: 2} // 245 nodes above both
	for name, write := range map[string]Write{
		"beside the start":  {Key: Key{0x80}, Value: [32]byte{3}},
		"beside the middle": {Key: Key{9, 1}, Value: [32]byte{3}},
		"beside the end":    {Key: Key{9, 30: 4}, Value: [32]byte{3}},
		"below":             {Key: one, Value: [32]byte{3}},
		"one stem is left":  {Key: one, Deleted: true},
		"absent":            {Key: Key{9, 1}, Deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := model{one: {1}, two: {2}}
			tree := treeOf(t, m)
			uses := usesOf([]Write{write}, []Key{one, two, {0x80}, {9, 1}, {9, 30: 4}})
			part, err := Open(sha, mustProve(t, tree, uses), uses)
			require.NoError(t, err)
			require.Equal(t, tree.Root(), part.Root())
			require.IsType(t, (*chain)(nil), part.root.node)
			for _, use := range uses {
				value, ok, err := part.Get(use.Key)
				require.NoError(t, err)
				want, wantOK := m[use.Key]
				require.Equal(t, wantOK, ok, "%x", use.Key)
				require.Equal(t, want, value)
			}
			require.Equal(t, map[Key][32]byte(m), maps.Collect(part.All))
			before := maps.Clone(m)
			m.apply([]Write{write})
			after := mustApply(t, part, []Write{write})
			require.Equal(t, m.root(), after.Root())
			require.Equal(t, map[Key][32]byte(m), maps.Collect(after.All))
			require.Equal(t, map[Key][32]byte(before), maps.Collect(part.All))
			if _, ok := before[write.Key]; !ok && !write.Deleted {
				require.Equal(t, []Write{write}, slices.Collect(after.Diff(part)))
			}
		})
	}
}

// A key that leaves a chain is absent, although its last bits lead to a hidden
// part below the chain.
func TestKeyBesideAChainIsAbsent(t *testing.T) {
	one, two, beside := Key{9, 30: 1}, Key{9, 30: 2}, Key{9, 1, 30: 2}
	uses := usesOf(nil, []Key{one, beside})
	part, err := Open(sha, mustProve(t, treeOf(t, model{one: {1}, two: {2}}), uses), uses)
	require.NoError(t, err)
	_, _, err = part.Get(two)
	require.ErrorIs(t, err, ErrHidden)
	_, ok, err := part.Get(beside)
	require.NoError(t, err)
	require.False(t, ok)
}

// A batch that is hashed in parts enters a chain at many places.
func TestLargeBatchBesideAChain(t *testing.T) {
	m := model{Key{9, 30: 1}: {1}, Key{9, 30: 2}: {2}}
	tree := treeOf(t, m)
	byKey := map[Key]Write{}
	for i := range 30 * 8 {
		k := Key{9, embeddingZeros: 1}
		k[i/8] ^= 0x80 >> (i % 8)
		byKey[k] = Write{Key: k, Value: [32]byte{3}}
	}
	uses := usesOf(sorted(byKey), nil)
	part, err := Open(sha, mustProve(t, tree, uses), uses)
	require.NoError(t, err)
	m.apply(sorted(byKey))
	require.Equal(t, m.root(), mustApply(t, part, sorted(byKey)).Root())
	require.Equal(t, tree.Root(), mustApply(t, part, nil).Root())
}

// Lengths whose sum is right only with 32-bit arithmetic are refused on all
// platforms.
func TestLengthsThatWrap(t *testing.T) {
	for _, lengths := range [][4]uint32{{0, 1<<32 - 1, 1, 0}, {0, 1 << 31, 1 << 31, 0}, {0, 1 << 27, 0, 0}, {1<<32 - 1, 0, 0, 0}, {1<<32 - 7, 0, 0, 0}} {
		var b []byte
		for _, n := range lengths {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		_, err := ParseProof(b)
		require.ErrorIs(t, err, ErrProof, "%x", lengths)
	}
}
