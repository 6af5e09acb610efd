package evm

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb"
)

// lastHash stores the hash of the block back blocks ago in slot 0.
func lastHash(back byte) []byte { return []byte{0x60, back, 0x43, 0x03, 0x40, 0x5f, 0x55, 0x00} }

// withHistory is a genesis whose state keeps the hashes of blocks.
func withHistory(t *testing.T) (*statedb.Store, common.Hash) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	addr, contract := HistoryContract()
	require.NoError(t, Genesis(view, types.GenesisAlloc{addr: contract}))
	return store, commit(t, view)
}

func hashOf(number uint64) common.Hash { return common.Hash{0xb1, byte(number >> 8), byte(number)} }

func numbered(number int64) *types.Header {
	h := header()
	h.Number = big.NewInt(number)
	h.ParentHash = hashOf(uint64(number - 1))
	return h
}

// A state with the history contract answers BLOCKHASH alone: in a block, in a
// call, in an estimate, and on a witness, which proves the hash.
func TestBlockHashesFromTheState(t *testing.T) {
	store, root := withHistory(t)
	view, err := store.View(root)
	require.NoError(t, err)
	do := func(v *statedb.View, h *types.Header, txs ...*types.Transaction) {
		b, err := NewBlock(v, config, h, nil)
		require.NoError(t, err)
		for _, tx := range txs {
			r, err := b.Apply(tx)
			require.NoError(t, err)
			require.Equal(t, types.ReceiptStatusSuccessful, r.Status)
		}
		require.NoError(t, b.Finish())
	}
	do(view, numbered(1), dynamic(0, 0, nil, nil, deployer(lastHash(1))), dynamic(0, 1, nil, nil, deployer(lastHash(3))))
	for n := int64(2); n <= 300; n++ {
		commit(t, view)
		do(view, numbered(n))
	}
	pre := commit(t, view)
	one, three := crypto.CreateAddress(addr(0), 0), crypto.CreateAddress(addr(0), 1)
	txs := []*types.Transaction{dynamic(1, 0, &one, nil, nil), dynamic(1, 1, &three, nil, nil)}
	do(view, numbered(301), txs...)
	require.Equal(t, hashOf(300), view.Storage(one, common.Hash{}))
	require.Equal(t, hashOf(298), view.Storage(three, common.Hash{}))

	w, err := view.Witness()
	require.NoError(t, err)
	stateless, err := statedb.NewStateless(w, pre)
	require.NoError(t, err)
	do(stateless, numbered(301), txs...)
	stateless.Storage(one, common.Hash{})
	require.Equal(t, rootOf(t, view), rootOf(t, stateless))

	commit(t, view)
	getter := append(lastHash(2)[:5], 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3) // return it
	made, err := Call(t.Context(), view, config, numbered(301), nil, &core.Message{From: addr(1), GasLimit: 1_000_000, Data: getter})
	require.NoError(t, err)
	require.Equal(t, hashOf(299).Bytes(), made.ReturnData)
	_, _, err = Estimate(t.Context(), view, config, numbered(301), nil, &core.Message{From: addr(1), GasLimit: 1_000_000, To: &one}, 0)
	require.NoError(t, err)
}

func TestNoHistoryContract(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	b, err := NewBlock(view, config, numbered(1), nil)
	require.ErrorIs(t, err, ErrHistory)
	require.Nil(t, b)
}

// A contract that does not store the hash is not a source of hashes: the system
// call fails silently.
func TestHistoryIsKept(t *testing.T) {
	store, root := withHistory(t)
	view, err := store.View(root)
	require.NoError(t, err)
	old := beforeCancun()
	_, err = NewBlock(view, old, numbered(5), nil)
	require.NoError(t, err)
	old.ShanghaiTime = nil
	_, err = NewBlock(view, old, numbered(5), nil)
	require.ErrorIs(t, err, ErrHistory, "no PUSH0")

	view, err = store.View(root)
	require.NoError(t, err)
	at, _ := HistoryContract()
	account := view.Account(at)
	account.CodeHash, err = view.SetCode(at, []byte{0})
	require.NoError(t, err)
	account.CodeSize = 1
	require.NoError(t, view.SetAccount(at, account))
	_, err = NewBlock(view, config, numbered(5), nil)
	require.ErrorIs(t, err, ErrHistory, "another contract")
}

// A call in a block that has not begun knows the hash of the one before it.
func TestCallKnowsItsParent(t *testing.T) {
	store, root := withHistory(t)
	// RETURN(BLOCKHASH(NUMBER−1))
	code := []byte{0x60, 1, 0x43, 0x03, 0x40, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3}
	_, view := run(t, store, root, dynamic(0, 0, nil, nil, deployer(code)))
	at := crypto.CreateAddress(addr(0), 0)
	made, err := Call(t.Context(), view, config, numbered(2), nil, &core.Message{From: addr(1), To: &at, GasLimit: 100_000})
	require.NoError(t, err)
	require.Equal(t, hashOf(1).Bytes(), made.ReturnData)
}
