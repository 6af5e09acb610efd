package statedb

import (
	"encoding/binary"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// deployed is a store with one contract, and its root.
func deployed(t require.TestingT, a common.Address, code []byte) (*Store, common.Hash) {
	s := NewStore()
	v := open(t, s)
	h, err := v.SetCode(a, code)
	require.NoError(t, err)
	require.NoError(t, v.SetAccount(a, Account{CodeHash: h, CodeSize: len(code), Balance: new(uint256.Int)}))
	return s, commit(t, v)
}

// A view and a witness return copies, not the store's own memory.
func TestCodeIsACopy(t *testing.T) {
	a := common.Address{1}
	s, root := deployed(t, a, contract)
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
	v := open(t, NewStore())
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
	s := reopen(t, disk, KeepAll)
	v := open(t, s)
	h, err := v.SetCode(common.Address{1}, nil)
	require.NoError(t, err)
	require.Equal(t, emptyCode, h)
	v.Set(Key{1}, [32]byte{1})
	commit(t, v)
	require.Equal(t, summarize(t, s), summarize(t, reopen(t, disk.restarted(), KeepAll)))
}

// Code that the witness lacks is an error.
func TestCodeNotInWitness(t *testing.T) {
	a := common.Address{1}
	s, root := deployed(t, a, contract)
	v := viewOf(t, s, root)
	v.Account(a)
	w, err := v.Witness()
	require.NoError(t, err)
	for name, read := range map[string]func(*View){
		"by account": func(v *View) { v.CodeAt(a) },
		"by hash":    func(v *View) { v.Code(v.Account(a).CodeHash) },
	} {
		stateless, err := NewStateless(w, root)
		require.NoError(t, err)
		read(stateless)
		require.ErrorIs(t, stateless.Err(), ErrNotInWitness, name)
	}
}

// BenchmarkSetCode deploys many contracts in one view. The cost of each does
// not depend on their number.
func BenchmarkSetCode(b *testing.B) {
	v := open(b, NewStore())
	for i := range b.N {
		_, err := v.SetCode(common.Address{1}, binary.BigEndian.AppendUint32(nil, uint32(i)))
		require.NoError(b, err)
	}
}

// A view matches a witness only if it has read the same code, and nothing matches none.
func TestMatchesTheCode(t *testing.T) {
	a, b := common.Address{1}, common.Address{2}
	s, root := deployed(t, a, contract)
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
