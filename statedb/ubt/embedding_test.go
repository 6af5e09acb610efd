package ubt

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// embedded is a lie about a tree whose only stem was chosen by an attacker: the
// hash of data that begins with twelve zero bytes, like every stem of EIP-7864.
// The other half of that data is the root of a subtree that the attacker made
// up.
type embedded struct {
	tree  Tree
	proof *Proof
	key   Key      // the proof lies about its value
	value [32]byte // shown at key; zero for absence
}

// embed returns a tree with one stem, that stem, and the value from which made
// computes the tree index that leads to the stem. Read as an inner node, the
// stem has the hash of its data on the left and its values on the right. The
// data is either an inner node over an address and a tree index, or a stem with
// values.
func embed(t *testing.T, address [20]byte, made func(value [32]byte) (index Hash)) (Tree, Key, [32]byte) {
	t.Helper()
	var data Hash
	copy(data[embeddingZeros:], address[:])
	for n := range uint64(1 << 20) {
		var value [32]byte
		binary.BigEndian.PutUint64(value[:], n)
		// An inner node is hashed as a stem is if the stem's last byte is zero.
		if stem := Key(sha.Inner(data, made(value))); stem[StemSize] == 0 && stem[0] < 0x80 {
			tree := mustApply(t, Tree{}, []Write{{Key: stem, Value: [32]byte{1}}})
			return tree, stem, value
		}
	}
	t.Fatal("no such stem")
	return Tree{}, Key{}, [32]byte{}
}

// single returns the root of the values of a stem that has one, at index 0.
func single(value [32]byte) Hash {
	sum := sha.Leaf(value)
	for range 8 {
		sum = sha.Inner(sum, Hash{})
	}
	return sum
}

// hashLie shows an account that does not exist, beside a hash that begins with
// zeros: the address of the attacker's contract.
func hashLie(t *testing.T) embedded {
	address, thief := [20]byte{0xa7, 19: 1}, Key{0x40, 1} // left, then right
	made := func(value [32]byte) Hash { return sha.Stem([StemSize]byte(thief[:]), single(value)) }
	tree, _, value := embed(t, address, made)
	p := &Proof{hashes: []Hash{{embeddingZeros: 0xa7, 31: 1}, single([32]byte{1})}, values: [][32]byte{value}}
	p.bits.put(opInner, opBits)
	p.bits.put(opInner, opBits)
	p.bits.put(opOwn, opBits)
	p.bits.put(1<<8, 9) // the value, and nothing beside it
	p.bits.put(3, 2)    // the two hashes
	return embedded{tree, p, thief, value}
}

// ownLie shows a value at a stem that is the data of the attacker's stem.
func ownLie(t *testing.T) embedded {
	address := [20]byte{0xa7}
	tree, _, value := embed(t, address, single)
	p := &Proof{hashes: []Hash{single([32]byte{1})}, values: [][32]byte{value}}
	p.bits.put(opInner, opBits)
	p.bits.put(opOwn, opBits)
	p.bits.put(1<<8, 9)
	p.bits.put(1, 1)
	return embedded{tree, p, Key{embeddingZeros: 0xa7}, value}
}

// openedLie shows that the attacker's stem is absent, although it is there,
// because its place has the stem that is its data.
func openedLie(t *testing.T) embedded {
	address := [20]byte{0xa7}
	tree, stem, value := embed(t, address, single)
	p := &Proof{hashes: []Hash{single([32]byte{1})}, opened: []Key{{embeddingZeros: 0xa7}}, values: [][32]byte{value}}
	p.bits.put(opInner, opBits)
	p.bits.put(opOpened, opBits)
	p.bits.put(0, 8)
	p.bits.put(1, 1)
	return embedded{tree, p, stem, [32]byte{}}
}

// A proof is refused in which the data of a stem passes for a node.
func TestOpenRefusesEmbeddedStems(t *testing.T) {
	for name, lie := range map[string]func(*testing.T) embedded{"hash": hashLie, "own": ownLie, "opened": openedLie} {
		t.Run(name, func(t *testing.T) {
			l := lie(t)
			truth, there, err := l.tree.Get(l.key)
			require.NoError(t, err)
			require.NotEqual(t, l.value, truth)
			part, err := Open(sha, l.proof, []Use{{Key: l.key}})
			if err == nil && part.Root() == l.tree.Root() {
				value, shown, err := part.Get(l.key)
				require.NoError(t, err)
				t.Errorf("a proof shows %x, %v instead of %x, %v", value, shown, truth, there)
			}
			require.ErrorIs(t, err, ErrProof)
		})
	}
}

// A stem that no verifier takes is not proved either. Its absence is.
func TestStemsOfTwelveZeros(t *testing.T) {
	zeros, other := Key{embeddingZeros: 1}, Key{embeddingZeros - 1: 1}
	tree := mustApply(t, Tree{}, []Write{{Key: zeros}, {Key: other}})
	for _, k := range []Key{zeros, {embeddingZeros: 1, StemSize: 1}, {embeddingZeros: 2}} {
		_, err := tree.Prove(sha, []Use{{Key: k}})
		require.ErrorIs(t, err, ErrProof, "%x", k)
	}
	_, err := tree.Prove(sha, []Use{{Key: other}})
	require.NoError(t, err)
	absent := []Use{{Key: zeros, Deletes: true}}
	tree = mustApply(t, Tree{}, []Write{{Key: other}})
	part, err := Open(sha, mustProve(t, tree, absent), absent)
	require.NoError(t, err)
	require.Equal(t, tree.Root(), part.Root())
}
