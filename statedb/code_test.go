package statedb

import (
	"encoding/binary"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// deployed is a store with one contract, and its root.
func deployed(t require.TestingT, p Profile, a common.Address, code []byte) (*Store, common.Hash) {
	s := NewStore(p)
	v := open(t, s)
	h, err := v.SetCode(a, code)
	require.NoError(t, err)
	require.NoError(t, v.SetAccount(a, Account{CodeHash: h, CodeSize: len(code), Balance: new(uint256.Int)}))
	return s, commit(t, v)
}

// A view and a witness return copies, not the store's own memory.
func TestCodeIsACopy(t *testing.T) {
	a := common.Address{1}
	s, root := deployed(t, EIP7864(), a, contract)
	one, two := viewOf(t, s, root), viewOf(t, s, root)
	h := one.Account(a).CodeHash
	one.Code(h)[0] ^= 0xff
	w, err := one.Witness()
	require.NoError(t, err)
	w.Code[0][0] ^= 0xff
	require.Equal(t, contract, two.Code(h))

	input := append([]byte{}, contract...)
	h, err = two.SetCode(common.Address{2}, input)
	require.NoError(t, err)
	input[0] ^= 0xff
	two.Code(h)[1] ^= 0xff
	require.Equal(t, contract, two.Code(h))
}

// An account with unknown code does not execute as if it had none, on a store
// or on a witness.
func TestUnknownCode(t *testing.T) {
	v := open(t, NewStore(EIP7864()))
	require.NoError(t, v.SetAccount(common.Address{1}, Account{CodeHash: common.Hash{7}, CodeSize: 9}))
	commit(t, v)
	require.Nil(t, v.CodeAt(common.Address{1}))
	require.ErrorIs(t, v.Err(), ErrUnknownCode)
	_, err := v.Witness()
	require.ErrorIs(t, err, ErrUnknownCode)
}

// No code has nothing to stage.
func TestEmptyCode(t *testing.T) {
	disk := newMemoryDisk()
	s := reopen(t, EIP7864(), disk, KeepAll)
	v := open(t, s)
	h, err := v.SetCode(common.Address{1}, nil)
	require.NoError(t, err)
	require.Equal(t, emptyCode, h)
	v.Set(Key{1}, [32]byte{1})
	commit(t, v)
	require.Equal(t, summarize(t, s), summarize(t, reopen(t, EIP7864(), disk.restarted(), KeepAll)))
}

// Code by chunks needs no code beside the proof, and a stateless view finds it without being told.
func TestCodeByChunk(t *testing.T) {
	a := common.Address{1}
	long := make([]byte, 10_000)
	for i := range long {
		long[i] = byte(i * i >> 3)
	}
	for _, code := range [][]byte{contract, long[:31], long[:32], long} {
		s, root := deployed(t, Tagged(), a, code)
		whole, v := viewOf(t, s, root), viewOf(t, s, root)
		v.ReadCodeByChunk()
		require.Equal(t, code, whole.CodeAt(a))
		require.Equal(t, code, v.Copy().CodeAt(a))
		require.Equal(t, code, v.CopyForPhase2().CodeAt(a))
		require.Equal(t, code, v.CodeAt(a))
		chunks := 0
		for _, r := range v.Reads() {
			if r.Kind == CodeChunkAccess {
				require.EqualValues(t, chunks, r.Chunk)
				chunks++
			}
		}
		require.Equal(t, (len(code)+30)/31, chunks)

		for _, v := range []*View{whole, v} {
			w, err := v.Witness()
			require.NoError(t, err)
			stateless, err := NewStateless(Tagged(), w, root)
			require.NoError(t, err)
			require.Equal(t, code, stateless.CodeAt(a))
			require.NoError(t, stateless.Matches(w))
		}
	}
}

// Chunks that are not those of the code hash are refused.
func TestCodeByChunkIsChecked(t *testing.T) {
	a := common.Address{1}
	p := EIP7864()
	s, root := deployed(t, p, a, contract)
	v := viewOf(t, s, root)
	v.Set(p.CodeChunkKey(a, 0), [32]byte{1: 0x5b})
	v.ReadCodeByChunk()
	require.Nil(t, v.CodeAt(a))
	require.ErrorIs(t, v.Err(), ErrUnknownCode)
}

// A chunk that the witness lacks is an error, and so is the whole code.
func TestCodeNotInWitness(t *testing.T) {
	a := common.Address{1}
	s, root := deployed(t, EIP7864(), a, contract)
	v := viewOf(t, s, root)
	v.Account(a)
	w, err := v.Witness()
	require.NoError(t, err)
	for name, read := range map[string]func(*View){
		"by account": func(v *View) { v.CodeAt(a) },
		"by hash":    func(v *View) { v.Code(v.Account(a).CodeHash) },
	} {
		stateless, err := NewStateless(EIP7864(), w, root)
		require.NoError(t, err)
		read(stateless)
		require.ErrorIs(t, stateless.Err(), ErrNotInWitness, name)
	}
}

// BenchmarkSetCode deploys many contracts in one view. The cost of each does
// not depend on their number.
func BenchmarkSetCode(b *testing.B) {
	v := open(b, NewStore(EIP7864()))
	for i := range b.N {
		_, err := v.SetCode(common.Address{1}, binary.BigEndian.AppendUint32(nil, uint32(i)))
		require.NoError(b, err)
	}
}

// A view matches a witness only if it has read the same code, and nothing matches none.
func TestMatchesTheCode(t *testing.T) {
	p, a, b := EIP7864(), common.Address{1}, common.Address{2}
	s, root := deployed(t, p, a, contract)
	v := viewOf(t, s, root)
	other := append([]byte{1}, contract...)
	h, err := v.SetCode(b, other)
	require.NoError(t, err)
	require.NoError(t, v.SetAccount(b, Account{CodeHash: h, CodeSize: len(other)}))
	root = commit(t, v)
	read := func(of common.Address) *View {
		v := viewOf(t, s, root)
		v.Account(a)
		v.Account(b)
		v.CodeAt(of)
		return v
	}
	w, err := read(a).Witness()
	require.NoError(t, err)
	require.NoError(t, read(a).Matches(w))
	require.ErrorIs(t, read(b).Matches(w), ErrWitness)
	require.ErrorIs(t, read(b).Matches(nil), ErrWitness)
}
