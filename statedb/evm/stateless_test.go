package evm

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/statedb"
)

// execute runs transactions as one block, without committing. Those that cannot be in it are left out.
func execute(t require.TestingT, view *statedb.View, txs []*types.Transaction) (types.Receipts, common.Hash) {
	b, err := NewBlock(view, config, header(), noHashes)
	require.NoError(t, err)
	for _, tx := range txs {
		if _, err := b.Apply(tx); err != nil {
			require.NotErrorIs(t, err, ErrState)
		}
	}
	require.NoError(t, b.Finish())
	return b.Receipts(), rootOf(t, view)
}

// Random blocks executed again on their witness alone have the same receipts and the same root, and the witness has exactly what they need.
func TestStatelessExecution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, root := genesis(t)
		profile := store.Profile()
		var nonces [3]uint64
		var contracts []common.Address
		for range rapid.IntRange(1, 3).Draw(t, "blocks") {
			var txs []*types.Transaction
			for range rapid.IntRange(0, 6).Draw(t, "transactions") {
				from := rapid.IntRange(0, 2).Draw(t, "from")
				txs = append(txs, drawTransaction(t, byte(from), nonces[from], contracts))
				nonces[from]++
			}
			view, err := store.View(root)
			require.NoError(t, err)
			receipts, want := execute(t, view, txs)
			made, err := view.Witness()
			require.NoError(t, err)

			w, err := statedb.ParseWitness(profile, made.Encode())
			require.NoError(t, err)
			post, err := statedb.Verify(profile, w, root, view.Writes())
			require.NoError(t, err)
			require.Equal(t, want, post)
			stateless, err := statedb.NewStateless(profile, w, root)
			require.NoError(t, err)
			again, got := execute(t, stateless, txs)
			require.Equal(t, want, got)
			require.Equal(t, receipts, again)
			require.NoError(t, stateless.Matches(w))

			root = commit(t, view)
			for i := range nonces {
				nonces[i] = view.Account(addr(byte(i))).Nonce
			}
			for _, r := range receipts {
				if r.ContractAddress != (common.Address{}) {
					contracts = append(contracts, r.ContractAddress)
				}
			}
		}
	})
}

// What a block reads belongs to the transaction that read it first.
func TestReadsKnowTheirTransaction(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	to := []common.Address{{0xaa}, {0xbb}}
	execute(t, view, []*types.Transaction{dynamic(0, 0, &to[0], ether, nil), dynamic(1, 0, &to[1], ether, nil)})
	first := map[common.Address]int{}
	for _, r := range view.Reads() {
		if _, seen := first[r.Address]; !seen {
			first[r.Address] = r.Transaction
		}
	}
	require.Equal(t, map[common.Address]int{addr(0): 0, to[0]: 0, header().Coinbase: 0, addr(1): 1, to[1]: 1}, first)
}

// A witness from which an account is missing stops the block: the reader's error is not taken for an empty account.
func TestBlockStopsAtWhatTheWitnessLacks(t *testing.T) {
	store, root := genesis(t)
	view, err := store.View(root)
	require.NoError(t, err)
	execute(t, view, []*types.Transaction{dynamic(0, 0, &common.Address{0xaa}, ether, nil)})
	w, err := view.Witness()
	require.NoError(t, err)
	stateless, err := statedb.NewStateless(store.Profile(), w, root)
	require.NoError(t, err)
	b, err := NewBlock(stateless, config, header(), noHashes)
	require.NoError(t, err)
	_, err = b.Apply(dynamic(1, 0, &common.Address{0xaa}, ether, nil))
	require.ErrorIs(t, err, ErrState)
	require.ErrorIs(t, err, statedb.ErrNotInWitness)
	require.ErrorIs(t, b.Finish(), ErrState)
}
