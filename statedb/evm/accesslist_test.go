package evm

import (
	"bytes"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb"
)

// The list has exactly the differences between the states after one transaction
// and after the next one, which a second block of only these transactions
// computes. Refused transactions are not in it.
func TestAccessListAgainstStates(t *testing.T) {
	store, root, at := shifters(t)
	slot := common.Hash{9}
	write := append(slot[:], 0)
	txs := []*types.Transaction{
		dynamic(0, 3, &at[3], nil, slot[:]), // reads
		refused(at[1]),
		dynamic(0, 4, &at[3], nil, write),
		dynamic(1, 0, &at[2], nil, nil),
		dynamic(0, 5, &at[3], nil, write),
		dynamic(0, 6, nil, nil, deployer(shifter)),
		dynamic(0, 7, &at[0], nil, []byte{1}),
	}
	after := func(n int) stateAfter { return stateAfterN(t, store, root, txs, n) }
	view, err := store.View(root)
	require.NoError(t, err)
	b, err := NewBlock(view, config, header(), noHashes)
	require.NoError(t, err)
	for _, tx := range txs {
		_, _ = b.Apply(tx)
	}
	require.Len(t, b.Receipts(), len(txs)-1)
	list, err := b.AccessList()
	require.NoError(t, err)
	changes := 0
	for n := range b.Receipts() {
		changes += checkChanges(t, list, uint32(n+1), slot, after(n), after(n+1))
	}
	require.Equal(t, 3, changes, "two of the shifter, and one of the tidal contract")
	first, last := after(0), after(len(b.Receipts()))
	for _, a := range append(at[:], addr(0), addr(1), addr(2), header().Coinbase) {
		if list.Accounts[a] == nil {
			require.Equal(t, first(a, slot), last(a, slot), "%s", a)
		}
	}
	require.Contains(t, list.Accounts, header().Coinbase)

	require.NoError(t, b.Finish())
	for _, w := range view.Writes() {
		if w.Kind == statedb.StorageAccess && w.Address == at[3] {
			require.Equal(t, 3, w.Transaction, "the last one that wrote the slot")
		}
	}
}

// stateAfter returns a slot, and the balance, nonce and code of its account.
type stateAfter func(common.Address, common.Hash) [4]any

// stateAfterN returns the state after the first n transactions that a block
// takes.
func stateAfterN(t *testing.T, store *statedb.Store, root common.Hash, txs []*types.Transaction, n int) stateAfter {
	view, err := store.View(root)
	require.NoError(t, err)
	b, err := NewBlock(view, config, header(), noHashes)
	require.NoError(t, err)
	for _, tx := range txs {
		if len(b.Receipts()) == n {
			break
		}
		_, _ = b.Apply(tx) // refused ones count for nothing
	}
	sdb, _, err := b.Prestate()
	require.NoError(t, err)
	return func(a common.Address, s common.Hash) [4]any {
		return [4]any{sdb.GetState(a, s), *sdb.GetBalance(a), sdb.GetNonce(a), string(sdb.GetCode(a))}
	}
}

// checkChanges checks that the list has exactly the differences of two states
// at an index, and returns the number of changed slots.
func checkChanges(t *testing.T, list *bal.ConstructionBlockAccessList, index uint32, slot common.Hash, before, after stateAfter) (changes int) {
	for a, access := range list.Accounts {
		for _, s := range []common.Hash{{}, slot} {
			value, changed := access.StorageWrites[s][index]
			require.Equal(t, before(a, s)[0] != after(a, s)[0], changed, "slot %s of %s in %d", s, a, index)
			if changed {
				require.Equal(t, after(a, s)[0], value)
				changes++
			}
		}
		was, is := before(a, slot), after(a, slot)
		balance, changed := access.BalanceChanges[index]
		require.Equal(t, was[1] != is[1], changed, "balance of %s in %d", a, index)
		require.True(t, !changed || is[1] == *balance)
		nonce, changed := access.NonceChanges[index]
		require.Equal(t, was[2] != is[2], changed, "nonce of %s in %d", a, index)
		require.True(t, !changed || is[2] == nonce)
		code, changed := access.CodeChange[index]
		require.Equal(t, was[3] != is[3], changed, "code of %s in %d", a, index)
		require.True(t, !changed || is[3] == string(code))
	}
	return changes
}

// A slot that is only read is listed as read. Without a log of reads there is
// no list.
func TestAccessListReads(t *testing.T) {
	store, root, at := shifters(t)
	slot := common.Hash{9}
	for _, logged := range []bool{true, false} {
		view, err := store.View(root)
		require.NoError(t, err)
		if !logged {
			view.DisableReadLog()
		}
		b, err := NewBlock(view, config, header(), noHashes)
		require.NoError(t, err)
		_, err = b.Apply(dynamic(0, 3, &at[3], nil, slot[:]))
		require.NoError(t, err)
		list, err := b.AccessList()
		if !logged {
			require.ErrorIs(t, err, statedb.ErrNoReadLog)
			continue
		}
		require.NoError(t, err)
		require.Contains(t, list.Accounts[at[3]].StorageReads, slot)
		require.Empty(t, list.Accounts[at[3]].StorageWrites)
		var encoded bytes.Buffer
		require.NoError(t, list.EncodeRLP(&encoded))
		var decoded bal.BlockAccessList
		require.NoError(t, rlp.DecodeBytes(encoded.Bytes(), &decoded))
		require.Equal(t, list.ToEncodingObj().Hash(), decoded.Hash())
	}
}
