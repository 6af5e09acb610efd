package evm

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/trie/bintrie"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/ubt"
)

var hasher = ubt.SHA256()

// both applies writes to go-ethereum's trie, stem by stem, and to ours, in one batch.
func both(t require.TestingT, theirs *bintrie.BinaryTrie, ours ubt.Tree, writes map[statedb.Key][32]byte) ubt.Tree {
	var batch []ubt.Write
	stems := map[[statedb.StemSize]byte][][]byte{}
	for _, k := range slices.SortedFunc(maps.Keys(writes), statedb.Key.Compare) {
		value := writes[k]
		batch = append(batch, ubt.Write{Key: k, Value: value})
		stem := [statedb.StemSize]byte(k[:])
		if stems[stem] == nil {
			stems[stem] = make([][]byte, 256)
		}
		stems[stem][k[statedb.StemSize]] = value[:]
	}
	for stem, values := range stems {
		require.NoError(t, theirs.UpdateStem(stem[:], values))
	}
	ours, err := ours.Apply(&hasher, batch)
	require.NoError(t, err)
	require.Equal(t, theirs.Hash(), ours.Root())
	return ours
}

// drawStem draws a stem: a random one, or one that shares many bits with others
// and then differs.
func drawStem(t *rapid.T) (k statedb.Key) {
	if rapid.Bool().Draw(t, "random") {
		sum := sha256.Sum256([]byte{rapid.Byte().Draw(t, "seed")})
		copy(k[:statedb.StemSize], sum[:])
		return k
	}
	if rapid.Bool().Draw(t, "ones") {
		for i := range statedb.StemSize {
			k[i] = 0xff
		}
	}
	bit := rapid.IntRange(0, 8*statedb.StemSize-1).Draw(t, "bit")
	k[bit/8] ^= 0x80 >> (bit % 8)
	return k
}

// Batches of inserts, updates and zero writes give the same root over random,
// adversarial and full stems.
func TestTreeAgainstBintrie(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		theirs, ours := newBintrie(t), ubt.Tree{}
		var known []statedb.Key
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			writes := map[statedb.Key][32]byte{}
			for range rapid.IntRange(1, 12).Draw(t, "stems") {
				k := drawStem(t)
				for range rapid.SampledFrom([]int{1, 2, 40, 256}).Draw(t, "values") {
					k[statedb.StemSize] = byte(rapid.Uint32().Draw(t, "sub"))
					writes[k] = [32]byte{31: byte(rapid.IntRange(0, 3).Draw(t, "value"))}
					known = append(known, k)
				}
			}
			for range rapid.IntRange(0, 5).Draw(t, "updates") {
				writes[rapid.SampledFrom(known).Draw(t, "key")] = [32]byte{0: byte(rapid.IntRange(0, 1).Draw(t, "value"))}
			}
			ours = both(t, theirs, ours, writes)
		}
	})
}

// As many at once as go to several goroutines, then updates, zeros and inserts among them.
func TestLargeTreeAgainstBintrie(t *testing.T) {
	theirs, ours := newBintrie(t), ubt.Tree{}
	for round := range byte(4) {
		writes := map[statedb.Key][32]byte{}
		for i := range uint32(4000) {
			// Every other round writes the same keys again, every third of them zero.
			seed := binary.BigEndian.AppendUint32([]byte{round / 2}, i)
			value := sha256.Sum256(append(seed, round))
			if i%3 == uint32(round%2) {
				value = [32]byte{}
			}
			writes[sha256.Sum256(seed)] = value
		}
		ours = both(t, theirs, ours, writes)
	}
}
