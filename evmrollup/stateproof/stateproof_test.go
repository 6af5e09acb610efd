package stateproof

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb"
)

var contract, plain, absent = common.Address{0xc0}, common.Address{0x1}, common.Address{0xee}

// state returns a store and a root with two accounts, one of which has storage.
func state(t *testing.T) (*statedb.Store, common.Hash) {
	t.Helper()
	store := statedb.NewStore()
	return store, fill(t, store)
}

// fill commits the two accounts, and returns the root.
func fill(t require.TestingT, store *statedb.Store) common.Hash {
	view, err := store.View(statedb.EmptyRoot)
	require.NoError(t, err)
	for i, addr := range []common.Address{contract, plain} {
		require.NoError(t, view.SetAccount(addr, statedb.Account{Exists: true, Nonce: uint64(i + 1), Balance: uint256.NewInt(100 + uint64(i)), CodeHash: types.EmptyCodeHash}))
	}
	view.SetStorage(contract, common.Hash{}, common.Hash{31: 42})
	view.SetStorage(contract, common.Hash{31: 100}, common.Hash{31: 43})
	root, err := view.Commit()
	require.NoError(t, err)
	return root
}

// answer returns an answer as a client decodes it.
func answer(t *testing.T, store *statedb.Store, root common.Hash, addr common.Address, slots ...string) *Account {
	t.Helper()
	a, err := Prove(func() (*statedb.View, error) { return store.View(root) }, addr, slots)
	require.NoError(t, err)
	raw, err := json.Marshal(a)
	require.NoError(t, err)
	a = new(Account)
	require.NoError(t, json.Unmarshal(raw, a))
	return a
}

// Verify accepts true answers, also those about accounts and slots that do not exist.
func TestVerify(t *testing.T) {
	store, root := state(t)
	a := answer(t, store, root, contract, "0x0", "0x64", common.Hash{0xff}.Hex())
	require.NoError(t, a.Verify(root))
	require.EqualValues(t, 42, a.StorageProof[0].Value.ToInt().Uint64())
	require.EqualValues(t, 43, a.StorageProof[1].Value.ToInt().Uint64())
	require.Zero(t, a.StorageProof[2].Value.ToInt().Sign())
	require.NoError(t, answer(t, store, root, plain).Verify(root))
	none := answer(t, store, root, absent, "0x0")
	require.NoError(t, none.Verify(root))
	require.Zero(t, none.CodeHash)
	require.Zero(t, none.Balance.ToInt().Sign())
}

// Verify refuses an answer after any change.
func TestForgedAnswers(t *testing.T) {
	store, root := state(t)
	of := func(addr common.Address) *Account { return answer(t, store, root, addr, "0x0", "0x64") }
	for name, forge := range map[string]func(a *Account){
		"balance":                func(a *Account) { a.Balance = (*hexutil.Big)(big.NewInt(101)) },
		"no balance":             func(a *Account) { a.Balance = nil },
		"huge balance":           func(a *Account) { a.Balance = (*hexutil.Big)(new(big.Int).Lsh(common.Big1, 4096)) },
		"nonce":                  func(a *Account) { a.Nonce++ },
		"code":                   func(a *Account) { a.CodeHash = common.Hash{} },
		"address":                func(a *Account) { a.Address = plain },
		"root":                   func(a *Account) { a.StorageHash = common.Hash{1} },
		"value":                  func(a *Account) { a.StorageProof[0].Value = (*hexutil.Big)(common.Big0) },
		"no value":               func(a *Account) { a.StorageProof[0].Value = nil },
		"key":                    func(a *Account) { a.StorageProof[0].Key = "0x64" },
		"not a key":              func(a *Account) { a.StorageProof[0].Key = "0xzz" },
		"long key":               func(a *Account) { a.StorageProof[0].Key = common.Hash{}.Hex() + "00" },
		"no account proof":       func(a *Account) { a.AccountProof = nil },
		"two account proofs":     func(a *Account) { a.AccountProof = append(a.AccountProof, a.AccountProof[0]) },
		"proof of another":       func(a *Account) { a.AccountProof = of(plain).AccountProof },
		"proof of a slot":        func(a *Account) { a.AccountProof = a.StorageProof[0].Proof },
		"slot of another":        func(a *Account) { a.StorageProof[0].Proof = of(absent).StorageProof[0].Proof },
		"slot of an account":     func(a *Account) { a.StorageProof[0].Proof = a.AccountProof },
		"no slot proof":          func(a *Account) { a.StorageProof[1].Proof = nil },
		"more than the slot":     func(a *Account) { a.StorageProof[0].Proof = both(t, store, root) },
		"an empty account proof": func(a *Account) { a.AccountProof[0] = nil },
	} {
		t.Run(name, func(t *testing.T) {
			a := of(contract)
			forge(a)
			require.ErrorIs(t, a.Verify(root), ErrInvalid)
		})
	}
	a := of(contract)
	require.ErrorIs(t, a.Verify(common.Hash{1}), ErrInvalid)
	a.StorageHash = common.Hash{1}
	require.ErrorIs(t, a.Verify(common.Hash{1}), ErrInvalid)
	for i := range a.AccountProof[0] { // each byte of a proof counts
		a := of(contract)
		a.AccountProof[0][i] ^= 1
		require.ErrorIs(t, a.Verify(root), ErrInvalid, i)
	}
}

// both returns a proof of two slots.
func both(t *testing.T, store *statedb.Store, root common.Hash) []hexutil.Bytes {
	view, err := store.View(root)
	require.NoError(t, err)
	view.Storage(contract, common.Hash{})
	view.Storage(contract, common.Hash{31: 100})
	proof, err := proofOf(view)
	require.NoError(t, err)
	return proof
}

// A slot is written in hexadecimal in any usual form.
func TestParseSlot(t *testing.T) {
	for _, text := range []string{"0x7", "7", "0x07", "0X7", common.Hash{31: 7}.Hex()} {
		slot, err := ParseSlot(text)
		require.NoError(t, err)
		require.Equal(t, common.Hash{31: 7}, slot, text)
	}
	_, err := ParseSlot("0x" + common.Hash{}.Hex())
	require.ErrorIs(t, err, ErrSlotLength)
	_, err = ParseSlot("0xg")
	require.ErrorIs(t, err, ErrSlotDigits)
	store, root := state(t)
	_, err = Prove(func() (*statedb.View, error) { return store.View(root) }, plain, []string{"0xg"})
	require.ErrorIs(t, err, ErrSlotDigits)
}

// FuzzVerify: whatever an answer says, Verify accepts only the true values.
func FuzzVerify(f *testing.F) {
	store := statedb.NewStore()
	root := fill(f, store)
	open := func() (*statedb.View, error) { return store.View(root) }
	for _, addr := range []common.Address{contract, plain, absent} {
		a, err := Prove(open, addr, []string{"0x0", "0x64"})
		require.NoError(f, err)
		raw, err := json.Marshal(a)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var a Account
		if json.Unmarshal(raw, &a) != nil || a.Verify(root) != nil {
			return
		}
		view, err := open()
		require.NoError(t, err)
		account := view.Account(a.Address)
		require.Equal(t, account.Balance.ToBig().String(), a.Balance.ToInt().String())
		require.Equal(t, account.Nonce, uint64(a.Nonce))
		require.Equal(t, account.CodeHash, a.CodeHash)
		for _, s := range a.StorageProof {
			slot, err := ParseSlot(s.Key)
			require.NoError(t, err)
			require.Equal(t, view.Storage(a.Address, slot).Big().String(), s.Value.ToInt().String())
		}
	})
}
